//! `meshmeter lab up` and the verbs that use what it holds open, as users meet them: by the command, from outside of the lab.
//!
//! As root, with the installed components (`meshmeter lab install`). Each test has a registry of its own, so that labs of
//! others on the machine do not show.

#![allow(clippy::print_stdout)]

#[path = "../command/mod.rs"]
mod command;
mod fleet;
mod forwarder;
mod held;
mod istio;
#[path = "../../../lab/tests/arrangement/last_lines.rs"]
mod last_lines;
mod pods;
#[path = "../receiver/mod.rs"]
mod receiver;
