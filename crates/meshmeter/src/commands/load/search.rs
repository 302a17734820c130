//! `meshmeter load --search`: the highest rate that holds the objective, with one run of the generator per
//! probe.

use super::failures::{cannot_run, unreachable, unreachable_failure};
use super::objective;
use crate::cli::LoadArgs;
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::other_programs::OtherPrograms;
use crate::output;
use crate::output::destination::{self, Destination};
use crate::search::{Probing, SearchProgress, SearchSettings};
use crate::{interrupt, search};
use experiment::Objective;
use load::{Arrival, LoadSpec, Observer, Progress, RateStage, ScheduleSpec};
use results::{LoadResult, ProbeRecord, SearchResult};
use statistics::search::{ProbeLength, SearchPlan};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Warm-up of a probe if none is given: each probe has new connections and cold caches.
const DEFAULT_WARMUP: Duration = Duration::from_millis(500);

/// Beginning of a note on other programs.
const OTHER_PROCESSES: &str = "other-processes: ";

/// Searches with `spec`, whose schedule is the closed loop that measures the capacity.
pub fn run(args: &LoadArgs, objective: Objective, mut spec: LoadSpec) -> Result<ExitCode, Failure> {
    let settings = settings(args, objective, &spec)?;
    if spec.warmup.is_zero() {
        spec.warmup = DEFAULT_WARMUP;
    }
    let stop = interrupt::on_signals()?;
    let mut progress = SearchProgress::new(args.progress);
    let others = OtherPrograms::new(args.progress);
    let arrival = args.schedule.arrival;
    let mut generator = Generator { spec: &spec, objective, arrival, stop: &stop, others };
    let mut result = search::run(&settings, &mut generator, &mut progress, &stop)?;
    note_others(&mut result);
    write(args, &result)?;
    match result.verdict.end.as_str() {
        "found" => Ok(ExitCode::SUCCESS),
        "unreachable" => {
            let kind = result.probes.last().and_then(|last| unreachable(&last.result));
            Err(kind.map_or_else(
                || Failure::broken("the target could not be reached"),
                |kind| unreachable_failure(&spec, kind),
            ))
        }
        "generator-limited" => Err(Failure::broken(result.verdict.text)
            .with_hint("fewer connections, more --threads on free cores, or a quieter machine")),
        _ => Ok(ExitCode::from(MEASUREMENT_FAILED)),
    }
}

/// Notes the number of probes in which other programs took CPU, with those of the first.
fn note_others(result: &mut SearchResult) {
    let of_probe = |probe: &ProbeRecord| {
        probe.result.verdict.notes.iter().find(|note| note.starts_with(OTHER_PROCESSES)).cloned()
    };
    let notes: Vec<String> = result.probes.iter().filter_map(of_probe).collect();
    if let Some(first) = notes.first() {
        let (probes, of) = (notes.len(), result.probes.len());
        result.verdict.notes.push(format!("in {probes} of {of} probes, first {first}"));
    }
}

fn settings(args: &LoadArgs, objective: Objective, spec: &LoadSpec) -> Result<SearchSettings, Failure> {
    let given = &args.search;
    objective::check_times(&objective, spec)?;
    if let Arrival::Bursts(_) = args.schedule.arrival {
        return Err(Failure::usage(
            "--search: a probe has few bursts, so that its rate would be another each time",
        ));
    }
    if objective.rate.is_some() {
        return Err(Failure::usage(
            "--objective: a search finds the rate, so that a bound on it has no effect",
        ));
    }
    let highest = given.search_max.unwrap_or(load::MAX_RATE);
    if given.search_min >= highest {
        return Err(Failure::usage("--search-min must lie below --search-max"));
    }
    if given.search_probe_max < spec.duration {
        return Err(Failure::usage("--search-probe-max must not be shorter than --duration"));
    }
    Ok(SearchSettings {
        urls: spec.urls.clone(),
        objective,
        plan: SearchPlan {
            lowest: given.search_min,
            highest,
            precision: given.search_precision,
            most_probes: given.search_probes as usize,
            confirmations: given.search_confirmations as usize,
            measure_capacity: given.search_max.is_none(),
            curve: true,
        },
        length: ProbeLength {
            least: spec.duration,
            most: given.search_probe_max,
            precision: given.search_precision,
        },
    })
}

/// Runs the generator once per probe.
struct Generator<'a> {
    spec: &'a LoadSpec,
    objective: Objective,
    arrival: Arrival,
    stop: &'a AtomicBool,
    others: OtherPrograms,
}

impl Generator<'_> {
    fn run(&mut self, spec: &LoadSpec, progress: &mut SearchProgress) -> Result<LoadResult, Failure> {
        let mut watching = Watching { others: &mut self.others, progress };
        let mut result = load::run(spec, self.stop, &mut watching).map_err(|error| cannot_run(&error))?;
        super::note_others(&self.others, spec, &mut result);
        objective::check_streams(&self.objective, &result)?;
        Ok(result)
    }
}

/// Receivers of a probe's progress.
struct Watching<'a> {
    others: &'a mut OtherPrograms,
    progress: &'a mut SearchProgress,
}

impl Observer for Watching<'_> {
    fn progress(&mut self, progress: Progress<'_>) {
        self.others.progress(progress);
        self.progress.progress(progress);
    }
}

impl Probing for Generator<'_> {
    fn capacity(&mut self, window: Duration, progress: &mut SearchProgress) -> Result<LoadResult, Failure> {
        self.run(&LoadSpec { duration: window, ..self.spec.clone() }, progress)
    }

    fn probe(
        &mut self,
        rate: f64,
        window: Duration,
        seed: u64,
        progress: &mut SearchProgress,
    ) -> Result<LoadResult, Failure> {
        let mut spec = self.spec.clone();
        spec.schedule =
            ScheduleSpec::Open { stages: vec![RateStage::steady(rate, window)], arrival: self.arrival };
        (spec.duration, spec.seed) = (window, self.spec.seed.wrapping_add(seed));
        self.run(&spec, progress)
    }
}

fn write(args: &LoadArgs, result: &SearchResult) -> Result<(), Failure> {
    let mut failures = Vec::new();
    if let Some(path) = &args.output.files.json {
        failures.extend(Destination::from_path(path).write(output::json(result).as_bytes()).err());
    }
    if destination::stdout_is_free(&destination::named(&args.output.files)) {
        failures.extend(Destination::Stdout.write(report::terminal::search_text(result).as_bytes()).err());
    }
    Failure::all(failures)
}
