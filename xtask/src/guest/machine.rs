//! The machine that the guest runs on: a QEMU process that never outlives us.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use super::tools;

/// Emulated processors share one clock, which the kernel does not know: without being told it
/// reads a slow one instead, with a system call for every look at the time.
const KERNEL_ARGS: &str = "console=ttyS0 quiet panic=-1 oops=panic tsc=reliable";

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
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|error| format!("qemu-system-x86_64: {error}"))?;
        let out = process.stdout.take().map(|from| copier(from, io::stdout()));
        let err = process.stderr.take().map(|from| copier(from, io::stderr()));
        Ok(Self { process, copiers: out.into_iter().chain(err).collect(), console, reports })
    }

    /// How the process ended, if it did.
    ///
    /// # Errors
    /// When the system does not say.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.process.try_wait().map_err(|error| format!("qemu-system-x86_64: {error}"))
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

fn emptied(path: &Path) -> Result<PathBuf, String> {
    fs::write(path, []).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_owned())
}

/// Pure emulation, since hosts that are guests themselves have no acceleration that works for sure.
fn qemu(parts: &Parts<'_>, console: &Path, reports: &Path) -> Command {
    let mut command = tools::command("setpriv");
    // When we are killed, so is the machine.
    command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    command.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-nodefaults"]);
    command.args(["-display", "none", "-no-user-config", "-no-reboot"]);
    command.arg("-m").arg(parts.memory_mib.to_string());
    command.arg("-kernel").arg(parts.image).arg("-initrd").arg(parts.initramfs);
    command.args(["-append", KERNEL_ARGS]);
    command.arg("-serial").arg(format!("file:{}", escaped(console)));
    disks(&mut command, parts.share);
    ports(&mut command, reports);
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

/// QEMU's options end at a comma; two stand for one.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

fn copier(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            // Nobody to tell when our own output is gone.
            let _ = to.write_all(&chunk[..count]).and_then(|()| to.flush());
        }
    })
}
