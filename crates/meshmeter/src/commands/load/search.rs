//! `meshmeter load --search`: the highest rate that holds the objective, with one run of the generator per
//! probe.

use super::failures::{cannot_run, unreachable, unreachable_failure};
use super::objective;
use crate::cli::LoadArgs;
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::output;
use crate::output::destination::{self, Destination};
use crate::search::{Probing, SearchProgress, SearchSettings};
use crate::{interrupt, search};
use experiment::Objective;
use load::{Arrival, LoadSpec, RateStage, ScheduleSpec};
use results::{LoadResult, SearchResult};
use statistics::search::{ProbeLength, SearchPlan};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Warm-up of a probe if none is given: each probe has new connections and cold caches.
const DEFAULT_WARMUP: Duration = Duration::from_millis(500);

/// Searches with `spec`, whose schedule is the closed loop that measures the capacity.
pub fn run(args: &LoadArgs, objective: Objective, mut spec: LoadSpec) -> Result<ExitCode, Failure> {
    let settings = settings(args, objective, &spec)?;
    if spec.warmup.is_zero() {
        spec.warmup = DEFAULT_WARMUP;
    }
    let stop = interrupt::on_signals()?;
    let mut progress = SearchProgress::new(args.progress);
    let mut generator = Generator { spec: &spec, arrival: args.schedule.arrival, stop: &stop };
    let result = search::run(&settings, &mut generator, &mut progress, &stop)?;
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

fn settings(args: &LoadArgs, objective: Objective, spec: &LoadSpec) -> Result<SearchSettings, Failure> {
    let given = &args.search;
    objective::check_timeout(&objective, spec)?;
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
    arrival: Arrival,
    stop: &'a AtomicBool,
}

impl Generator<'_> {
    fn run(&self, spec: &LoadSpec, progress: &mut SearchProgress) -> Result<LoadResult, Failure> {
        load::run(spec, self.stop, progress).map_err(|error| cannot_run(&error))
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
