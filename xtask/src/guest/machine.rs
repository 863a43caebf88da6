//! The machine that the guest runs on: a QEMU process that never outlives us.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use super::nodes::NodePlace;
use super::{shown, tools};

/// Emulated processors share one clock, which the kernel does not know: without being told it
/// reads a slow one instead, with a system call for every look at the time.
const KERNEL_ARGS: &str = "console=ttyS0 quiet panic=-1 oops=panic tsc=reliable";

/// The network card's name for the machine.
const CARD: &str = "card";

/// What a machine is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The kernel.
    pub(super) image: &'a Path,
    /// Its first root.
    pub(super) initramfs: &'a Path,
    /// A directory of its own, for its logs.
    pub(super) dir: &'a Path,
    /// A directory that guest and host both write, `/share` in the guest.
    pub(super) share: &'a Path,
    /// Memory, in MiB.
    pub(super) memory_mib: u32,
    /// Its place at a wire, unless it is alone.
    pub(super) node: Option<NodePlace<'a>>,
}

/// A running machine. Dropping it turns it off.
#[derive(Debug)]
pub(super) struct Machine {
    process: Child,
    copiers: Vec<JoinHandle<()>>,
    /// What the kernel prints.
    pub(super) console: PathBuf,
    /// What the guest reports.
    pub(super) reports: PathBuf,
}

impl Machine {
    /// Turns it on; what its command writes is shown as it comes.
    ///
    /// # Errors
    /// When QEMU cannot be started.
    pub(super) fn start(parts: &Parts<'_>) -> Result<Self, String> {
        let console = emptied(&parts.dir.join("console.log"))?;
        let reports = emptied(&parts.dir.join("reports.log"))?;
        let mut command = qemu(parts, &console, &reports);
        if let Some(node) = &parts.node {
            command.stdin(node.end.plug().map_err(|error| no_qemu(&error))?);
        }
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|error| no_qemu(&error))?;
        let copiers = show(&mut process, parts.node.as_ref().map(NodePlace::prefix));
        Ok(Self { process, copiers, console, reports })
    }

    /// How the process ended, if it did.
    ///
    /// # Errors
    /// When the system does not say.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.process.try_wait().map_err(|error| no_qemu(&error))
    }

    /// Turns it off, and waits until all that its command wrote has been shown.
    pub(super) fn stop(&mut self) {
        // Fails only when it has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        for copier in self.copiers.drain(..) {
            let _ = copier.join();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop();
    }
}

fn no_qemu(error: &io::Error) -> String {
    format!("qemu-system-x86_64: {error}")
}

fn show(process: &mut Child, prefix: Option<String>) -> Vec<JoinHandle<()>> {
    let (out, err) = (process.stdout.take(), process.stderr.take());
    let copiers = match prefix {
        None => [
            out.map(|from| shown::as_it_comes(from, io::stdout())),
            err.map(|from| shown::as_it_comes(from, io::stderr())),
        ],
        Some(prefix) => [
            out.map(|from| shown::by_line(prefix.clone(), from, io::stdout())),
            err.map(|from| shown::by_line(prefix.clone(), from, io::stderr())),
        ],
    };
    copiers.into_iter().flatten().collect()
}

fn emptied(path: &Path) -> Result<PathBuf, String> {
    fs::write(path, []).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_owned())
}

/// Pure emulation, since hosts that are guests themselves have no acceleration that works for sure.
fn qemu(parts: &Parts<'_>, console: &Path, reports: &Path) -> Command {
    let mut command = tools::command("setpriv");
    // When we are killed, so is the machine.
    command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    command.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-nodefaults"]);
    // Two guests share the host's processors.
    command.args(["-smp", if parts.node.is_some() { "1" } else { "2" }]);
    command.args(["-display", "none", "-no-user-config", "-no-reboot"]);
    command.arg("-m").arg(parts.memory_mib.to_string());
    command.arg("-kernel").arg(parts.image).arg("-initrd").arg(parts.initramfs);
    command.args(["-append", KERNEL_ARGS]);
    command.arg("-serial").arg(format!("file:{}", escaped(console)));
    disks(&mut command, parts.share);
    ports(&mut command, reports);
    if let Some(node) = &parts.node {
        pipes(&mut command, node);
        network(&mut command, node);
    }
    command
}

fn disks(command: &mut Command, share: &Path) {
    let root = "local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap";
    command.args(["-virtfs", root]);
    let share = escaped(share);
    let share = format!("local,path={share},mount_tag=share,security_model=none,multidevs=remap");
    command.args(["-virtfs", &share]);
}

/// Output, errors and reports, each by itself and as bytes.
fn ports(command: &mut Command, reports: &Path) {
    command.args(["-device", "virtio-serial-pci"]);
    let reports = escaped(reports);
    for (name, path) in
        [("output", "/dev/stdout"), ("errors", "/dev/stderr"), ("reports", &reports)]
    {
        command.args(["-chardev", &format!("file,id={name},path={path}")]);
        command.args(["-device", &format!("virtserialport,chardev={name},name={name}")]);
    }
}

/// What the guest, and what the machine is told while it runs.
fn pipes(command: &mut Command, node: &NodePlace<'_>) {
    for (name, path) in [("orders", node.orders()), ("monitor", node.monitor())] {
        command.args(["-chardev", &format!("pipe,id={name},path={}", escaped(&path))]);
    }
    command.args(["-device", "virtserialport,chardev=orders,name=orders"]);
    command.args(["-mon", "chardev=monitor,mode=readline"]);
}

/// What to tell the machine so that its card has a carrier, or none.
pub(super) fn set_link(is_up: bool) -> String {
    format!("set_link {CARD} {}\n", if is_up { "on" } else { "off" })
}

/// The machine's end of the wire is its standard input. Frames are large, as in networks that are
/// made for RDMA.
fn network(command: &mut Command, node: &NodePlace<'_>) {
    command.args(["-netdev", "dgram,id=wire,local.type=fd,local.str=0"]);
    let mac = node.mac();
    let device = format!("virtio-net-pci,id={CARD},netdev=wire,mac={mac},host_mtu=9000,romfile=");
    command.args(["-device", &device]);
}

/// QEMU's options end at a comma; two stand for one.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::super::nodes::wire;
    use super::*;

    fn arguments(node: Option<NodePlace<'_>>) -> Vec<String> {
        let dir = Path::new("/a,b");
        let parts = Parts { image: dir, initramfs: dir, dir, share: dir, memory_mib: 7, node };
        let command = qemu(&parts, &dir.join("console"), &dir.join("reports"));
        command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    fn has(arguments: &[String], pair: [&str; 2]) -> bool {
        arguments.windows(2).any(|args| args == pair)
    }

    #[test]
    fn a_machine_is_emulated_goes_with_us_and_takes_paths_with_commas() {
        let arguments = arguments(None);
        assert_eq!(arguments[..3], ["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        assert!(has(&arguments, ["-accel", "tcg,thread=multi"]));
        assert!(has(&arguments, ["-serial", "file:/a,,b/console"]));
        assert!(has(&arguments, ["-smp", "2"]) && has(&arguments, ["-m", "7"]));
        assert!(!arguments.iter().any(|arg| arg.contains("net")), "{arguments:?}");
    }

    #[test]
    fn machines_at_a_wire_have_an_end_of_it_orders_and_addresses_of_their_own() {
        let ends = wire().unwrap();
        let of = |number: u8| {
            let end = &ends[usize::from(number) - 1];
            arguments(Some(NodePlace { number, end, dir: Path::new("/o,p") }))
        };
        let (one, two) = (of(1), of(2));
        for arguments in [&one, &two] {
            assert!(has(arguments, ["-netdev", "dgram,id=wire,local.type=fd,local.str=0"]));
            assert!(has(arguments, ["-chardev", "pipe,id=orders,path=/o,,p/orders"]));
            assert!(has(arguments, ["-chardev", "pipe,id=monitor,path=/o,,p/monitor"]));
            assert!(has(arguments, ["-smp", "1"]));
        }
        let card = |arguments: &[String]| {
            arguments.iter().find(|arg| arg.starts_with("virtio-net-pci")).cloned().unwrap()
        };
        assert_ne!(card(&one), card(&two));
        assert!(card(&one).contains(&format!(",id={CARD},")));
        assert_eq!(set_link(false), format!("set_link {CARD} off\n"));
    }
}
