//! `meshmeter cluster check`.

use crate::cli::CheckClusterArgs;
use crate::commands::run::{ExperimentSource, unavailable};
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use crate::output;
use cluster::check::{Needs, check};
use cluster::connection::Connected;
use cluster::environment::check_mode;
use cluster::finding::{CheckOutcome, Finding};
use cluster::objects;
use cluster::plug::{self, MeshPlug};
use cluster::settings::ClusterSettings;
use experiment::{Experiment, Override};
use results::UnavailableMode;
use std::collections::BTreeSet;
use std::process::ExitCode;

pub(super) fn run(args: &CheckClusterArgs) -> Result<ExitCode, Failure> {
    let mut overrides: Vec<Override> = args.set.iter().map(Override::set).collect();
    let source = args.experiment.as_deref().map(ExperimentSource::read).transpose()?;
    if let Some((source, mesh)) = source.as_ref().zip(args.place.cluster_mesh) {
        unavailable::take_mesh(source, &mut overrides, mesh, args.require_all_modes)?;
    }
    let mut experiment = source.map(|source| source.parse(&overrides)).transpose()?;
    let mut settings = args.place.settings("", "");
    let cluster = args.place.connection.connection().open()?;
    plug::look_up(&mut settings, &cluster.api);
    let mut findings = Vec::new();
    if let Some(experiment) = &mut experiment {
        findings.extend(leave_out(experiment, args.require_all_modes, &cluster, &settings));
    }
    let plugs = plugs(experiment.as_ref(), &settings);
    let namespaces = namespaces(experiment.as_ref(), &settings);
    let needs = needs(experiment.as_ref(), &settings, &mut findings);
    findings.extend(check(&cluster, &settings, &namespaces, &plugs, &needs));
    output::print(&if args.json { output::json(&findings) } else { findings.iter().map(line).collect() })?;
    let is_missing = findings.iter().any(|finding| finding.standing == CheckOutcome::Missing);
    Ok(if is_missing { ExitCode::from(ENVIRONMENT_FAILED) } else { ExitCode::SUCCESS })
}

/// A finding as text, with its hint.
fn line(Finding { standing, text, hint }: &Finding) -> String {
    let mark = match standing {
        CheckOutcome::Right => "ok     ",
        CheckOutcome::Less => "less   ",
        CheckOutcome::Missing => "missing",
    };
    let hint = hint.as_ref().map_or_else(String::new, |hint| format!("         hint: {hint}\n"));
    format!("{mark}  {text}\n{hint}")
}

/// Leaves the modes that cannot run here out of the experiment, as a run does. Each becomes a finding.
fn leave_out(
    experiment: &mut Experiment,
    all_required: bool,
    cluster: &Connected,
    settings: &ClusterSettings,
) -> Vec<Finding> {
    let mesh = experiment.mesh;
    let left_out = unavailable::leave_out(experiment, all_required, |mode, components| {
        check_mode(cluster, settings, (mesh, mode), components)
    });
    match left_out {
        Err(error) => vec![Finding::of_error(CheckOutcome::Missing, &error)],
        Ok(modes) => modes.into_iter().map(finding).collect(),
    }
}

fn finding(left_out: UnavailableMode) -> Finding {
    Finding { standing: CheckOutcome::Less, text: unavailable::sentence(&left_out), hint: left_out.hint }
}

/// Plugs of the experiment's modes.
fn plugs(experiment: Option<&Experiment>, settings: &ClusterSettings) -> Vec<Box<dyn MeshPlug>> {
    let modes = experiment.into_iter().flat_map(|one| one.modes.iter().map(|mode| (one.mesh, *mode)));
    modes.filter_map(|(mesh, mode)| plug::for_mode(mesh, mode, settings).ok()).collect()
}

/// Needs of all deployments. Modes without a plug are findings already; settings that clusters do not support
/// become findings here.
fn needs(experiment: Option<&Experiment>, settings: &ClusterSettings, findings: &mut Vec<Finding>) -> Needs {
    let mut needs = Needs::default();
    let Some(experiment) = experiment else { return needs };
    for trial in &experiment::Plan::new(experiment, 0).trials {
        let Ok(plug) = plug::for_mode(trial.spec.mesh, trial.mode(), settings) else { continue };
        match objects::objects(&trial.spec, settings, &*plug) {
            Ok(objects) => needs.add(&trial.spec, &objects),
            Err(error) => {
                let finding = Finding::of_error(CheckOutcome::Missing, &error);
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
    }
    needs
}

fn namespaces(experiment: Option<&Experiment>, settings: &ClusterSettings) -> Vec<String> {
    let Some(experiment) = experiment else { return vec![settings.namespace("")] };
    let plan = experiment::Plan::new(experiment, 0);
    let topologies = plan.trials.iter().map(|trial| &trial.spec.topology);
    let names = topologies.flat_map(|topology| topology.namespaces());
    let names: BTreeSet<String> = names.map(|name| settings.namespace(name)).collect();
    names.into_iter().collect()
}
