//! `meshmeter load`.

use crate::cli::LoadArgs;
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::interrupt;
use crate::open_files;
use crate::progress::LoadProgress;
use experiment::schema::LoadResult;
use load::{ErrorKind, LoadSpec, Protocol};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

mod http_version;
mod objective;
mod raw;
mod schedule;
mod targets;
mod tls;

/// The file name that means standard output.
const STDOUT: &str = "-";
/// Connections of an open loop for which no number is given.
const DEFAULT_CONNECTIONS: usize = 16;

/// Runs the command.
pub fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let spec = plan(args)?;
    objective::check(args, &spec)?;
    open_files::raise_limit();
    let stop = interrupt::on_signals()?;
    let mut progress = LoadProgress::new(args.progress, &spec);
    let mut result = load::run(&spec, &stop, &mut progress).map_err(|error| Failure::environment(&error))?;
    progress.finish();
    result.objective = args.goal.objective.map(|objective| statistics::judge_result(&objective, &result));
    let shown = show(args, &result);
    write_file(args, &result)?;
    shown?;
    if result.verdict.valid && result.objective.as_ref().is_none_or(|objective| objective.met) {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(kind) = unreachable(&result) {
        return Err(unreachable_failure(&spec, kind));
    }
    Ok(ExitCode::from(MEASUREMENT_FAILED))
}

/// What was typed, decided.
fn plan(args: &LoadArgs) -> Result<LoadSpec, Failure> {
    check_folder_of_result(args)?;
    let (targets, protocol) = targets::plan(args)?;
    let tls = tls::plan(args, &targets)?;
    let connections = connections(args, protocol, targets.servers.len());
    let half_of_cpus = thread::available_parallelism().map_or(1, |cpus| (cpus.get() / 2).max(1));
    // Threads share no connections: a server with fewer than there are threads would be out of reach for some.
    let most_threads =
        args.targets.connections_per_server.map_or(connections, |most| connections.min(most as usize));
    let threads = args.threads.map_or(half_of_cpus, |threads| threads as usize).min(most_threads);
    let schedule::Planned { schedule, duration } = schedule::plan(args, connections, threads)?;
    Ok(LoadSpec {
        urls: args.urls.clone(),
        targets,
        protocol,
        schedule,
        connections,
        requests_per_connection: args.requests_per_connection,
        threads,
        warmup: args.schedule.warmup,
        duration,
        timeout: args.timeout,
        tls,
        seed: args.schedule.seed,
        whole_seconds: false,
        start_at: schedule::start_at(args)?,
    })
}

/// A result that would have nowhere to go is told before the measurement, not after it.
fn check_folder_of_result(args: &LoadArgs) -> Result<(), Failure> {
    let folder = args.json.as_deref().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::wrong_use(format!("--json: there is no folder `{}`", folder.display())))
        }
        _ => Ok(()),
    }
}

fn connections(args: &LoadArgs, protocol: Protocol, servers: usize) -> usize {
    let enough = |clients: u32| (clients as usize).div_ceil(protocol.streams());
    let default = args.schedule.clients.map_or(DEFAULT_CONNECTIONS, enough).max(servers);
    let wanted = args.connections.map_or(default, |connections| connections as usize);
    // More than the servers may have would never be opened.
    let most = args.targets.connections_per_server.map_or(usize::MAX, |most| servers * most as usize);
    wanted.min(most)
}

/// Shows the result as text, or as JSON where that was asked for on standard output. Where the target could not be
/// reached there is nothing to show as text.
fn show(args: &LoadArgs, result: &LoadResult) -> Result<(), Failure> {
    let text = if args.json.as_deref() == Some(Path::new(STDOUT)) {
        json(result)
    } else if unreachable(result).is_some() {
        return Ok(());
    } else {
        report::terminal::load_text(result).into_bytes()
    };
    let mut stdout = anstream::stdout();
    match stdout.write_all(&text).and_then(|()| stdout.flush()) {
        // Whoever read has had enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::environment(&error).about("write the result to standard output"))
        }
        _ => Ok(()),
    }
}

fn write_file(args: &LoadArgs, result: &LoadResult) -> Result<(), Failure> {
    match args.json.as_deref() {
        Some(path) if path != Path::new(STDOUT) => {
            report::folder::write_whole(path, &json(result)).map_err(|error| Failure::environment(&error))
        }
        _ => Ok(()),
    }
}

fn json(result: &LoadResult) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(result).expect("results have string keys and finite numbers");
    text.push(b'\n');
    text
}

/// The commonest error where no connection could be opened, so that nothing was sent.
fn unreachable(result: &LoadResult) -> Option<ErrorKind> {
    let requests = &result.requests;
    if !result.verdict.reasons.iter().any(|reason| reason.starts_with("unreachable:")) {
        return None;
    }
    let seen = ErrorKind::ALL.into_iter().filter(|kind| requests.errors.contains_key(kind.name()));
    seen.max_by_key(|kind| requests.errors[kind.name()])
}

fn unreachable_failure(spec: &LoadSpec, kind: ErrorKind) -> Failure {
    let servers: Vec<&str> = spec.targets.servers.iter().map(|target| target.authority.as_str()).collect();
    let failure = Failure::broken(format!("connect to {}: {}", servers.join(", "), kind.meaning()));
    match kind.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
