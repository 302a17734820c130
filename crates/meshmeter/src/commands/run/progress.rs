//! Progress of a run on standard error: a live line on a terminal, one line per trial otherwise. The trial under way is also
//! written to the run's directory, for `meshmeter view`.

use crate::output::tell;
use experiment::environment::ProgressSink;
use experiment::{Plan, PlannedTrial};
use indicatif::{ProgressBar, ProgressStyle};
use report::folder::ProgressFile;
use results::units::{format_duration, shortened_to};
use results::{
    ComponentsSecond, FleetProgress, FleetResult, Retake, SeriesPoint, TrialRecord, TrialUnderWay,
    with_factors,
};
use statistics::{ACCEPTED, accepting_noise};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Last lines shown of a failed component.
const LAST_LINES: usize = 3;
/// Maximum characters shown per line.
const LINE_CHARACTERS: usize = 200;

/// Minimum time between two lines of progress that is reported as lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of a run.
pub(super) struct RunProgress {
    bar: ProgressBar,
    live: bool,
    trials: usize,
    /// Hints for failed trials that have been printed.
    hints: BTreeSet<String>,
    /// `None` if trials are not stored.
    file: Option<RefCell<ProgressFile>>,
    begun_at: Instant,
    /// Trials that a continued run already had.
    recorded: usize,
    /// Estimated time of one trial, from the plan.
    estimated_s: f64,
    /// True if noise of the machine is accepted.
    accepts_noise: bool,
}

impl RunProgress {
    /// Prints what is about to run, how long it takes, and where results go.
    pub(super) fn new(plan: &Plan, folder: &Path) -> Self {
        let file = RefCell::new(ProgressFile::new(folder));
        Self { file: Some(file), ..Self::begin(plan, &format!(", into {}", folder.display())) }
    }

    /// Like [`Self::new`], for trials that are not stored.
    pub(super) fn without_folder(plan: &Plan) -> Self {
        Self::begin(plan, "")
    }

    fn begin(plan: &Plan, into: &str) -> Self {
        let live = std::io::stderr().is_terminal();
        let trials = plan.trials.len();
        let time = format_duration(Duration::from_secs(plan.estimated_time().as_secs()));
        let plural = if trials == 1 { "" } else { "s" };
        let longest = match plan.max_reruns() {
            0 => String::new(),
            most => {
                let longest = format_duration(Duration::from_secs(plan.longest_time().as_secs()));
                format!(" (at most {longest} with {most} rerun{})", if most == 1 { "" } else { "s" })
            }
        };
        tell!("{}: {trials} trial{plural}, about {time}{longest}{into}", plan.name);
        let bar = if live { ProgressBar::new(trials as u64) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}  {elapsed} of about {eta}");
        bar.set_style(style.expect("the template is constant"));
        bar.enable_steady_tick(Duration::from_millis(500));
        bar.set_message("measuring this machine's floor");
        Self {
            bar,
            live,
            trials,
            hints: BTreeSet::new(),
            file: None,
            begun_at: Instant::now(),
            recorded: 0,
            estimated_s: plan.estimated_time().as_secs_f64() / trials.max(1) as f64,
            accepts_noise: false,
        }
    }

    /// Shows trials as they are with noise of the machine accepted.
    pub(super) fn accepting_noise(self, accepts_noise: bool) -> Self {
        Self { accepts_noise, ..self }
    }

    /// Begins after the trials that a continued run already has.
    pub(super) fn resume_after(&mut self, trials: usize) {
        self.recorded = trials;
        if trials > 0 {
            self.note(&format!("{trials} of {} trials are recorded: the run continues", self.trials));
            self.bar.inc(trials as u64);
        }
    }

    /// Adds trials that are to be rerun.
    pub(super) fn more_trials(&mut self, number: usize) {
        self.trials += number;
        self.bar.inc_length(number as u64);
    }

    /// Prints a message about the whole run.
    pub(super) fn note(&self, text: &str) {
        self.bar.suspend(|| tell!("{text}"));
    }

    pub(super) fn trial_begins(&self, planned: &PlannedTrial, retake: Option<&Retake>) {
        let title = describe(planned, retake);
        self.bar.set_message(title.clone());
        if let Some(file) = &self.file {
            file.borrow_mut().begin(TrialUnderWay {
                ended: self.bar.position(),
                trials: self.trials as u64,
                title,
                started_at: jiff::Timestamp::now().to_string(),
                rest_s: self.rest_s(),
                ..TrialUnderWay::default()
            });
        }
    }

    /// Estimated time until the end: by the trials so far, before the first by the plan.
    fn rest_s(&self) -> f64 {
        let ended = self.bar.position();
        let per_trial_s = match ended.saturating_sub(self.recorded as u64) {
            0 => self.estimated_s,
            here => self.begun_at.elapsed().as_secs_f64() / here as f64,
        };
        per_trial_s * (self.trials as u64).saturating_sub(ended) as f64
    }

    /// Shows progress while a deployment comes up.
    pub(super) fn sink(&self) -> ProgressSink {
        if !self.live {
            return in_lines();
        }
        let bar = self.bar.clone();
        ProgressSink::new(move |what| bar.set_message(format!("{}  {what}", first_part(&bar.message()))))
    }

    /// Adds a second of a generator, and shows the last one of all: their sum, and the maximum of their medians.
    pub(super) fn second<'a>(
        &self,
        (generator, point): (&str, &SeriesPoint),
        points: impl Iterator<Item = &'a SeriesPoint>,
    ) {
        if let Some(file) = &self.file {
            file.borrow_mut().second(generator, point);
        }
        let add = |(completed, p50_us): (u64, Option<f64>), point: &SeriesPoint| {
            (completed + point.completed, p50_us.zip(point.p50_us).map(|(one, other)| one.max(other)))
        };
        let (completed, p50_us) = points.fold((0, Some(0.0)), add);
        let message = self.bar.message();
        let what = first_part(&message);
        self.bar.set_message(format!("{what}  {completed}/s  p50 {}", time(p50_us)));
    }

    /// True if the trial under way is written for those who watch the run.
    pub(super) fn is_written(&self) -> bool {
        self.file.is_some()
    }

    /// Adds a reading of the components.
    pub(super) fn components(&self, second: &ComponentsSecond) {
        if let Some(file) = &self.file {
            file.borrow_mut().components(second);
        }
    }

    /// Shows the progress of a fleet.
    pub(super) fn fleet(&self, event: &FleetProgress) {
        let doing = match event {
            FleetProgress::Writing { written, of } => format!("writes the mesh: {written} of {of} objects"),
            FleetProgress::Connecting { connected, complete, of } => {
                format!("{connected} of {of} proxies connected, {complete} complete")
            }
            FleetProgress::Change { kind, number, reached, expected } => {
                format!("change {number}, {kind}: {reached} of {expected} proxies reached")
            }
            FleetProgress::Ask(ask) => format!("waits for {}", ask.name()),
            FleetProgress::Removing => "removes the mesh".to_owned(),
            FleetProgress::WindowOpened | FleetProgress::WindowClosed | FleetProgress::Second(_) => return,
        };
        let message = self.bar.message();
        self.bar.set_message(format!("{}  {doing}", first_part(&message)));
    }

    pub(super) fn trial_ended(&mut self, planned: &PlannedTrial, record: &TrialRecord) {
        self.bar.inc(1);
        let accepted = self.accepts_noise.then(|| accepting_noise(record));
        let record = accepted.as_ref().unwrap_or(record);
        let outcome = outcome(record);
        if self.live && record.verdict.valid {
            return;
        }
        let what = describe(planned, record.retake.as_ref());
        let line = format!("{:>3}/{}  {what}  {outcome}", record.index + 1, self.trials);
        // Each hint is printed once.
        let hints: Vec<&String> =
            record.hints.iter().filter(|hint| self.hints.insert((*hint).clone())).collect();
        self.bar.suspend(|| {
            tell!("{line}");
            // The report has all lines.
            for (component, lines) in &record.log_tails {
                let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
                for line in last.iter().filter(|line| !outcome.contains(line.as_str())) {
                    tell!("         {component}: {}", shortened_to(line, LINE_CHARACTERS));
                }
            }
            for hint in hints {
                tell!("         hint: {hint}");
            }
        });
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Prints progress as lines at intervals; steps that end soon print nothing.
pub(crate) fn in_lines() -> ProgressSink {
    let (told_at, heard_at) = (Cell::new(Instant::now()), Cell::new(Instant::now()));
    ProgressSink::new(move |what| {
        let goes_on = heard_at.replace(Instant::now()).elapsed() < LINE_INTERVAL;
        if !goes_on {
            told_at.set(Instant::now());
        } else if told_at.get().elapsed() >= LINE_INTERVAL {
            told_at.set(Instant::now());
            tell!("{what}");
        }
    })
}

/// Outcome of a trial in a line.
fn outcome(record: &TrialRecord) -> String {
    let verdict = &record.verdict;
    match (&record.result, verdict.reasons.first()) {
        (_, Some(reason)) if !verdict.valid => format!("NOT VALID: {reason}"),
        (Some(_), reason) => {
            let what = if record.load.stream.is_some() { "first token " } else { "" };
            let [p50, p99] =
                record.leading_times().map_or([None; 2], |times| [times.p50, times.p99]).map(time);
            let is_accepted = |note: &&String, reason: &str| note.strip_prefix(ACCEPTED) == Some(reason);
            let said = reason.map(|reason| {
                let accepted = verdict.notes.iter().find(|note| is_accepted(note, reason));
                format!("  ({})", accepted.unwrap_or(reason))
            });
            format!("{what}p50 {p50}  p99 {p99}{}", said.unwrap_or_default())
        }
        (None, _) => record.fleet().map_or_else(|| "no result".to_owned(), of_fleet),
    }
}

/// `p99 212.000 ms  last 260.000 ms, 98 of 100 proxies converged`.
fn of_fleet(fleet: &FleetResult) -> String {
    let (proxies, times) = (&fleet.proxies, &fleet.convergence_us);
    let times = if times.requests() == 0 {
        String::new()
    } else {
        format!("p50 {}  p99 {}  last {}, ", time(times.p50), time(times.p99), time(times.max))
    };
    format!("{times}{} of {} proxies converged", proxies.converged, proxies.wanted)
}

/// The current work, without its progress.
fn first_part(message: &str) -> &str {
    message.split("  ").next().unwrap_or_default()
}

/// `sidecar at 1000/s, repeat 2`, or `sidecar at 1000/s, repeat 2, rerun of trial 3`.
fn describe(planned: &PlannedTrial, retake: Option<&Retake>) -> String {
    let again = retake.map(|retake| format!(", rerun of trial {}", retake.of + 1)).unwrap_or_default();
    let preposition = if planned.load.is_fleet() { "with" } else { "at" };
    format!("{} {preposition} {}, repeat {}{again}", planned.mode(), conditions(planned), planned.repeat + 1)
}

/// `1000/s`, `a fleet`, or with factors `1000/s, proxy.workers 2`.
fn conditions(planned: &PlannedTrial) -> String {
    let strength = match (planned.load.rate, planned.load.clients) {
        _ if planned.load.is_fleet() => experiment::plan::offered(&planned.load),
        (Some(rate), _) => format!("{rate}/s"),
        (None, Some(_)) if planned.load.stream.is_some() => experiment::plan::offered(&planned.load),
        (None, Some(clients)) => format!("{clients} clients"),
        (None, None) => "no load".to_owned(),
    };
    with_factors(strength, &planned.factors)
}

/// `0.214 ms`; there is no number if the percentile falls among requests without a response.
fn time(time_us: Option<f64>) -> String {
    time_us.map_or_else(|| report::format::above(None), |us| format!("{:.3} ms", us / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Figures, LoadResult, MachineUsage, TrialOutcome};

    fn disturbed(reasons: &[&str]) -> TrialRecord {
        let mut trial: TrialRecord = serde_json::from_str(
            include_str!("../../../tests/size_run/trials.jsonl").lines().next().unwrap(),
        )
        .unwrap();
        trial.outcome = TrialOutcome::Finished;
        trial.machine = Some(MachineUsage { cpus: 4, ..MachineUsage::default() });
        trial.verdict = results::Verdict { valid: true, ..results::Verdict::default() };
        reasons.iter().for_each(|reason| trial.verdict.spoil(*reason, Figures::all()));
        let times = LoadResult {
            response_time_us: trial.result.as_ref().unwrap().response_time_us.clone(),
            ..LoadResult::default()
        };
        trial.result = Some(times);
        trial
    }

    #[test]
    fn line_of_a_trial_names_what_counts_against_it() {
        const NOISE: &str = "other-processes: rustc took 1.0 cores";
        let noisy = disturbed(&[NOISE]);
        assert_eq!(outcome(&noisy), format!("NOT VALID: {NOISE}"));
        let accepted = outcome(&accepting_noise(&noisy));
        assert!(
            accepted.starts_with("p50 ") && accepted.ends_with(&format!("(noise-accepted: {NOISE})")),
            "{accepted}"
        );
        let unproven = disturbed(&[NOISE, "path-not-proven: a request bypassed it"]);
        assert_eq!(outcome(&accepting_noise(&unproven)), "NOT VALID: path-not-proven: a request bypassed it");
    }
}
