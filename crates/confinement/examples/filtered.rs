//! `filtered PROGRAM ARGUMENT…` runs a program with the filter on system calls that programs of images and registries have,
//! and without the rest of the confinement: to measure its price (`docs/decisions/0026-confinement.md`).

use confinement::{Joinable, SystemCallFilter};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or_else(|| io::Error::other("usage: filtered PROGRAM ARGUMENT…"))?;
    rustix::thread::set_no_new_privs(true)?;
    SystemCallFilter::new(Joinable::Nothing).apply()?;
    Err(Command::new(program).args(arguments).exec())
}
