//! A planned trial.

use crate::environment::spec::DeploymentSpec;
use crate::mode::Mode;
use crate::schema::Pacing;
use crate::schema::factor::{CellKey, Conditions, Factors};
use crate::schema::load_point::LoadPoint;
use crate::settings::fleet::FleetSettings;
use std::sync::Arc;
use std::time::Duration;

/// One trial to run: one cell, once.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTrial {
    /// Place in the order of execution, from 0.
    pub index: usize,
    /// Which repeat it belongs to, from 0.
    pub repeat: usize,
    /// The arrangement of proxies.
    pub mode: Mode,
    /// Values of the factors.
    pub factors: Factors,
    /// The load to offer.
    pub load: LoadPoint,
    /// Simulated proxies in place of a load.
    pub fleet: Option<Arc<FleetSettings>>,
    /// What the environment must prepare.
    pub spec: DeploymentSpec,
    /// Number of the deployment that it runs in, from 0. Trials that share one stand next to each other.
    pub deployment: usize,
    /// Time under load before the measured window.
    pub warmup: Duration,
    /// The measured window.
    pub duration: Duration,
    /// After this a request counts as failed.
    pub timeout: Duration,
    /// Worker threads of each generator.
    pub threads: usize,
    /// Generators that share the load of each driver, each in a pod of its own.
    pub generators: usize,
    /// How they wait; absent: as `meshmeter load` does without an option.
    pub pacing: Option<Pacing>,
    /// Queries of the URL that the generator requests, such as `cpu-time=100us`. If there are several, each request draws one,
    /// and the result has each apart.
    pub queries: Vec<String>,
    /// The generator's seed. The same for every mode of a repeat under the same load, so that they meet the same arrivals.
    pub generator_seed: u64,
}

impl PlannedTrial {
    /// The cell that it is a trial of.
    #[must_use]
    pub fn cell(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode)
    }

    /// Its factors and load.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }
}
