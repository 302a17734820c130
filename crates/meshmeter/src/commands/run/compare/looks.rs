//! Looks at a comparison: after each repeat every figure is judged, and the comparison ends if all are decided or no further
//! repeat fits into the budget. Each look is written to `comparison.json`, so that a killed comparison has its last one.

use crate::commands::report::folder_failure;
use crate::commands::run::after_repeat::AfterRepeat;
use crate::commands::run::progress::RunProgress;
use crate::failure::Failure;
use experiment::environment::Clock;
use experiment::plan::ComparisonArm;
use report::folder::write_comparison;
use results::{
    COMPARISON_SCHEMA, ComparedFigure, Comparison, ComparisonEnd, ComparisonVerdict, FigureVerdict, Mode,
    TrialRecord, is_of_components,
};
use statistics::comparison::{Judge, Look, MIN_REPEATS, arm, environment_changes, missing};
use std::path::PathBuf;
use std::time::Duration;

/// Figures that a line about a look names.
const MAX_NAMED: usize = 3;

/// Subject of a comparison.
#[derive(Clone, Debug)]
pub(in crate::commands::run) struct Subject {
    pub name: String,
    pub seed: u64,
    /// Settings of base and head.
    pub settings: [Vec<String>; 2],
    pub modes_not_compared: Vec<Mode>,
}

/// The looks of a comparison so far.
pub(in crate::commands::run) struct Looks<'a> {
    subject: Subject,
    judge: &'a Judge,
    clock: &'a dyn Clock,
    budget: Duration,
    folder: PathBuf,
    trials: Vec<TrialRecord>,
    figures: Vec<ComparedFigure>,
    looks: usize,
    ended: ComparisonEnd,
    /// Time at which the last repeat ended, by the clock.
    since: Duration,
    began: Duration,
    /// Time of the longest repeat.
    longest: Duration,
}

impl<'a> Looks<'a> {
    /// Begins now.
    pub fn new(
        subject: Subject,
        judge: &'a Judge,
        clock: &'a dyn Clock,
        budget: Duration,
        folder: PathBuf,
    ) -> Self {
        let now = clock.now();
        Self {
            subject,
            judge,
            clock,
            budget,
            folder,
            trials: Vec::new(),
            figures: Vec::new(),
            looks: 0,
            ended: ComparisonEnd::Unfinished,
            since: now,
            began: now,
            longest: Duration::ZERO,
        }
    }

    /// Judges all figures after a repeat. Time alone, and not the figures, decides whether this look is the last one.
    fn look(&mut self, repeat: usize) {
        let now = self.clock.now();
        self.longest = self.longest.max(now.saturating_sub(self.since));
        self.since = now;
        self.looks = repeat + 1;
        let has_time = now.saturating_sub(self.began) + self.longest <= self.budget;
        let is_planned = self.looks < self.judge.looks();
        let look = Look { number: self.looks, is_last: !has_time || !is_planned };
        self.figures = self.judge.figures(&self.trials, look);
        let is_open = |figure: &ComparedFigure| figure.verdict == FigureVerdict::Inconclusive;
        self.ended = if !self.figures.iter().any(is_open) {
            ComparisonEnd::Decided
        } else if !is_planned {
            ComparisonEnd::Repeats
        } else if !has_time {
            ComparisonEnd::Budget
        } else {
            ComparisonEnd::Unfinished
        };
    }

    /// `look 5 of 16: 2 equivalent, 1 worse, 3 open (p99 of sidecar at 1000 requests/s: …)`.
    fn line(&self) -> String {
        let count = |verdict| self.figures.iter().filter(|figure| figure.verdict == verdict).count();
        let counted =
            [FigureVerdict::Worse, FigureVerdict::Better, FigureVerdict::Equivalent].map(|verdict| {
                let count = count(verdict);
                (count > 0).then(|| format!("{count} {}", report::comparison::verdict_word(verdict)))
            });
        let open: Vec<&ComparedFigure> =
            self.figures.iter().filter(|figure| figure.verdict == FigureVerdict::Inconclusive).collect();
        let mut parts: Vec<String> = counted.into_iter().flatten().collect();
        if !open.is_empty() {
            let named: Vec<String> =
                open.iter().take(MAX_NAMED).map(|figure| report::comparison::sentence(figure)).collect();
            parts.push(format!("{} open ({})", open.len(), named.join("; ")));
        }
        format!("look {} of at most {}: {}", self.looks, self.judge.looks(), parts.join(", "))
    }

    /// The comparison as it is now.
    pub fn comparison(&self) -> Comparison {
        let Subject { name, seed, settings, modes_not_compared } = self.subject.clone();
        let [base, head, control] = ComparisonArm::ALL.map(|one| {
            let settings = if one == ComparisonArm::Head { &settings[1] } else { &settings[0] };
            arm(&self.trials, one, settings)
        });
        let has_builds =
            self.trials.iter().any(|trial| trial.factors.keys().any(|key| is_of_components(key)));
        let environment_changes = environment_changes([&base, &head, &control], has_builds);
        let failures = self.failures();
        let has_ended =
            matches!(self.ended, ComparisonEnd::Decided | ComparisonEnd::Budget | ComparisonEnd::Repeats);
        let verdict = match ComparisonVerdict::of_figures(&self.figures) {
            _ if !has_ended => ComparisonVerdict::Failed,
            ComparisonVerdict::Worse => ComparisonVerdict::Worse,
            _ if !failures.is_empty() => ComparisonVerdict::Failed,
            other => other,
        };
        Comparison {
            schema: COMPARISON_SCHEMA.to_owned(),
            name,
            seed,
            base,
            head,
            control,
            looks: self.looks,
            looks_planned: self.judge.looks(),
            ended: self.ended,
            figures: self.figures.clone(),
            modes_not_compared,
            environment_changes,
            failures,
            verdict,
        }
    }

    fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        match self.ended {
            ComparisonEnd::Interrupted => failures.push(format!("interrupted after {}", repeats(self.looks))),
            ComparisonEnd::Failed => {
                failures.push(format!("the environment failed after {}", repeats(self.looks)));
            }
            ComparisonEnd::Unfinished => failures.push("the comparison has not ended".to_owned()),
            ComparisonEnd::Decided | ComparisonEnd::Budget | ComparisonEnd::Repeats => {}
        }
        if self.looks < MIN_REPEATS {
            failures.push(format!(
                "too few repeats: {} measured, and a verdict needs at least {MIN_REPEATS}",
                self.looks
            ));
        } else {
            failures.extend(missing(&self.figures, self.looks));
        }
        failures
    }

    /// Ends the comparison for a reason outside its figures, unless it has ended, and writes it.
    pub fn end(&mut self, ended: ComparisonEnd) -> Result<Comparison, Failure> {
        if self.ended == ComparisonEnd::Unfinished {
            self.ended = ended;
        }
        let comparison = self.comparison();
        write_comparison(&self.folder, &comparison).map_err(folder_failure)?;
        Ok(comparison)
    }
}

impl AfterRepeat for Looks<'_> {
    fn trial_ended(&mut self, trial: &TrialRecord) {
        self.trials.push(trial.clone());
    }

    fn goes_on(&mut self, repeat: usize, progress: &RunProgress) -> Result<bool, Failure> {
        self.look(repeat);
        progress.note(&self.line());
        write_comparison(&self.folder, &self.comparison()).map_err(folder_failure)?;
        Ok(self.ended == ComparisonEnd::Unfinished)
    }
}

fn repeats(number: usize) -> String {
    report::format::counted(number as u64, "repeat", "repeats")
}
