//! Observations of a trial. Shared by all tests that bring deployments up.

use experiment::environment::WindowUsage;
use experiment::environment::deploy::TrialEvidence;

/// Observations of one trial.
pub struct Observation {
    /// Usage in the window, with the footprints of the components; empty if it was not measured.
    pub usage: WindowUsage,
    pub evidence: TrialEvidence,
}

impl Observation {
    pub fn new(mut usage: WindowUsage, mut evidence: TrialEvidence) -> Self {
        for component in &mut usage.components {
            if let Some(footprint) = evidence.footprints.remove(&component.name) {
                footprint.add_to(component);
            }
        }
        Self { usage, evidence }
    }
}
