//! `meshmeter lab up` and the subcommands that use it, as users run them: the command, from outside of the
//! lab.
//!
//! Needs root and the installed components (`meshmeter lab install`). Each test has its own registry, so that
//! other labs on the machine do not appear.

#![allow(clippy::print_stdout)]

#[path = "../command/mod.rs"]
mod command;
mod fleet;
mod forwarder;
mod held;
mod istio;
#[path = "../../../lab/tests/arrangement/last_lines.rs"]
mod last_lines;
mod others;
mod pods;
#[path = "../receiver/mod.rs"]
mod receiver;
