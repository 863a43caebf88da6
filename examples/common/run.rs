//! Runs a service as its users do.

use std::process::{Command, Stdio};

/// Where its parts meet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Over {
    Tcp,
    SharedMemory,
}

impl Over {
    /// An address that nobody else has. `None` if this host has nothing that serves it; with
    /// `FABRIC_REQUIRE_LIBFABRIC=1` it must have.
    pub(crate) fn addr(self) -> Option<String> {
        let addr = match self {
            Self::Tcp => return Some("tcp://127.0.0.1:0".into()),
            Self::SharedMemory => format!("ofi+shm://service-{}:0", std::process::id()),
        };
        let pull = msg_patterns::Pull::new(&msg_patterns::Context::new()).unwrap();
        let Err(error) = pull.bind(&addr) else { return Some(addr) };
        let required = std::env::var("FABRIC_REQUIRE_LIBFABRIC").is_ok_and(|value| value == "1");
        assert!(!required || !cfg!(feature = "libfabric"), "{error}");
        println!("skipped: {error}");
        None
    }
}

/// What it says on standard output, once it has ended well.
pub(crate) fn program(path: &str, args: &[&str]) -> String {
    let output = Command::new(path).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Runs it for a reader that has gone: it must end well and without a word of complaint.
pub(crate) fn without_reader(path: &str, args: &[&str]) {
    let mut command = Command::new(path);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "{}: {complaint}", output.status);
}
