//! Progress of a run on standard error: a live line on a terminal, a line for each trial elsewhere.

use experiment::schema::{LoadPoint, SeriesPoint, TrialRecord};
use experiment::units::format_duration;
use experiment::{Plan, PlannedTrial};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

/// So many of the last lines of a component that failed are shown.
const LAST_LINES: usize = 3;
/// Characters of a line that are shown.
const LINE_CHARACTERS: usize = 200;

/// Shows how far a run is.
pub(super) struct RunProgress {
    bar: ProgressBar,
    live: bool,
    trials: usize,
}

impl RunProgress {
    /// Says what is about to run, how long it takes and where it goes.
    pub(super) fn new(plan: &Plan, folder: &Path) -> Self {
        let live = std::io::stderr().is_terminal();
        let trials = plan.trials.len();
        let time = format_duration(Duration::from_secs(plan.estimated_time().as_secs()));
        let plural = if trials == 1 { "" } else { "s" };
        anstream::eprintln!("{}: {trials} trial{plural}, about {time}, into {}", plan.name, folder.display());
        let bar = if live { ProgressBar::new(trials as u64) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}  {elapsed} of about {eta}");
        bar.set_style(style.expect("the template is constant"));
        bar.enable_steady_tick(Duration::from_millis(500));
        bar.set_message("measuring this machine's floor");
        Self { bar, live, trials }
    }

    pub(super) fn trial_begins(&self, planned: &PlannedTrial) {
        self.bar.set_message(describe(planned));
    }

    pub(super) fn second(&self, point: &SeriesPoint) {
        let message = self.bar.message();
        let what = message.split("  ").next().unwrap_or_default();
        self.bar.set_message(format!("{what}  {}/s  p50 {:.3} ms", point.completed, point.p50_us / 1000.0));
    }

    pub(super) fn trial_ended(&self, planned: &PlannedTrial, record: &TrialRecord) {
        self.bar.inc(1);
        let outcome = match (&record.result, record.verdict.reasons.first()) {
            (_, Some(reason)) => format!("NOT VALID: {reason}"),
            (Some(result), None) => format!(
                "p50 {:.3} ms  p99 {:.3} ms",
                result.response_time_us.p50 / 1000.0,
                result.response_time_us.p99 / 1000.0
            ),
            (None, None) => "no result".to_owned(),
        };
        if self.live && record.verdict.valid {
            return;
        }
        let line = format!("{:>3}/{}  {}  {outcome}", planned.index + 1, self.trials, describe(planned));
        self.bar.suspend(|| {
            anstream::eprintln!("{line}");
            // The whole of them are in the report.
            for (component, lines) in &record.log_tails {
                for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
                    anstream::eprintln!("         {component}: {}", shortened(line));
                }
            }
        });
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A line of a log, as much as a terminal takes; what would act on the terminal is made blank.
fn shortened(line: &str) -> String {
    line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(LINE_CHARACTERS).collect()
}

/// `sidecar at 1000/s, repeat 2`.
fn describe(planned: &PlannedTrial) -> String {
    format!("{} at {}, repeat {}", planned.mode, strength(&planned.load), planned.repeat + 1)
}

fn strength(load: &LoadPoint) -> String {
    match (load.rate, load.clients) {
        (Some(rate), _) => format!("{rate}/s"),
        (None, Some(clients)) => format!("{clients} clients"),
        (None, None) => "no load".to_owned(),
    }
}
