//! `meshmeter serve`: runs the synthetic service until SIGINT or SIGTERM.
//!
//! A line per listener on standard output says that connections are accepted, and where. The plaintext HTTP
//! listener comes first. The counts at the end go to standard error.

mod listeners;
mod node;
mod unused_memory;

use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::open_files;
use crate::output::tell;
use service::{Answer, EventSettings, ServeError, Server, Settings};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fmt::Display;
use std::io::{self, PipeReader, Write as _};
use std::process::ExitCode;

pub fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    open_files::raise_limit();
    if let (Some(topology), Some(service)) = (&args.node.topology, &args.node.service) {
        return node::run(args, topology, service);
    }
    let stop = signals().map_err(|error| Failure::environment(&error))?;
    let server = Server::bind(&settings(args)?).map_err(|error| failure(&error))?;
    announce(server.listeners()).map_err(|error| Failure::environment(&error))?;
    unused_memory::give_back();
    let counters = server.run(stop).map_err(|error| failure(&error))?;
    tell!("served {} requests, {} bytes", counters.requests, counters.bytes_sent);
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &ServeArgs) -> Result<Settings, Failure> {
    let (listeners, tls) = listeners::from_args(args)?;
    Ok(Settings {
        listeners,
        tls,
        http3: args.tls.http3,
        tcp: args.tcp.sizes(),
        answer: Answer {
            status: args.status,
            body_bytes: args.size,
            delay: args.delay,
            cpu_time: args.cpu_time,
            error_fraction: args.error_rate,
            events: EventSettings::default(),
        },
        threads: usize::from(args.threads),
        stall: args.stall,
        max_connections: args.max_connections.map(usize::from),
        requests_per_connection: args.connection_close_after,
        idle_timeout: args.idle_timeout,
        seed: args.seed,
    })
}

fn failure(error: &ServeError) -> Failure {
    if let ServeError::Settings(problem) = error {
        return Failure::usage(problem);
    }
    match error.hint() {
        Some(hint) => Failure::environment(error).with_hint(hint),
        None => Failure::environment(error),
    }
}

/// Becomes readable on SIGINT or SIGTERM.
pub(super) fn signals() -> io::Result<PipeReader> {
    let (stop, signalled) = io::pipe()?;
    signal_hook::low_level::pipe::register(SIGTERM, signalled.try_clone()?)?;
    signal_hook::low_level::pipe::register(SIGINT, signalled)?;
    Ok(stop)
}

fn announce(listeners: impl IntoIterator<Item = impl Display>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let lines: String = listeners.into_iter().map(|listener| format!("listening on {listener}\n")).collect();
    // Written in one piece: a reader that only wants the first line may close the pipe before the next write.
    stdout.write_all(lines.as_bytes())?;
    stdout.flush()
}
