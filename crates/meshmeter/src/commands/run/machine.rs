//! The machine of a run or of a comparison, as `host.json` records it.

use super::run_environment::RunEnvironment;
use super::specs;
use crate::cli::TrialArgs;
use crate::failure::Failure;
use crate::noise_floor;
use experiment::Plan;
use experiment::environment::deploy::Environment;
use results::{Build, ComponentVersion, Host, Mode};

/// The machine with the programs of a plan's deployments, before it is measured.
pub(super) fn described(environment: &dyn Environment, plan: &Plan) -> Host {
    let mut host = environment.host();
    let mut versions: Vec<ComponentVersion> = Vec::new();
    for version in specs(plan).into_iter().flat_map(|spec| environment.versions_for(spec)) {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    host.versions.extend(versions);
    host.build = Some(Build::this().clone());
    host
}

/// Measures the machine as far as the generators of a plan depend on it, and sets their pacing.
pub(super) fn measure(
    host: &mut Host,
    place: &mut dyn RunEnvironment,
    plan: &mut Plan,
    modes: &[Mode],
    args: &TrialArgs,
) -> Result<(), Failure> {
    let floor = place.measure_noise_floor(args.noise_floor.unwrap_or(noise_floor::USUAL_TIME))?;
    let pauses = floor.as_ref().and_then(|floor| floor.pauses.clone());
    let chosen = place.choose_pacing(plan, pauses.as_ref());
    plan.set_pacing(chosen.pacing);
    let calibration = place.calibration(args.calibrate, chosen.pacing)?;
    host.calibration = calibration.filter(|calibration| calibration.covers(modes));
    host.pacing = Some(chosen);
    if let Some(floor) = floor {
        host.noise_floor = Some(floor);
    }
    Ok(())
}
