//! Planned trial.

use crate::environment::spec::DeploymentSpec;
use crate::settings::fleet::FleetSettings;
use results::{CellKey, Conditions, ExpectedStatuses, Factors, LoadPoint, Mode, Pacing};
use std::sync::Arc;
use std::time::Duration;

/// One trial to run: one cell, measured once.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTrial {
    /// Place in execution order, from 0.
    pub index: usize,
    /// Repeat that it belongs to, from 0.
    pub repeat: usize,
    /// Values of the factors that can touch the mode.
    pub factors: Factors,
    /// Load to offer.
    pub load: LoadPoint,
    /// Simulated proxies instead of a load.
    pub fleet: Option<Arc<FleetSettings>>,
    /// Deployment that the environment must bring up. Its mode is that of the trial.
    pub spec: DeploymentSpec,
    /// Number of its deployment, from 0. Trials that share a deployment are adjacent.
    pub deployment: usize,
    /// Time under load before the measured window.
    pub warmup: Duration,
    /// The measured window.
    pub duration: Duration,
    /// Requests without a response after this time count as failed.
    pub timeout: Duration,
    /// Statuses that responses must have not to count as errors; absent: those below 400.
    pub expected_status: Option<ExpectedStatuses>,
    /// Worker threads of each generator.
    pub threads: usize,
    /// Generators that share the load of each driver, each in its own pod.
    pub generators: usize,
    /// Pacing of the generators; absent: the default of `meshmeter load`.
    pub pacing: Option<Pacing>,
    /// Queries of the URL that the generator requests, such as `cpu-time=100us`. If there are several, each request draws one,
    /// and the result has each apart.
    pub queries: Vec<String>,
    /// Seed of the generator. Equal for all modes of a repeat under the same load, so that they see the same
    /// arrivals.
    pub generator_seed: u64,
}

impl PlannedTrial {
    /// Mode of the trial: that of its deployment.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.spec.mode
    }

    /// Cell of the trial.
    #[must_use]
    pub fn cell(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode())
    }

    /// Factors and load of the trial.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }
}
