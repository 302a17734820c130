//! `meshmeter load`.

use crate::cli::{Clients, LoadArgs, LoadCommand, MAX_CONNECTIONS};
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::interrupt;
use crate::other_programs::OtherPrograms;
use crate::output::destination;
use crate::progress::LoadProgress;
use failures::{cannot_run, unreachable, unreachable_failure};
use load::{DEFAULT_LAG_TOLERANCE, LoadSpec, Observer, Progress, Protocol, Start};
use outputs::Outputs;
use replay::Replay;
use results::{ExpectedStatuses, LoadResult, Pacing};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

mod connecting;
mod content_file;
mod failures;
mod grpc;
mod http_version;
mod implied;
mod merge;
mod metrics;
mod objective;
mod options;
mod outputs;
mod profile;
mod raw;
mod replay;
mod schedule;
mod search;
mod share;
mod start_signal;
mod stream;
mod targets;
mod tls;
mod traffic;

/// Connections of an open loop if no number is given, and clients of a load that no option describes.
const DEFAULT_CONNECTIONS: usize = 16;

pub fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    if let Some(LoadCommand::Merge(args)) = &args.command {
        return merge::run(args);
    }
    let replay = replay::read(args)?;
    let notes_of_replay = replay.as_ref().map(Replay::notes).unwrap_or_default();
    let spec = plan(args, replay)?;
    connecting::check_limits(&spec)?;
    if let Some(objective) = args.goal.objective.filter(|_| args.search.search) {
        return search::run(args, objective, spec);
    }
    objective::check(args, &spec)?;
    // Before signals are handled: opening a pipe blocks until it has a reader, and Ctrl-C must still
    // interrupt that.
    let outputs = Outputs::open(&args.output)?;
    let stop = interrupt::on_signals()?;
    if let Start::OnSignal(signal) = &spec.start {
        start_signal::read_from_stdin(signal.clone(), Arc::clone(&stop))?;
    }
    let mut watching = Watching {
        others: OtherPrograms::new(args.progress),
        progress: LoadProgress::new(args.progress, &spec).with_detail(args.progress_detail),
        outputs,
    };
    let mut result = load::run(&spec, &stop, &mut watching).map_err(|error| cannot_run(&error))?;
    watching.progress.finish();
    watching.outputs.finish_metrics(&mut result);
    note_others(&watching.others, &spec, &mut result);
    result.verdict.notes.extend(notes_of_replay);
    if implied::clients(args, DEFAULT_CONNECTIONS)?.is_some() {
        implied::note(&mut result);
    }
    result.objective = args.goal.objective.map(|objective| statistics::check_result(&objective, &result));
    // If the target could not be reached, there is no result to show as text.
    let text = unreachable(&result).is_none().then(|| report::terminal::load_text(&result));
    watching.outputs.finish(&mut result, text)?;
    args.goal.objective.iter().try_for_each(|objective| objective::check_streams(objective, &result))?;
    if result.verdict.valid
        && !result.interrupted
        && result.objective.as_ref().is_none_or(|objective| objective.met)
    {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(kind) = unreachable(&result) {
        return Err(unreachable_failure(&spec, kind));
    }
    Ok(ExitCode::from(MEASUREMENT_FAILED))
}

/// Notes other programs that took CPU in the window.
fn note_others(others: &OtherPrograms, spec: &LoadSpec, result: &mut LoadResult) {
    let targets = spec.targets.servers.iter().flat_map(|server| server.addresses.iter().cloned());
    let note = others.note(&targets.collect::<Vec<_>>(), Some(result));
    result.verdict.notes.extend(note);
}

/// Receivers of a run's progress: the machine's observer, people, and the outputs that are written while it runs.
struct Watching<'a> {
    others: OtherPrograms,
    progress: LoadProgress,
    outputs: Outputs<'a>,
}

impl Observer for Watching<'_> {
    fn progress(&mut self, progress: Progress<'_>) {
        self.others.progress(progress);
        // Outputs next: a second that people can see is already written.
        self.outputs.progress(progress);
        self.progress.progress(progress);
    }
}

/// Turns the options into a load.
fn plan(args: &LoadArgs, mut replay: Option<Replay>) -> Result<LoadSpec, Failure> {
    destination::check(&destination::named(&args.output.files))?;
    let targets::Planned { urls, mut targets, protocol } = targets::plan(args, replay.as_mut())?;
    let opening = connecting::plan(args, &mut targets)?;
    let protocol = if opening.per_request { protocol.with_one_stream() } else { protocol };
    let tls = tls::plan(args, &targets)?;
    grpc::make_calls(args, &mut targets, tls.as_ref())?;
    let implied = implied::clients(args, DEFAULT_CONNECTIONS)?;
    let clients = args.schedule.clients.as_ref().map(Clients::most).or(implied);
    let connections = connections(args, clients, protocol, targets.servers.len());
    let share = args.schedule.share.unwrap_or_default();
    share::check(args, connections)?;
    let half_of_cpus = thread::available_parallelism().map_or(1, |cpus| (cpus.get() / 2).max(1));
    // Threads share no connections. With fewer connections to a server than threads, some threads could not
    // reach it.
    let most_threads =
        args.targets.connections_per_server.map_or(connections, |most| connections.min(most as usize));
    let most_threads = (most_threads / share.of()).max(1);
    let threads = args.threads.map_or(half_of_cpus, |threads| threads as usize).min(most_threads);
    let schedule::Planned { schedule, duration } = match replay {
        Some(replay) => replay.plan(args)?,
        None => schedule::plan(args, at_once(args, connections, protocol), threads * share.of(), implied)?,
    };
    Ok(LoadSpec {
        urls,
        targets,
        protocol,
        schedule,
        connections,
        pacing: args.pacing.pacing,
        lag_tolerance: lag_tolerance(args)?,
        opening,
        requests_per_connection: args.requests_per_connection,
        threads,
        warmup: args.schedule.warmup,
        duration,
        timeout: args.timeout,
        expected_status: ExpectedStatuses::new(args.expect_status.clone()),
        tls,
        seed: args.schedule.seed,
        whole_seconds: args.progress_detail || Outputs::need_whole_seconds(&args.output),
        per_url: args.output.per_url,
        start: schedule::start(args)?,
        share,
        network: args.network.network,
    })
}

/// Lateness with which economical pacing may send a request.
fn lag_tolerance(args: &LoadArgs) -> Result<Duration, Failure> {
    match args.pacing.lag_tolerance {
        Some(_) if args.pacing.pacing != Pacing::Economical => {
            Err(Failure::usage("--lag-tolerance is for economical pacing")
                .with_hint("add --pacing economical, or leave it out: the other pacings send on time"))
        }
        given => Ok(given.unwrap_or(DEFAULT_LAG_TOLERANCE)),
    }
}

/// True if each request opens its own connection, whatever their number at a time.
fn is_unbounded(args: &LoadArgs) -> bool {
    args.connecting.new_connection_per_request && args.connections.is_none()
}

/// Requests that a closed loop without a number of clients has under way.
fn at_once(args: &LoadArgs, connections: usize, protocol: Protocol) -> usize {
    if is_unbounded(args) { DEFAULT_CONNECTIONS } else { connections * protocol.streams() }
}

fn connections(args: &LoadArgs, clients: Option<usize>, protocol: Protocol, servers: usize) -> usize {
    if is_unbounded(args) {
        return clients.unwrap_or(MAX_CONNECTIONS as usize);
    }
    let enough = |clients: usize| clients.div_ceil(protocol.streams());
    let default = clients.map_or(DEFAULT_CONNECTIONS, enough).max(servers);
    let wanted = args.connections.map_or(default, |connections| connections as usize);
    // Connections beyond the limit per server would never be opened.
    let most = args.targets.connections_per_server.map_or(usize::MAX, |most| servers * most as usize);
    wanted.min(most)
}
