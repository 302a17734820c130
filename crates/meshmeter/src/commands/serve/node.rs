//! `meshmeter serve --topology`: one service of a topology, until SIGINT or SIGTERM. A second signal ends it
//! immediately.

use super::{announce, failure, signals, unused_memory};
use crate::cli::{NodeArgs, ServeArgs};
use crate::commands::run::files::read_text;
use crate::failure::Failure;
use crate::output::tell;
use experiment::topology::{Topology, WorkloadId, file};
use service::node::{Node, NodeSettings};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io::{self, IsTerminal as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Default address of a topology's service.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8080);
/// Exit status after a second signal: 128 + SIGINT, as shells use it.
const INTERRUPTED: i32 = 130;

pub fn run(args: &ServeArgs, file: &Path, service: &str) -> Result<ExitCode, Failure> {
    end_at_second_signal().map_err(|error| Failure::environment(&error))?;
    let stop = signals().map_err(|error| Failure::environment(&error))?;
    let node = Node::bind(&settings(args, file, service)?).map_err(|error| failure(&error))?;
    unused_memory::give_back();
    announce([node.url()]).map_err(|error| Failure::environment(&error))?;
    let counters = node.run(stop).map_err(|error| failure(&error))?;
    tell!("served {} requests, {} bytes", counters.requests, counters.bytes_sent);
    Ok(ExitCode::SUCCESS)
}

/// The order of registration matters: the conditional shutdown checks the flag that an earlier signal has
/// set.
fn end_at_second_signal() -> io::Result<()> {
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stopping))?;
        flag::register(signal, Arc::clone(&stopping))?;
    }
    Ok(())
}

fn settings(args: &ServeArgs, file: &Path, service: &str) -> Result<NodeSettings, Failure> {
    let topology = read(file)?;
    let NodeArgs { admin_listen, connect, database_ca, .. } = &args.node;
    let service = find(&topology, service, "--service")?;
    let connect = connect.iter().map(|(name, place)| {
        let callee = find(&topology, name, "--connect")?;
        Ok((callee, place.clone()))
    });
    Ok(NodeSettings {
        service,
        listen: args.listen.unwrap_or(LISTEN),
        admin_listen: *admin_listen,
        connect: connect.collect::<Result<_, Failure>>()?,
        database_authority: database_ca.clone(),
        threads: usize::from(args.threads),
        seed: args.seed,
        topology,
    })
}

fn read(file: &Path) -> Result<Topology, Failure> {
    let name = file.display().to_string();
    let text =
        read_text(file).map_err(|error| Failure::usage(format!("read the topology `{name}`: {error}")))?;
    file::read(&text, &name).map_err(|error| Failure::usage(error.render(io::stderr().is_terminal())))
}

fn find(topology: &Topology, name: &str, option: &str) -> Result<WorkloadId, Failure> {
    topology.find(name).ok_or_else(|| {
        let names: Vec<String> = topology
            .workloads
            .iter()
            .filter(|workload| workload.serves())
            .map(|workload| workload.qualified_name())
            .collect();
        Failure::usage(format!("{option}: the topology {} has no service {name}", topology.name))
            .with_hint(format!("it has {}", names.join(", ")))
    })
}
