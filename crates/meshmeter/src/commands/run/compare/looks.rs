//! Looks at a comparison: after each repeat every figure is judged, and the comparison ends if all are decided or no further
//! repeat fits into the budget. Each look is written to `comparison.json`, so that a killed comparison has its last one.
//!
//! A comparison that is continued makes its earlier looks again, from the trials up to each of them and at the time at which it
//! was made: none is added, and none of them was the last.

use crate::commands::report::folder_failure;
use crate::commands::run::after_repeat::AfterRepeat;
use crate::commands::run::progress::RunProgress;
use crate::failure::Failure;
use experiment::environment::Clock;
use experiment::plan::ComparisonArm;
use report::folder::write_comparison;
use results::{
    COMPARISON_SCHEMA, ComparedFigure, Comparison, ComparisonCourse, ComparisonEnd, ComparisonVerdict,
    FigureVerdict, InconclusiveReason, Mode, TrialRecord, is_of_components,
};
use statistics::comparison::{Judge, Look, MIN_REPEATS, arm, environment_changes, missing};
use std::borrow::Cow;
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
    /// Time for all trials.
    pub budget: Duration,
    /// Margin that the user set.
    pub margin: Option<f64>,
}

/// The looks of a comparison so far.
pub(in crate::commands::run) struct Looks<'a> {
    subject: Subject,
    judge: &'a Judge,
    clock: &'a dyn Clock,
    folder: PathBuf,
    trials: Vec<TrialRecord>,
    figures: Vec<ComparedFigure>,
    looks: usize,
    ended: ComparisonEnd,
    course: ComparisonCourse,
    /// Time at which this part of the comparison began, by the clock.
    began: Duration,
    /// Measuring time up to each look before it was continued, seconds.
    earlier_s: Vec<f64>,
    /// Time of the longest repeat, seconds.
    longest_s: f64,
}

impl<'a> Looks<'a> {
    /// Begins now.
    pub fn new(subject: Subject, judge: &'a Judge, clock: &'a dyn Clock, folder: PathBuf) -> Self {
        let course = ComparisonCourse {
            budget_s: subject.budget.as_secs_f64(),
            margin: subject.margin,
            ..ComparisonCourse::default()
        };
        Self {
            subject,
            judge,
            clock,
            folder,
            trials: Vec::new(),
            figures: Vec::new(),
            looks: 0,
            ended: ComparisonEnd::Unfinished,
            course,
            began: clock.now(),
            earlier_s: Vec::new(),
            longest_s: 0.0,
        }
    }

    /// Continues a comparison that has these trials and has made looks after these times.
    pub fn after(mut self, trials: &[TrialRecord], elapsed_s: &[f64]) -> Self {
        self.trials = trials.to_vec();
        self.earlier_s = elapsed_s.to_vec();
        self
    }

    /// Judges all figures after a repeat. Time alone, and not the figures, decides whether this look is the last one.
    fn look(&mut self, repeat: usize) {
        let earlier_s = self.earlier_s.get(repeat).copied();
        let in_this_part_s = self.clock.now().saturating_sub(self.began).as_secs_f64();
        let elapsed_s = earlier_s.unwrap_or_else(|| self.earlier_s.last().unwrap_or(&0.0) + in_this_part_s);
        let last_s = self.course.elapsed_s.last().copied().unwrap_or_default();
        self.longest_s = self.longest_s.max(elapsed_s - last_s);
        self.looks = repeat + 1;
        let has_time = earlier_s.is_some() || elapsed_s + self.longest_s <= self.course.budget_s;
        let is_planned = self.looks < self.judge.looks();
        let look = Look { number: self.looks, is_last: !has_time || !is_planned };
        self.figures = self.judge.figures(&self.trials_until(repeat), look);
        self.course.elapsed_s.push(elapsed_s);
        self.course.add(self.looks, &self.figures);
        self.ended = if !self.figures.iter().any(may_be_decided) {
            ComparisonEnd::Decided
        } else if !is_planned {
            ComparisonEnd::Repeats
        } else if !has_time {
            ComparisonEnd::Budget
        } else {
            ComparisonEnd::Unfinished
        };
    }

    /// Trials up to this repeat: a comparison that is continued has later ones too.
    fn trials_until(&self, repeat: usize) -> Cow<'_, [TrialRecord]> {
        let is_in = |trial: &&TrialRecord| trial.repeat <= repeat;
        match self.trials.iter().all(|trial| is_in(&trial)) {
            true => Cow::Borrowed(&self.trials),
            false => Cow::Owned(self.trials.iter().filter(is_in).cloned().collect()),
        }
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
        let Subject { name, seed, settings, modes_not_compared, .. } = self.subject.clone();
        let [base, head, control] = ComparisonArm::ALL.map(|one| {
            let settings = if one == ComparisonArm::Head { &settings[1] } else { &settings[0] };
            arm(&self.trials, one, settings)
        });
        let has_builds =
            self.trials.iter().any(|trial| trial.factors.keys().any(|key| is_of_components(key)));
        let environment_changes = environment_changes([&base, &head, &control], has_builds);
        let failures = self.failures();
        let (is_void, lacks_data) = (!self.ended.is_by_itself(), !failures.is_empty());
        let verdict = ComparisonVerdict::new(&self.figures, is_void, lacks_data);
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
            course: self.course.clone(),
            verdict,
            finished: None,
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
            ComparisonEnd::Decided
            | ComparisonEnd::Budget
            | ComparisonEnd::Repeats
            | ComparisonEnd::Recorded => {}
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
        if repeat < self.earlier_s.len() {
            return Ok(self.ended == ComparisonEnd::Unfinished);
        }
        progress.note(&self.line());
        write_comparison(&self.folder, &self.comparison()).map_err(folder_failure)?;
        Ok(self.ended == ComparisonEnd::Unfinished)
    }
}

/// True if further repeats may decide a figure.
fn may_be_decided(figure: &ComparedFigure) -> bool {
    figure.verdict == FigureVerdict::Inconclusive && figure.reason != Some(InconclusiveReason::TooFewRequests)
}

fn repeats(number: usize) -> String {
    report::format::counted(number as u64, "repeat", "repeats")
}
