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
use super::{calibrate, check_needs, default_folder, pacing, runs_static_envoy, specs};
use crate::cli::{CompareArgs, ReportArgs};
use crate::commands::releases;
use crate::commands::report::{Files, check_destinations, folder_failure, terminal_options};
use crate::failure::{FOUND_WORSE, Failure, INCONCLUSIVE, MEASUREMENT_FAILED};
use crate::noise_floor;
use crate::output;
use arms::Arms;
use experiment::plan::ComparedCell;
use lab::observe::host::{Sources, describe};
use looks::{Looks, Subject};
use report::folder::{Existing, RunFolder, read_comparison};
use results::{Build, Calibration, Comparison, ComparisonEnd, ComparisonVerdict, FigureVerdict};
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
    let settings = arms.plan.trials.iter().map(|trial| &trial.spec.components);
    if let Some(status) = releases::provide(releases::named(settings), &args.releases)? {
        return Ok(status);
    }
    if runs_static_envoy(&arms.base, &arms.plan)
        && let Some(status) = releases::provide_envoy(&(&args.overrides).into(), &args.releases)?
    {
        return Ok(status);
    }
    on_lab::enter(&format!("compare {}", arms.base.name), &args.overrides, |lab| measure(args, arms, lab))
}

/// Lines of `--dry-run` below the plan: error rate and margins, as far as they are known before the comparison.
fn planned(args: &CompareArgs, arms: &Arms) -> String {
    let pacing = pacing::choose(&arms.plan, super::allowed_cpus(), None).pacing;
    let calibration = calibrate::kept::read(&calibrate::machine(&describe(&Sources::read())), pacing);
    let judge = judge(args, arms, calibration);
    let mut text = format!(
        "\nafter each of at most {} repeats every figure is judged; the comparison ends when all are decided\n",
        arms.looks
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
    Judge::new(&arms.base, &arms.cells, arms.looks, &margins)
}

/// Measures both arms in a lab.
fn measure(args: &CompareArgs, mut arms: Arms, lab: &mut OnLab) -> Result<ExitCode, Failure> {
    check_environment(&arms, lab)?;
    let path = args.out.clone().unwrap_or_else(|| default_folder(&arms.base.name));
    let existing = if args.overwrite { Existing::Replace } else { Existing::Keep };
    let mut folder = RunFolder::create(&path, existing).map_err(folder_failure)?;
    folder.write_experiment(&arms.base.to_yaml()).map_err(folder_failure)?;
    folder.write_head(&arms.head.to_yaml()).map_err(folder_failure)?;
    let mut host = lab.environment().host();
    for spec in specs(&arms.plan) {
        for version in lab.environment().versions_for(spec) {
            if !host.versions.contains(&version) {
                host.versions.push(version);
            }
        }
    }
    host.build = Some(Build::this().clone());
    let floor = lab.measure_noise_floor(args.noise_floor.unwrap_or(noise_floor::USUAL_TIME))?;
    let pauses = floor.as_ref().and_then(|floor| floor.pauses.clone());
    let pacing = lab.choose_pacing(&arms.plan, pauses.as_ref());
    arms.plan.set_pacing(pacing.pacing);
    let calibration = lab.calibration(args.calibrate, pacing.pacing)?;
    host.calibration = calibration.filter(|calibration| calibration.covers(&modes(&arms.cells)));
    host.pacing = Some(pacing);
    host.noise_floor = floor.or(host.noise_floor);
    folder.write_host(&host).map_err(folder_failure)?;
    let judge = judge(args, &arms, host.calibration.clone());
    let subject = Subject {
        name: arms.base.name.clone(),
        seed: arms.plan.seed,
        settings: arms.settings.clone(),
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
    publish(&comparison, args)?;
    ended.map(|()| status(&comparison, args.strict))
}

fn modes(cells: &[ComparedCell]) -> Vec<results::Mode> {
    let mut modes: Vec<results::Mode> = cells.iter().map(|cell| cell.base.mode).collect();
    modes.dedup();
    modes
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
fn publish(comparison: &Comparison, args: &CompareArgs) -> Result<(), Failure> {
    let mut files = Files::default();
    files.write("JUnit", args.automation.junit.as_deref(), || {
        report::junit::comparison(comparison, args.strict)
    })?;
    files.write("Markdown", args.automation.markdown.as_deref(), || {
        report::comparison::markdown(comparison)
    })?;
    files.print(|| text(comparison, args.json))
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
    let runs_only = [
        ("--beside", &args.beside),
        ("--output", &args.output),
        ("--csv", &args.csv),
        ("--latency-csv", &args.latency_csv),
        ("--drivers-csv", &args.drivers_csv),
        ("--services-csv", &args.services_csv),
        ("--edges-csv", &args.edges_csv),
    ];
    if let Some((option, _)) = runs_only.iter().find(|(_, value)| value.is_some()) {
        let folder = args.folder.display();
        return Err(Failure::usage(format!("{option}: {folder} is a comparison, not a run"))
            .with_hint("--json, --markdown and --junit write a comparison"));
    }
    let mut files = Files::default();
    files
        .write("JUnit", args.automation.junit.as_deref(), || report::junit::comparison(&comparison, false))?;
    files.write("Markdown", args.automation.markdown.as_deref(), || {
        report::comparison::markdown(&comparison)
    })?;
    files.print(|| text(&comparison, args.json))?;
    Ok(Some(status(&comparison, false)))
}
