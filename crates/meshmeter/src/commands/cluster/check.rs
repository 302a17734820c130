//! `meshmeter cluster check`.

use crate::cli::CheckClusterArgs;
use crate::commands::run::read_experiment;
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use cluster::check::{Finding, Needs, Standing, check};
use cluster::objects;
use cluster::plug::{self, MeshPlug};
use cluster::settings::ClusterSettings;
use experiment::Experiment;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;

/// Runs the command.
pub(super) fn run(args: &CheckClusterArgs) -> Result<ExitCode, Failure> {
    let experiment = args.experiment.as_deref().map(|name| read_experiment(name, &[])).transpose()?;
    let settings = args.place.settings("", "");
    let mut findings = Vec::new();
    let plugs = plugs(experiment.as_ref(), &settings, &mut findings);
    let namespaces = namespaces(experiment.as_ref(), &settings);
    let cluster = args.place.connection.connection().open()?;
    let needs = needs(experiment.as_ref(), &settings, &mut findings);
    findings.extend(check(&cluster, &settings, &namespaces, &plugs, &needs));
    let mut output = anstream::stdout();
    // Whoever reads may stop early.
    if args.json {
        let text = serde_json::to_string_pretty(&findings).expect("findings are plain data");
        let _ = writeln!(output, "{text}");
    } else {
        for Finding { standing, text, hint } in &findings {
            let mark = match standing {
                Standing::Right => "ok     ",
                Standing::Less => "less   ",
                Standing::Missing => "missing",
            };
            let _ = writeln!(output, "{mark}  {text}");
            if let Some(hint) = hint {
                let _ = writeln!(output, "         hint: {hint}");
            }
        }
    }
    let is_missing = findings.iter().any(|finding| finding.standing == Standing::Missing);
    Ok(if is_missing { ExitCode::from(ENVIRONMENT_FAILED) } else { ExitCode::SUCCESS })
}

/// Those of the experiment's modes; a mode that no cluster runs is a finding.
fn plugs(
    experiment: Option<&Experiment>,
    settings: &ClusterSettings,
    findings: &mut Vec<Finding>,
) -> Vec<Box<dyn MeshPlug>> {
    let Some(experiment) = experiment else { return Vec::new() };
    let mut plugs = Vec::new();
    for mode in &experiment.modes {
        match plug::of(experiment.mesh, *mode, settings) {
            Ok(plug) => plugs.push(plug),
            Err(error) => findings.push(Finding::of_error(Standing::Missing, &error)),
        }
    }
    plugs
}

/// Of all deployments. Modes without a plug are findings already; settings that no cluster has become one each.
fn needs(experiment: Option<&Experiment>, settings: &ClusterSettings, findings: &mut Vec<Finding>) -> Needs {
    let mut needs = Needs::default();
    let Some(experiment) = experiment else { return needs };
    for trial in &experiment::Plan::new(experiment, 0).trials {
        let Ok(plug) = plug::of(trial.spec.mesh, trial.mode, settings) else { continue };
        match objects::objects(&trial.spec, settings, &*plug) {
            Ok(objects) => needs.add(&trial.spec, &objects),
            Err(error) => {
                let finding = Finding::of_error(Standing::Missing, &error);
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
