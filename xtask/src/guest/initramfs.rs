//! The guest's first root: busybox, the modules that reach the host's root, and two scripts.

use std::fs;
use std::path::Path;

use super::cpio::Archive;
use super::kernel::Kernel;
use super::tools;

const INIT: &str = include_str!("init.sh");
const MAIN: &str = include_str!("main.sh");

/// The kernel asks for the checksums from within its first root, when the link is made.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
    "crc32_generic",
    "crc32c_generic",
];

/// Newer kernels have them inside.
const OPTIONAL: &[&str] = &["crc32_generic", "crc32c_generic"];

const APPLETS: &[&str] = &["sh", "mount", "insmod", "mkdir", "cp", "echo", "sleep", "switch_root"];

/// The archive. `settings` and `command` are shell scripts for `main.sh`.
///
/// # Errors
/// When a module or busybox cannot be read.
pub(super) fn build(
    kernel: &Kernel,
    busybox: &Path,
    settings: &str,
    command: &str,
) -> Result<Vec<u8>, String> {
    let mut archive = Archive::default();
    for dir in ["bin", "modules", "proc", "sys", "dev", "host", "memory", "new"] {
        archive.directory(dir);
    }
    archive.file("bin/busybox", &read(busybox)?);
    for applet in APPLETS {
        archive.link(&format!("bin/{applet}"), "busybox");
    }
    archive.file("init", format!("#!/bin/sh\n{INIT}").as_bytes());
    archive.file("main.sh", MAIN.as_bytes());
    archive.file("settings", settings.as_bytes());
    archive.file("command", command.as_bytes());
    add_modules(&mut archive, kernel)?;
    Ok(archive.finish())
}

/// Numbered, since they are loaded in the order of their names.
fn add_modules(archive: &mut Archive, kernel: &Kernel) -> Result<(), String> {
    for (number, file) in kernel.module_files(MODULES, OPTIONAL)?.iter().enumerate() {
        archive.file(&format!("modules/{number:02}.ko"), &module(file)?);
    }
    Ok(())
}

/// A module as `insmod` takes it.
fn module(file: &Path) -> Result<Vec<u8>, String> {
    if file.extension().is_some_and(|end| end == "xz") {
        return tools::output("xz", ["-dc".as_ref(), file.as_os_str()]);
    }
    read(file)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}
