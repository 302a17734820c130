//! `meshmeter lab exec`: runs a command in a pod of a lab that is up. The command ends with this process, and
//! with the lab.

use super::{enter_pod, select};
use crate::cli::ExecArgs;
use crate::failure::Failure;
use components::end_with_parent;
use experiment::environment::EnvironmentError;
use lab::registry::PodStatus;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGQUIT};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal as _};
use std::process::{Child, Command, ExitCode, ExitStatus};

/// Variables with HTTP proxies of the machine's network, which no pod can reach; also used in upper case.
const PROXY_VARIABLES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

pub fn run(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let pod = select::pod(&args.pod)?;
    let (program, arguments) = args.command.split_first().expect("clap asks for a command");
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(ExitCode::from(lab::exit_code(run_in(&pod, command)?)))
}

fn run_in(pod: &PodStatus, mut command: Command) -> Result<ExitStatus, EnvironmentError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let operation = format!("run {program} in pod {}", pod.name);
    let failed = |error: io::Error| EnvironmentError::new(operation.clone(), error);
    let mut signals = Signals::new([lab::end_signals(), vec![SIGQUIT, SIGCHLD]].concat()).map_err(failed)?;
    let folder = std::env::current_dir();
    enter_pod::join(pod, true)?;
    // Pods see the machine's directories. If ours is not among them, the command starts in the root
    // directory.
    if let Ok(folder) = folder {
        let _ = std::env::set_current_dir(folder);
    }
    for variable in PROXY_VARIABLES {
        command.env_remove(variable).env_remove(variable.to_uppercase());
    }
    end_with_parent(&mut command);
    let mut child = command.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        for signal in signals.wait() {
            pass_on(&child, signal);
        }
    }
}

/// Forwards a signal unless it came from the terminal: those reach the command directly, since it is in our
/// process group.
fn pass_on(child: &Child, signal: i32) {
    let from_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    if signal == SIGCHLD || (from_terminal && (signal == SIGINT || signal == SIGQUIT)) {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Fails only if it has ended. It is not reaped yet, so the PID is still its own.
        let _ = rustix::process::kill_process(Pid::from_child(child), signal);
    }
}
