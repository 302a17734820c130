//! `meshmeter lab forward`: forwards a port of this machine to a port of a pod.

use super::{enter_pod, select};
use crate::cli::ForwardArgs;
use crate::failure::Failure;
use crate::output::{json, print};
use experiment::environment::EnvironmentError;
use lab::sandbox::port_forward;
use serde::Serialize;
use signal_hook::low_level::pipe;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Output of `--json`.
#[derive(Serialize)]
struct Forwarding<'a> {
    /// Address that it listens on.
    listen: SocketAddr,
    /// Name of the destination pod.
    pod: &'a str,
    /// The pod's address.
    address: Ipv4Addr,
    /// Destination port on the pod's loopback.
    port: u16,
}

pub fn run(args: &ForwardArgs) -> Result<ExitCode, Failure> {
    let pod = select::pod(&args.pod)?;
    // The listener stays in the machine's network, which this process leaves next.
    let listener = port_forward::listen(args.listen).map_err(|error| match args.listen {
        0 => Failure::from(error),
        _ => {
            Failure::from(error).with_hint("name another with --listen, or none to be given one that is free")
        }
    })?;
    let listen =
        listener.local_addr().map_err(|error| EnvironmentError::new("find the port's number", error))?;
    let told_to_end = ending_signals().map_err(|error| EnvironmentError::new("handle signals", error))?;
    let lab_has_ended = enter_pod::join(&pod, false)?;
    print(&if args.json {
        json(&Forwarding { listen, pod: &pod.name, address: pod.address, port: args.port })
    } else {
        format!("{listen} leads to port {} of pod {}; Ctrl-C ends it\n", args.port, pod.name)
    })?;
    match port_forward::forward(listener, args.port, vec![told_to_end.into(), lab_has_ended])? {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(Failure::broken("the lab has ended")),
    }
}

/// Becomes readable on a signal that ends the command.
fn ending_signals() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in lab::end_signals() {
        pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}
