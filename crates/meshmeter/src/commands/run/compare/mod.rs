//! `meshmeter compare`: did it get worse?
//!
//! Two sets of settings become one plan with a control arm ([`Plan::comparison`](experiment::Plan::comparison)), which the
//! coordinator of runs executes. `arms.rs` reads both, `looks.rs` judges after each repeat and ends the run. The verdicts are
//! those of [`statistics::comparison`], the texts those of [`report::comparison`].

mod arms;
pub(super) mod looks;

use super::clock::SystemClock;
use super::context::RunContext;
use super::coordinator::Coordinator;
use super::on_lab::{self, OnLab};
use super::progress::RunProgress;
use super::run_environment::RunEnvironment as _;
use super::{calibrate, check_needs, create_folder, machine, provide_programs, specs};
use crate::cli::{AutomationArgs, CompareArgs, ReportArgs};
use crate::commands::report::{Files, check_destinations, files_of_runs, folder_failure, terminal_options};
use crate::failure::{FOUND_WORSE, Failure, INCONCLUSIVE, MEASUREMENT_FAILED};
use crate::output;
use arms::Arms;
use looks::{Looks, Subject};
use report::folder::read_comparison;
use results::{Calibration, Comparison, ComparisonEnd, ComparisonVerdict, FigureVerdict, Mode};
use statistics::comparison::{ALARM_RATE, Judge, Margins};
use std::fmt::Write as _;
use std::process::ExitCode;

pub(in crate::commands) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    check_destinations(args.json, &args.automation)?;
    let arms = Arms::read(args)?;
    if args.dry_run {
        output::print(&arms.plan.to_string())?;
        output::print(&planned(args, &arms))?;
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

/// Lines of `--dry-run` below the plan: error rate and margins, as far as they are known before the comparison.
fn planned(args: &CompareArgs, arms: &Arms) -> String {
    let judge = judge(args, arms, calibrate::expected(&arms.plan));
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
    for mode in &arms.modes_not_compared {
        let _ = writeln!(text, "mode {mode} is not compared: the settings cannot change it");
    }
    text
}

fn judge(args: &CompareArgs, arms: &Arms, calibration: Option<Calibration>) -> Judge {
    let window_s = arms.base.load.duration.as_secs_f64();
    let margins = Margins { user: args.margin, calibration, window_s };
    Judge::new(&arms.base, &arms.cells, arms.base.repeats, &margins)
}

/// Measures both arms in a lab.
fn measure(args: &CompareArgs, mut arms: Arms, lab: &mut OnLab) -> Result<ExitCode, Failure> {
    check_environment(&arms, lab)?;
    let mut folder =
        create_folder(&arms.base.name, args.out.as_deref(), args.overwrite, &arms.base.to_yaml())?;
    folder.write_head(&arms.head.to_yaml()).map_err(folder_failure)?;
    let mut host = machine::described(lab.environment(), &arms.plan);
    let modes: Vec<Mode> = arms.cells.iter().map(|cell| cell.base.mode).collect();
    machine::measure(&mut host, lab, &mut arms.plan, &modes, &args.trials)?;
    folder.write_host(&host).map_err(folder_failure)?;
    let judge = judge(args, &arms, host.calibration.clone());
    let subject = Subject {
        name: arms.base.name.clone(),
        seed: arms.plan.seed,
        settings: [args.base.clone(), args.head.clone()],
        modes_not_compared: arms.modes_not_compared.clone(),
    };
    lab.keep_logs_in(&folder);
    let mut progress = RunProgress::new(&arms.plan, folder.path());
    lab.report_progress_to(progress.sink());
    let stop = lab.stop_request();
    let clock = SystemClock::new();
    let context = RunContext { stop: &stop, clock: &clock, live: None };
    let mut looks = Looks::new(subject, &judge, &clock, args.budget, folder.path().to_owned());
    let ended = Coordinator::new(&arms.plan, lab.environment(), &mut folder, &mut progress, context)
        .followed_by(&mut looks)
        .run();
    progress.finish();
    let why = if ended.is_err() { ComparisonEnd::Failed } else { ComparisonEnd::Interrupted };
    // Whatever ended the comparison, its trials are reported.
    let comparison = looks.end(why)?;
    let status = publish(&comparison, &args.automation, args.json, args.strict)?;
    ended.map(|()| status)
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

/// Writes what CI systems read, and prints the result.
fn publish(
    comparison: &Comparison,
    automation: &AutomationArgs,
    json: bool,
    is_strict: bool,
) -> Result<ExitCode, Failure> {
    let mut files = Files::default();
    files.write("JUnit", automation.junit.as_deref(), || report::junit::comparison(comparison, is_strict))?;
    files.write("Markdown", automation.markdown.as_deref(), || report::comparison::markdown(comparison))?;
    files.print(|| text(comparison, json))?;
    Ok(status(comparison, is_strict))
}

fn text(comparison: &Comparison, json: bool) -> String {
    if json { output::json(comparison) } else { report::comparison::text(comparison, terminal_options()) }
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

/// `meshmeter report` of a comparison: prints its result again. `None` if the directory is not a comparison.
pub(in crate::commands) fn report(args: &ReportArgs) -> Result<Option<ExitCode>, Failure> {
    let Some(comparison) = read_comparison(&args.folder).map_err(folder_failure)? else { return Ok(None) };
    let mut runs_only = [("--beside", &args.beside)].into_iter().chain(files_of_runs(args));
    let noise = args.noise.accept_noise.then_some("--accept-noise");
    if let Some(option) = runs_only.find_map(|(option, value)| value.as_ref().map(|_| option)).or(noise) {
        let folder = args.folder.display();
        return Err(Failure::usage(format!("{option}: {folder} is a comparison, not a run"))
            .with_hint("--json, --markdown and --junit write a comparison"));
    }
    publish(&comparison, &args.automation, args.json, false).map(Some)
}
