//! Both arms of a comparison as experiments, and how many repeats fit into its budget.

use super::looks::Subject;
use crate::cli::CompareArgs;
use crate::commands::report::folder_failure;
use crate::commands::run::{ExperimentSource, draw_seed, resume, trial_overrides};
use crate::failure::Failure;
use experiment::plan::{ComparedCell, compared_cells};
use experiment::{Experiment, Override, Plan};
use report::folder::{EXPERIMENT_FILE, HEAD_FILE, read_arms};
use results::units::format_duration;
use results::{Calibration, Comparison, Mode};
use statistics::comparison::{Judge, MIN_REPEATS, Margins};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Most repeats of a comparison.
const MAX_REPEATS: usize = 100;

/// Both arms, read and planned. The repeats of the base are the maximum number of looks.
pub(super) struct Arms {
    pub base: Experiment,
    pub head: Experiment,
    pub cells: Vec<ComparedCell>,
    pub plan: Plan,
    pub subject: Subject,
}

impl Arms {
    /// Reads both arms and plans as many repeats as fit into the budget.
    pub(super) fn read(args: &CompareArgs) -> Result<Self, Failure> {
        check_keys(args)?;
        let sources = Sources::read(args)?;
        let single = sources.parse(args, 1)?;
        let seed = args.trials.seed.or(single[0].seed).unwrap_or_else(draw_seed);
        let settings = [args.base.clone(), args.head.clone()];
        let cells = cells(&single, &settings)?;
        let time = Plan::comparison(&single[0], &single[1], &cells, seed).estimated_time();
        let looks = repeats_within(args.budget(), time, args.repeats.map(usize::from))?;
        let mut arms = sources.parse(args, looks)?;
        arms.iter_mut().for_each(|arm| arm.seed = Some(seed));
        Ok(Self::new(arms, cells, settings, args.budget(), args.margin))
    }

    /// Reads both arms of a comparison that is to be continued, as they were resolved when it began.
    pub(super) fn of_folder(folder: &Path, comparison: &Comparison) -> Result<Self, Failure> {
        let [base, head] = read_arms(folder).map_err(folder_failure)?;
        let arms = [
            resume::parse(&folder.join(EXPERIMENT_FILE), &base)?,
            resume::parse(&folder.join(HEAD_FILE), &head)?,
        ];
        let settings = [comparison.base.settings.clone(), comparison.head.settings.clone()];
        let cells = cells(&arms, &settings)?;
        let course = &comparison.course;
        let budget = Duration::try_from_secs_f64(course.budget_s).unwrap_or_default();
        if budget.is_zero() || course.elapsed_s.len() != comparison.looks {
            return Err(Failure::usage(format!("{} does not say when it was looked at", folder.display()))
                .with_hint("measure anew with --out"));
        }
        Ok(Self::new(arms, cells, settings, budget, course.margin))
    }

    /// Plans arms that have a seed.
    pub(super) fn new(
        [base, head]: [Experiment; 2],
        cells: Vec<ComparedCell>,
        settings: [Vec<String>; 2],
        budget: Duration,
        margin: Option<f64>,
    ) -> Self {
        let seed = base.seed.expect("arms have a seed");
        let is_compared = |mode: &Mode| cells.iter().any(|cell| cell.base.mode == *mode);
        let modes_not_compared = base.modes.iter().copied().filter(|mode| !is_compared(mode)).collect();
        let subject = Subject { name: base.name.clone(), seed, settings, modes_not_compared, budget, margin };
        let plan = Plan::comparison(&base, &head, &cells, seed);
        Self { base, head, cells, plan, subject }
    }

    /// Compared modes.
    pub(super) fn modes(&self) -> Vec<Mode> {
        self.cells.iter().map(|cell| cell.base.mode).collect()
    }

    pub(super) fn judge(&self, calibration: Option<Calibration>) -> Judge {
        let window_s = self.base.load.duration.as_secs_f64();
        let margins = Margins { user: self.subject.margin, calibration, window_s };
        Judge::new([&self.base, &self.head], &self.cells, self.base.repeats, &margins)
    }
}

/// Keys that hold for both arms, with the option that sets them.
const OF_BOTH_ARMS: [(&str, Option<&str>); 10] = [
    ("repeats", Some("--repeats")),
    ("retakes", Some("--retakes")),
    ("seed", Some("--seed")),
    ("load.pacing", Some("--pacing")),
    ("name", None),
    ("question", None),
    ("headline", None),
    ("objective", None),
    ("fresh", None),
    ("resolve", None),
];

/// Refuses keys that cannot differ between the arms: the comparison would be one of the base with itself.
fn check_keys(args: &CompareArgs) -> Result<(), Failure> {
    let settings =
        |option, all: &[String]| all.iter().map(move |setting| (option, setting.clone())).collect::<Vec<_>>();
    let of_arms = settings("--base", &args.base).into_iter().chain(settings("--head", &args.head));
    let of_both = settings("--set", &args.trials.set).into_iter();
    for (option, setting) in of_arms.chain(of_both) {
        let Some((key, _)) = setting.split_once('=') else { continue };
        let section = key.trim().split('.').next().unwrap_or_default();
        let is_it = |(of_both, _): &&(&str, Option<&str>)| *of_both == key.trim() || *of_both == section;
        let Some((of_both, own)) = OF_BOTH_ARMS.iter().find(is_it) else { continue };
        let hint = match own {
            Some(own) => format!("{own} sets it"),
            None if option == "--set" => continue,
            None => format!("--set {setting} sets it for both"),
        };
        let reason = format!("{option} {setting}: `{of_both}` is the same for both arms");
        return Err(Failure::usage(reason).with_hint(hint));
    }
    Ok(())
}

/// Cells that both arms have and that their settings can change.
fn cells([base, head]: &[Experiment; 2], settings: &[Vec<String>; 2]) -> Result<Vec<ComparedCell>, Failure> {
    // Two files, whose names are no settings, may differ in anything.
    let named = settings.iter().flatten().filter_map(|setting| setting.split_once('='));
    let keys: BTreeSet<&str> = named.map(|(key, _)| key.trim()).collect();
    let keys: Vec<&str> = keys.into_iter().collect();
    let cells = compared_cells(base, head, &keys).map_err(|reason| {
        Failure::usage(format!("compare base and head: {reason}"))
            .with_hint("a key that holds a list in the study must be set in --base and in --head")
    })?;
    if cells.is_empty() {
        let modes: Vec<&str> = base.modes.iter().map(|mode| mode.name()).collect();
        return Err(Failure::usage(format!("{} cannot change mode {}", keys.join(", "), modes.join(" or "))));
    }
    Ok(cells)
}

/// Repeats of this length that fit into the budget, at most `most`.
pub(super) fn repeats_within(
    budget: Duration,
    repeat: Duration,
    most: Option<usize>,
) -> Result<usize, Failure> {
    let fitting = (budget.as_secs_f64() / repeat.as_secs_f64().max(f64::MIN_POSITIVE)) as usize;
    if fitting < MIN_REPEATS {
        let seconds = Duration::from_secs((repeat.as_secs_f64() * MIN_REPEATS as f64).ceil() as u64);
        return Err(Failure::usage(format!(
            "a repeat takes about {}, so --budget {} has room for {fitting}, and a verdict needs {MIN_REPEATS}",
            format_duration(Duration::from_secs(repeat.as_secs_f64().ceil() as u64)),
            format_duration(budget)
        ))
        .with_hint(format!(
            "--budget {} at least; a shorter --duration, or fewer modes and loads (--set modes=[sidecar]), make repeats shorter",
            format_duration(seconds)
        )));
    }
    Ok(fitting.min(MAX_REPEATS).min(most.unwrap_or(MAX_REPEATS)))
}

/// Texts that both arms are read from.
enum Sources<'a> {
    /// A study with settings for each arm.
    Study(ExperimentSource<'a>),
    /// A file per arm.
    Files([ExperimentSource<'a>; 2]),
}

impl<'a> Sources<'a> {
    fn read(args: &'a CompareArgs) -> Result<Self, Failure> {
        let given = [("--base", &args.base), ("--head", &args.head)];
        let Some(study) = &args.experiment else {
            let file = |(option, values): (&str, &'a Vec<String>)| match values.as_slice() {
                [file] if !file.contains('=') => ExperimentSource::read(file),
                _ => Err(Failure::usage(format!("{option} {}: settings need a study", values.join(" ")))
                    .with_hint("name the study last, or give an experiment file each to --base and --head")),
            };
            let [base, head] = given;
            return Ok(Self::Files([file(base)?, file(head)?]));
        };
        for (option, values) in given {
            if let Some(value) = values.iter().find(|value| !value.contains('=')) {
                return Err(Failure::usage(format!("{option} {value}: expected KEY=VALUE beside a study"))
                    .with_hint("two experiment files are compared without a study"));
            }
        }
        ExperimentSource::read(study).map(Self::Study)
    }

    /// Base and head with this many repeats.
    fn parse(&self, args: &CompareArgs, repeats: usize) -> Result<[Experiment; 2], Failure> {
        let mut common = trial_overrides(&args.trials);
        common.push(Override::repeats(repeats.to_string()));
        let with = |option: &str, settings: &[String]| -> Vec<Override> {
            let own = settings.iter().map(|setting| Override::assignment_by(option, setting));
            common.iter().cloned().chain(own).collect()
        };
        match self {
            Self::Study(source) => {
                Ok([source.parse(&with("--base", &args.base))?, source.parse(&with("--head", &args.head))?])
            }
            Self::Files([base, head]) => Ok([base.parse(&common)?, head.parse(&common)?]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_decides_how_often_cells_are_measured() {
        let second = Duration::from_secs(1);
        assert_eq!(repeats_within(600 * second, 30 * second, None).unwrap(), 20);
        assert_eq!(repeats_within(600 * second, 30 * second, Some(8)).unwrap(), 8);
        assert_eq!(repeats_within(600 * second, 30 * second, Some(50)).unwrap(), 20);
        assert_eq!(repeats_within(600 * second, second, None).unwrap(), 100);
        assert!(repeats_within(100 * second, 30 * second, None).is_err());
    }
}
