//! `meshmeter compare`: did it get worse?
//!
//! Two sets of settings become one plan with a control arm ([`Plan::comparison`](experiment::Plan::comparison)), which the
//! coordinator of runs executes. `arms.rs` reads both, `looks.rs` judges after each repeat and ends the run, `self_test.rs`
//! compares the machine with itself. The verdicts are those of [`statistics::comparison`], the texts those of
//! [`report::comparison`].

mod arms;
pub(super) mod looks;
mod self_test;

use super::clock::SystemClock;
use super::context::RunContext;
use super::coordinator::Coordinator;
use super::on_lab::{self, OnLab};
use super::progress::RunProgress;
use super::run_environment::RunEnvironment as _;
use super::{calibrate, check_folder, check_needs, create_folder, machine, provide_programs, resume, specs};
use crate::cli::{AutomationArgs, CompareArgs, ReportArgs};
use crate::commands::report::{Files, folder_failure, own_file, tables_of_runs, terminal_options};
use crate::failure::{FOUND_WORSE, Failure, INCONCLUSIVE, MEASUREMENT_FAILED};
use crate::output;
use arms::Arms;
use experiment::plan::ComparisonArm;
use looks::Looks;
use report::folder::{COMPARISON_REPORT_FILE, RunFolder, read_comparison, recorded_trials, write_comparison};
use report::profile;
use results::{Comparison, ComparisonEnd, ComparisonVerdict, FigureVerdict, Host, TrialRecord};
use statistics::comparison::{ALARM_RATE, arm};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(in crate::commands) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    if args.trials.profile && !args.dry_run {
        lab::profile::check()?;
    }
    if args.self_test {
        return self_test::run(args);
    }
    if let Some(folder) = &args.resume {
        return go_on(args, folder);
    }
    let arms = Arms::read(args)?;
    check_folder(args.out.as_deref(), args.overwrite)?;
    if args.dry_run {
        output::print(&arms.plan.to_string())?;
        output::print(&planned(&arms))?;
        if let Err(failure) = check_needs(&arms.plan) {
            failure.report();
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(status) = provide_programs(&arms.base, &arms.plan, &args.overrides, &args.releases)? {
        return Ok(status);
    }
    on_lab::enter(&format!("compare {}", arms.base.name), &args.overrides, |lab| measure(args, arms, lab))
}

/// Continues a comparison. One that has ended is printed again: its last look has spent the rest of its error rate.
fn go_on(args: &CompareArgs, folder: &Path) -> Result<ExitCode, Failure> {
    let comparison = existing(folder)?;
    if comparison.ended.is_by_itself() {
        return Outputs::new(args, Some(&report_in(folder)?), Some(folder)).publish(&comparison);
    }
    let arms = Arms::of_folder(folder, &comparison)?;
    if let Some(status) = provide_programs(&arms.base, &arms.plan, &args.overrides, &args.releases)? {
        return Ok(status);
    }
    on_lab::enter(&format!("compare {}", arms.base.name), &args.overrides, |lab| {
        measure_rest(args, folder, &comparison, arms, lab)
    })
}

/// Reads the comparison in a directory that must have one.
fn existing(folder: &Path) -> Result<Comparison, Failure> {
    read_comparison(folder).map_err(folder_failure)?.ok_or_else(|| {
        Failure::usage(format!("{} is not the folder of a comparison", folder.display()))
            .with_hint("`meshmeter run --resume` continues a run")
    })
}

/// Lines of `--dry-run` below the plan: error rate and margins, as far as they are known before the comparison.
fn planned(arms: &Arms) -> String {
    let modes = arms.modes();
    let calibration = calibrate::expected(&arms.plan).filter(|calibration| calibration.covers(&modes));
    let judge = arms.judge(calibration);
    let mut text = format!(
        "\nafter each of at most {} repeats every figure is judged; the comparison ends when all are decided\n",
        arms.base.repeats
    );
    let _ = writeln!(
        text,
        "if nothing changed, at most {:.1} % of comparisons call any figure worse or better",
        100.0 * ALARM_RATE
    );
    for (metric, cell, margin, source) in judge.planned() {
        let source = match source {
            results::MarginSource::User => "--margin",
            results::MarginSource::Calibration => "the calibration of this machine",
            results::MarginSource::Default => "the default",
        };
        let place = statistics::words::place(cell.key());
        let _ = writeln!(text, "margin of {} of {place}: {:.1} % ({source})", metric.key(), 100.0 * margin);
    }
    for cell in judge.without_p99() {
        let place = statistics::words::place(cell.key());
        let _ = writeln!(text, "p99 of {place} will be inconclusive: an arm has too few requests");
    }
    for mode in &arms.subject.modes_not_compared {
        let _ = writeln!(text, "mode {mode} is not compared: the settings cannot change it");
    }
    text
}

/// Measures both arms in a lab.
fn measure(args: &CompareArgs, mut arms: Arms, lab: &mut OnLab) -> Result<ExitCode, Failure> {
    check_environment(&arms, lab)?;
    let folder = new_folder(&arms, args.out.as_deref(), args.overwrite)?;
    let host = measured(args, &mut arms, lab)?;
    compare_and_publish(args, lab, folder, &host, &arms, None)
}

/// The machine, measured for the trials of both arms.
fn measured(args: &CompareArgs, arms: &mut Arms, lab: &mut OnLab) -> Result<Host, Failure> {
    let mut host = machine::described(lab.environment(), &arms.plan);
    let modes = arms.modes();
    machine::measure(&mut host, lab, &mut arms.plan, &modes, &args.trials)?;
    Ok(host)
}

/// Measures what a comparison still lacks.
fn measure_rest(
    args: &CompareArgs,
    folder: &Path,
    comparison: &Comparison,
    mut arms: Arms,
    lab: &mut OnLab,
) -> Result<ExitCode, Failure> {
    check_environment(&arms, lab)?;
    let (folder, earlier) = RunFolder::resume_comparison(folder).map_err(folder_failure)?;
    let now = machine::described(lab.environment(), &arms.plan);
    let host = resume::host(earlier.host, earlier.trials.len(), &now, &[])?;
    host.pacing.iter().for_each(|chosen| arms.plan.set_pacing(chosen.pacing));
    let recorded = Recorded { trials: earlier.trials, elapsed_s: comparison.course.elapsed_s.clone() };
    compare_and_publish(args, lab, folder, &host, &arms, Some(recorded))
}

/// Executes the plan of both arms, and publishes the result however it ended.
fn compare_and_publish(
    args: &CompareArgs,
    lab: &mut OnLab,
    folder: RunFolder,
    host: &Host,
    arms: &Arms,
    recorded: Option<Recorded>,
) -> Result<ExitCode, Failure> {
    let (report, path) = (report_in(folder.path())?, folder.path().to_owned());
    let (comparison, ended) = compare(args, lab, folder, host, arms, recorded)?;
    let status = Outputs::new(args, Some(&report), Some(&path)).publish(&comparison)?;
    ended.map(|()| status)
}

/// Creates the directory of a comparison. From now on it has a result, which says that the comparison has not ended.
fn new_folder(arms: &Arms, out: Option<&Path>, overwrite: bool) -> Result<RunFolder, Failure> {
    let folder = create_folder(&arms.base.name, out, overwrite, &arms.base.to_yaml())?;
    let judge = arms.judge(None);
    let clock = SystemClock::new();
    let looks = Looks::new(arms.subject.clone(), &judge, &clock, folder.path().to_owned());
    write_comparison(folder.path(), &looks.comparison()).map_err(folder_failure)?;
    folder.write_head(&arms.head.to_yaml()).map_err(folder_failure)?;
    Ok(folder)
}

/// Trials and looks that a comparison has from before it is continued.
struct Recorded {
    trials: Vec<TrialRecord>,
    /// Measuring time up to each look, seconds.
    elapsed_s: Vec<f64>,
}

/// Executes the plan of both arms until its looks have decided. Whatever ends the comparison, its result is written. The second
/// value is the failure that ended it.
fn compare(
    args: &CompareArgs,
    lab: &mut OnLab,
    mut folder: RunFolder,
    host: &Host,
    arms: &Arms,
    recorded: Option<Recorded>,
) -> Result<(Comparison, Result<(), Failure>), Failure> {
    folder.write_host(host).map_err(folder_failure)?;
    let judge = arms.judge(host.calibration.clone());
    lab.keep_logs_in(&folder);
    let mut progress = RunProgress::new(&arms.plan, folder.path());
    lab.report_progress_to(progress.sink());
    let stop = lab.stop_request();
    let clock = SystemClock::new();
    let context = RunContext { stop: &stop, clock: &clock, live: None, profile: args.trials.profile };
    let mut looks = Looks::new(arms.subject.clone(), &judge, &clock, folder.path().to_owned());
    let mut coordinator =
        Coordinator::new(&arms.plan, lab.environment(), &mut folder, &mut progress, context);
    if let Some(Recorded { trials, elapsed_s }) = recorded {
        looks = looks.after(&trials, &elapsed_s);
        coordinator = coordinator.after(trials);
    }
    let ended = coordinator.followed_by(&mut looks).run();
    progress.finish();
    let why = if ended.is_err() { ComparisonEnd::Failed } else { ComparisonEnd::Interrupted };
    Ok((looks.end(why)?, ended))
}

/// Checks that every mode of both arms can run here: one that cannot is an error, since a gate must not compare less than it
/// was told to.
fn check_environment(arms: &Arms, lab: &mut OnLab) -> Result<(), Failure> {
    for spec in specs(&arms.plan) {
        lab.environment().check_mode(spec.mesh, spec.mode, &spec.components).map_err(|error| {
            let hint = error.nearest_hint().map(str::to_owned);
            let choose = "--set modes=[…] names the modes to compare".to_owned();
            Failure::environment(&error).with_hint(hint.unwrap_or(choose))
        })?;
        lab.environment().check_scenario(spec.ingress.scenario)?;
        lab.environment().check_settings(spec)?;
    }
    lab.check_before(&arms.plan)
}

/// Requested outputs of a comparison.
pub(in crate::commands) struct Outputs<'a> {
    /// File of the HTML report, if there is one.
    report: Option<&'a Path>,
    /// Directory with its trials, if it has any.
    folder: Option<&'a Path>,
    automation: &'a AutomationArgs,
    json: bool,
    is_strict: bool,
}

impl<'a> Outputs<'a> {
    pub(in crate::commands) fn new(
        args: &'a CompareArgs,
        report: Option<&'a Path>,
        folder: Option<&'a Path>,
    ) -> Self {
        Self { report, folder, automation: &args.automation, json: args.json, is_strict: args.strict }
    }

    /// Writes the report and what CI systems read, and prints the result. Returns the exit status of its verdict.
    pub(in crate::commands) fn publish(&self, comparison: &Comparison) -> Result<ExitCode, Failure> {
        let Self { automation, is_strict, .. } = *self;
        let trials = self.folder.and_then(|folder| Some((folder, recorded_trials(folder).ok()?)));
        let profiles = trials.map(|(folder, trials)| profile::read(folder, &trials)).unwrap_or_default();
        let mut files = Files::default();
        files.write("report", self.report, || report::html::render_comparison(comparison, &profiles))?;
        let junit = || report::junit::comparison(comparison, is_strict);
        files.write("JUnit", automation.junit.as_deref(), junit)?;
        let markdown = || report::comparison::markdown(comparison);
        files.write("Markdown", automation.markdown.as_deref(), markdown)?;
        files.print(|| match self.json {
            true => output::json(comparison),
            false => report::comparison::text(comparison, terminal_options()),
        })?;
        Ok(status(comparison, is_strict))
    }
}

/// Report in the directory of a comparison.
pub(in crate::commands) fn report_in(folder: &Path) -> Result<PathBuf, Failure> {
    own_file(folder, COMPARISON_REPORT_FILE)
}

fn status(comparison: &Comparison, is_strict: bool) -> ExitCode {
    let is_open = comparison.with_verdict(FigureVerdict::Inconclusive).next().is_some();
    match comparison.verdict {
        ComparisonVerdict::Failed => ExitCode::from(MEASUREMENT_FAILED),
        ComparisonVerdict::Worse => ExitCode::from(FOUND_WORSE),
        _ if is_strict && is_open => ExitCode::from(INCONCLUSIVE),
        _ => ExitCode::SUCCESS,
    }
}

/// `meshmeter report` of a comparison: writes its report and prints its result again. `None` if the directory is not a
/// comparison.
pub(in crate::commands) fn report(args: &ReportArgs) -> Result<Option<ExitCode>, Failure> {
    let Some(mut comparison) = read_comparison(&args.folder).map_err(folder_failure)? else {
        return Ok(None);
    };
    let mut runs_only = [("--beside", &args.beside)].into_iter().chain(tables_of_runs(args));
    let noise = args.noise.accept_noise.then_some("--accept-noise");
    if let Some(option) = runs_only.find_map(|(option, value)| value.as_ref().map(|_| option)).or(noise) {
        let folder = args.folder.display();
        return Err(Failure::usage(format!("{option}: {folder} is a comparison, not a run"))
            .with_hint("--output, --json, --markdown and --junit write a comparison"));
    }
    if comparison.ended == ComparisonEnd::Unfinished {
        count_trials(&mut comparison, &recorded_trials(&args.folder).map_err(folder_failure)?);
    }
    let report = args.output.clone().map_or_else(|| report_in(&args.folder), Ok)?;
    let ReportArgs { automation, json, strict, .. } = args;
    let outputs = Outputs {
        report: Some(&report),
        folder: Some(&args.folder),
        automation,
        json: *json,
        is_strict: *strict,
    };
    outputs.publish(&comparison).map(Some)
}

/// Counts the trials of a comparison that was killed, or goes on: those after its last look too.
fn count_trials(comparison: &mut Comparison, trials: &[TrialRecord]) {
    let Comparison { base, head, control, .. } = comparison;
    for (kind, own) in ComparisonArm::ALL.into_iter().zip([base, head, control]) {
        *own = arm(trials, kind, &own.settings);
    }
}
