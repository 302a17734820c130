//! Findings by section.

use super::context::Context;
use super::opening::unbroken;
use crate::sentences;
use results::FindingKind;
use serde::Serialize;

/// Sentences by section.
#[derive(Debug, Serialize)]
pub struct Findings {
    glance: Vec<String>,
    throughput: Vec<String>,
    percentiles: Vec<String>,
    added: Vec<String>,
    resources: Vec<String>,
    fleets: Vec<String>,
    footprint: Vec<String>,
    factors: Vec<String>,
    differences: Vec<String>,
    scaling: Vec<String>,
    control_plane_costs: Vec<String>,
    sizes: Vec<String>,
    corrected: Vec<String>,
    graph: Vec<String>,
    drivers: Vec<String>,
    reservations: Vec<String>,
    excluded: Vec<String>,
    path: Vec<String>,
    published: Vec<String>,
}

impl Findings {
    pub fn new(context: &Context) -> Self {
        use FindingKind as Kind;
        let about = |kinds: &[Kind]| {
            let sentences = sentences::about(&context.run.summary, kinds);
            sentences.iter().map(|sentence| unbroken(sentence)).collect::<Vec<String>>()
        };
        Self {
            glance: about(&[Kind::Objective, Kind::SingleTrial]),
            throughput: about(&[Kind::CpuPerRequest, Kind::FullMachine]),
            percentiles: about(&[Kind::HiddenWaiting, Kind::MachinePauses, Kind::FewSamples]),
            added: about(&[Kind::Order, Kind::AddedLatency]),
            resources: about(&[Kind::ProxyUsage, Kind::CpuScaling, Kind::ControlPlane]),
            fleets: about(&[Kind::Convergence, Kind::NotConverged]),
            footprint: about(&[Kind::Footprint, Kind::RejectedUpdates]),
            factors: about(&[Kind::FactorEffect]),
            differences: about(&[Kind::FactorDifference]),
            scaling: about(&[Kind::Scaling]),
            control_plane_costs: about(&[Kind::ControlPlaneCost]),
            sizes: about(&[Kind::MeshSize]),
            corrected: about(&[Kind::Saturation]),
            graph: about(&[Kind::SlowestDriver, Kind::GreatestAddedTime, Kind::GreatestAddedCpu]),
            drivers: about(&[Kind::DriverObjective]),
            reservations: about(&[Kind::Reservation]),
            excluded: about(&[
                Kind::UnavailableMode,
                Kind::CutShort,
                Kind::ExcludedTrials,
                Kind::Reruns,
                Kind::NoisyMachine,
                Kind::LateGenerator,
            ]),
            path: about(&[Kind::Path]),
            published: about(&[Kind::Published]),
        }
    }
}
