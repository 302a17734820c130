//! Findings by section.

use super::context::Context;
use super::opening::unbroken;
use crate::sentences;
use results::{FindingKind as Kind, StatedFinding};
use serde::Serialize;
use std::collections::BTreeMap;

/// Sections with the kinds of their findings.
const SECTIONS: [(&str, &[Kind]); 20] = [
    ("glance", &[Kind::FactorCorner, Kind::Objective, Kind::SingleTrial]),
    ("throughput", &[Kind::CpuPerRequest, Kind::FullMachine]),
    ("percentiles", &[Kind::HiddenWaiting, Kind::MachinePauses, Kind::FewSamples]),
    ("added", &[Kind::Order, Kind::AddedLatency]),
    ("resources", &[Kind::ProxyUsage, Kind::CpuScaling, Kind::ControlPlane]),
    ("fleets", &[Kind::Convergence, Kind::NotConverged]),
    ("footprint", &[Kind::Footprint, Kind::RejectedUpdates]),
    ("factors", &[Kind::FactorEffect]),
    ("differences", &[Kind::FactorDifference]),
    ("scaling", &[Kind::Scaling]),
    ("control_plane_costs", &[Kind::ControlPlaneCost]),
    ("sizes", &[Kind::MeshSize]),
    ("corrected", &[Kind::Saturation]),
    ("graph", &[Kind::SlowestDriver, Kind::GreatestAddedTime, Kind::GreatestAddedCpu]),
    ("drivers", &[Kind::DriverObjective]),
    ("reservations", &[Kind::Reservation]),
    (
        "excluded",
        &[
            Kind::UnavailableMode,
            Kind::CutShort,
            Kind::ExcludedTrials,
            Kind::Reruns,
            Kind::NoisyMachine,
            Kind::LateGenerator,
        ],
    ),
    ("disturbed", &[Kind::Disturbed]),
    ("path", &[Kind::Path]),
    ("published", &[Kind::Published]),
];

/// A finding: its line, and the detail behind it.
#[derive(Debug, Serialize)]
pub struct FindingText {
    pub(super) line: String,
    pub(super) detail: String,
}

impl From<&StatedFinding> for FindingText {
    fn from(stated: &StatedFinding) -> Self {
        Self { line: unbroken(&stated.text), detail: unbroken(&stated.detail) }
    }
}

/// Findings by section.
pub fn findings(context: &Context) -> BTreeMap<&'static str, Vec<FindingText>> {
    let of_section = |(section, kinds): (&'static str, &[Kind])| {
        let stated = sentences::about(&context.run.summary, kinds);
        (section, stated.into_iter().map(FindingText::from).collect())
    };
    SECTIONS.into_iter().map(of_section).collect()
}
