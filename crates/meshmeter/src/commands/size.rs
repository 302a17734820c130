//! `meshmeter size`: computes replicas, CPU, memory and cost for a target, or istiod's CPU and memory for a
//! mesh, from the directories of runs.

use super::report::{Files, folder_failure, terminal_options};
use crate::cli::{PricesArgs, SizeArgs};
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::input;
use crate::output::{self, tell};
use experiment::environment::error_chain;
use report::RunData;
use report::sentences::control_plane_size::fill_control_plane_size;
use report::sentences::size::fill_size;
use report::terminal::{control_plane_size_text, size_text};
use results::{ControlPlaneQuestion, Prices, SizeQuestion};
use serde::Deserialize;
use statistics::control_plane::size::size_control_plane;
use statistics::size::{MeasuredRun, size};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &SizeArgs) -> Result<ExitCode, Failure> {
    let accept_noise = args.noise.accept_noise;
    let read = |directory: &PathBuf| if accept_noise { as_recorded(directory) } else { measured(directory) };
    let runs = || args.from.iter().map(read).collect::<Result<Vec<_>, _>>();
    let Some(target_rps) = args.target else { return control_plane(args, &runs()?) };
    let question = SizeQuestion {
        target_rps,
        headroom: args.headroom,
        prices: prices(&args.prices)?,
        mode: args.mode,
        component: args.component.clone(),
        payload_bytes: args.payload,
        accept_noise,
        ..SizeQuestion::default()
    };
    let mut result = size(&question, args.objective, &runs()?);
    fill_size(&mut result);
    let mut files = Files::default();
    files.write("page", args.files.output.as_deref(), || report::html::render_size(&result))?;
    files.write("Markdown", args.files.markdown.as_deref(), || report::markdown::render_size(&result))?;
    files.print(|| if args.json { output::json(&result) } else { size_text(&result, terminal_options()) })?;
    Ok(status(result.is_answered(), result.refusals.iter().map(|refusal| &refusal.text)))
}

/// Needs of istiod for the mesh in question.
fn control_plane(args: &SizeArgs, runs: &[MeasuredRun]) -> Result<ExitCode, Failure> {
    let mesh = &args.mesh;
    // clap requires both.
    let (services, pods) = (mesh.services.unwrap_or_default(), mesh.pods.unwrap_or_default());
    let question = ControlPlaneQuestion {
        services,
        pods,
        proxies: mesh.proxies.unwrap_or(pods),
        namespaces: mesh.scope.unwrap_or(1),
        scope: mesh.scope.is_some(),
        changes_per_s: mesh.churn.unwrap_or_default().pods_per_s(usize::try_from(pods).unwrap_or(usize::MAX)),
        other_changes_per_s: mesh.change.iter().fold(BTreeMap::new(), |mut changes, (kind, per_s)| {
            *changes.entry(kind.clone()).or_default() += per_s;
            changes
        }),
        kind: mesh.kind.as_ref().map(ToString::to_string),
        istiod_cpu_cores: mesh.istiod_cpu,
        istiod_memory_bytes: mesh.istiod_memory.map(|bytes| bytes as f64),
        headroom: args.headroom,
        prices: prices(&args.prices)?,
    };
    let mut result = size_control_plane(&question, runs);
    fill_control_plane_size(&mut result);
    let text =
        if args.json { output::json(&result) } else { control_plane_size_text(&result, terminal_options()) };
    output::print(&text)?;
    Ok(status(!result.answers.is_empty(), result.refusals.iter().map(|refusal| &refusal.text)))
}

/// Exit status of a question; says why it is not answered.
pub(super) fn status<'a>(is_answered: bool, refusals: impl Iterator<Item = &'a String>) -> ExitCode {
    if is_answered {
        return ExitCode::SUCCESS;
    }
    for refusal in refusals {
        tell!("not answered: {refusal}");
    }
    ExitCode::from(MEASUREMENT_FAILED)
}

/// A run as its own report uses it: with noise of the machine accepted if that accepts it.
pub(super) fn measured(directory: &Path) -> Result<MeasuredRun, Failure> {
    Ok(in_short(directory, RunData::read_as_reported(directory).map_err(folder_failure)?))
}

/// A run with all reasons against its trials.
fn as_recorded(directory: &Path) -> Result<MeasuredRun, Failure> {
    Ok(in_short(directory, RunData::read(directory).map_err(folder_failure)?))
}

fn in_short(directory: &Path, run: RunData) -> MeasuredRun {
    for note in &run.notes {
        tell!("note: {}: {note}", directory.display());
    }
    MeasuredRun {
        directory: directory.display().to_string(),
        experiment: run.experiment,
        host: run.host,
        trials: run.trials,
    }
}

/// Content of a prices file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PricesFile {
    cpu_hour: f64,
    gb_hour: f64,
    #[serde(default)]
    per_replica_hour: f64,
    #[serde(default)]
    currency: String,
}

pub(super) fn prices(args: &PricesArgs) -> Result<Option<Prices>, Failure> {
    if let Some(path) = &args.prices {
        return prices_of_file(path).map(Some);
    }
    let prices = args.cpu_hour.zip(args.gb_hour);
    let currency = args.currency.clone().unwrap_or_default();
    Ok(prices.map(|(cpu_hour, gb_hour)| Prices { cpu_hour, gb_hour, currency, ..Prices::default() }))
}

fn prices_of_file(path: &Path) -> Result<Prices, Failure> {
    let about = format!("read prices from {}", path.display());
    let text = input::open(path)
        .and_then(io::read_to_string)
        .map_err(|error| Failure::from_usage(&error).about(&about))?;
    let file: PricesFile = serde_saphyr::from_str(&text).map_err(|error| {
        let hint = "expected cpu-hour and gb-hour, and optionally per-replica-hour and currency";
        Failure::usage(error_chain(&error)).about(&about).with_hint(hint)
    })?;
    let amounts =
        [("cpu-hour", file.cpu_hour), ("gb-hour", file.gb_hour), ("per-replica-hour", file.per_replica_hour)];
    if let Some((key, amount)) = amounts.into_iter().find(|(_, amount)| !amount.is_finite() || *amount < 0.0)
    {
        return Err(Failure::usage(format!("`{key}` is {amount}: expected an amount per hour")).about(&about));
    }
    let PricesFile { cpu_hour, gb_hour, per_replica_hour, currency } = file;
    Ok(Prices { cpu_hour, gb_hour, per_replica_hour, currency })
}
