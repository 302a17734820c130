//! `meshmeter compare` of finished runs, with a history or without one.

use super::subject;
use crate::cli::{CompareArgs, TrialArgs};
use crate::commands::history::read_history;
use crate::commands::report::{ANOTHER_FOLDER, folder_failure};
use crate::commands::run::compare::{Outputs, report_in};
use crate::failure::Failure;
use components::Overrides;
use report::folder::{COMPARISON_FILE, COMPARISON_REPORT_FILE, FolderError, RUN_FILES, write_comparison};
use report::history_file::HistoryFile;
use results::Comparison;
use statistics::history::{History, Recorded, Request, compare_runs, compare_with_history};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    check_options(args)?;
    if let Some(folder) = &args.out {
        check_folder(folder, args.overwrite)?;
    }
    let comparison = comparison(args)?;
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::environment(&error).about(&format!("create {}", folder.display())))?;
        write_comparison(folder, &comparison).map_err(folder_failure)?;
    }
    let report = args.out.as_deref().map(report_in).transpose()?;
    Outputs::new(args, report.as_deref(), None).publish(&comparison)
}

/// Refuses options that only a measurement has.
fn check_options(args: &CompareArgs) -> Result<(), Failure> {
    let TrialArgs { retakes, duration, pacing, noise_floor, calibrate, scale, set, profile, seed } =
        &args.trials;
    let given = [
        ("--budget", args.budget.is_some()),
        ("--repeats", args.repeats.is_some()),
        ("--dry-run", args.dry_run),
        ("--retakes", retakes.is_some()),
        ("--duration", duration.is_some()),
        ("--pacing", pacing.is_some()),
        ("--noise-floor", noise_floor.is_some()),
        ("--calibrate", *calibrate),
        ("--scale", scale.is_some()),
        ("--set", !set.is_empty()),
        ("--profile", *profile),
        ("--seed", seed.is_some()),
        ("--offline", args.releases.offline),
    ];
    let given = given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| OsString::from(option));
    // Options before their values.
    let of_programs = Overrides::from(&args.overrides).arguments().into_iter();
    let of_releases = args.releases.hub.arguments().into_iter();
    match given.chain(of_programs).chain(of_releases).next().map(|option| option.display().to_string()) {
        Some(option) => Err(Failure::usage(format!("{option}: finished runs are not measured again"))
            .with_hint(settings_hint())),
        None => Ok(()),
    }
}

fn settings_hint() -> &'static str {
    "--base and --head measure two sets of settings of a study: `meshmeter compare --base KEY=VALUE --head KEY=VALUE STUDY`"
}

/// Checks that the directory has no comparison that is to be kept, and never a run.
fn check_folder(folder: &Path, overwrite: bool) -> Result<(), Failure> {
    let has = |name: &str| folder.join(name).exists();
    let is_own = |name: &str| [COMPARISON_FILE, COMPARISON_REPORT_FILE].contains(&name);
    let has_run = RUN_FILES.iter().any(|name| !is_own(name) && has(name));
    let failure = || folder_failure(FolderError::HasRun { path: folder.to_owned() });
    if has_run {
        return Err(failure().with_hint(ANOTHER_FOLDER));
    }
    if has(COMPARISON_FILE) && !overwrite {
        return Err(failure());
    }
    Ok(())
}

fn comparison(args: &CompareArgs) -> Result<Comparison, Failure> {
    let request = Request { margin: args.margin, across_environments: args.across_environments };
    let paths: Vec<&Path> = args.experiment.iter().chain(&args.further).map(Path::new).collect();
    let Some(file) = &args.history else {
        if paths.len() < 2 {
            let missing = if paths.is_empty() { "nothing to compare" } else { "nothing to compare it with" };
            return Err(Failure::usage(missing).with_hint(format!(
                "name two finished runs, or a run with --history FILE; {}",
                settings_hint()
            )));
        }
        let recorded = read_all(&paths)?;
        return Ok(compare_runs(&recorded[0], &recorded[1..], &request));
    };
    let mut history = read_history(file)?;
    let heads = if paths.is_empty() { vec![newest(&mut history, file)?] } else { read_all(&paths)? };
    let name = file.display().to_string();
    let history = History { file: &name, runs: &history.runs, skipped_lines: &history.skipped_lines() };
    Ok(compare_with_history(&history, &heads, &request))
}

fn read_all(paths: &[&Path]) -> Result<Vec<Recorded>, Failure> {
    paths.iter().map(|path| subject::read(path)).collect()
}

/// Takes the newest run of a history.
fn newest(history: &mut HistoryFile, file: &Path) -> Result<Recorded, Failure> {
    if let Some(last) = history.skipped.last().filter(|_| history.ends_damaged) {
        let reason = format!("its last line, {}, cannot be read: {}", last.number, last.reason);
        return Err(Failure::environment(&FolderError::Read {
            path: file.to_owned(),
            source: reason.into(),
        })
        .with_hint("name the run to judge, or add it again"));
    }
    match history.runs.pop() {
        Some(run) => Ok(Recorded { run, failures: Vec::new(), missing: Vec::new() }),
        None => Err(Failure::usage(format!("{} has no run", file.display()))
            .with_hint("`meshmeter history add FILE RUN` adds one")),
    }
}
