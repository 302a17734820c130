//! State shared by the requests of one worker.

use super::application::Application;
use super::client::Client;
use super::precise_timer::PreciseTimer;
use super::query::Databases;
use super::tally::WorkerTally;
use crate::draw;
use experiment::topology::WorkloadId;
use experiment::topology::distribution::Distribution;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// State shared by the requests of one worker. It is confined to one thread.
pub(crate) struct Worker {
    pub application: Arc<Application>,
    pub tally: Arc<WorkerTally>,
    pub timer: PreciseTimer,
    pub databases: Databases,
    /// The node is stopping: connections close after the next response.
    pub is_stopping: Cell<bool>,
    clients: Vec<Client>,
    random: RefCell<SmallRng>,
}

impl Worker {
    /// Must be called within a runtime. `index`: of this worker among `workers`.
    pub(crate) fn new(
        index: usize,
        application: &Arc<Application>,
        tally: &Arc<WorkerTally>,
        workers: usize,
    ) -> io::Result<Self> {
        let random = match application.seed {
            Some(seed) => SmallRng::seed_from_u64(seed.wrapping_add(index as u64)),
            None => rand::make_rng(),
        };
        let clients = (0..application.callees.len()).map(|index| Client::new(index, application, tally));
        Ok(Self {
            application: Arc::clone(application),
            tally: Arc::clone(tally),
            timer: PreciseTimer::new()?,
            databases: Databases::new(application, tally, workers)?,
            is_stopping: Cell::new(false),
            clients: clients.collect(),
            random: RefCell::new(random),
        })
    }

    /// The client of this workload.
    pub(crate) fn client(&self, id: WorkloadId) -> &Client {
        let index = self.application.callees.iter().position(|callee| callee.id == id);
        &self.clients[index.expect("scripts call nothing else")]
    }

    /// True with this probability.
    pub(crate) fn happens(&self, probability: f64) -> bool {
        probability >= 1.0 || (probability > 0.0 && self.uniform() < probability)
    }

    /// A uniform draw from [0, 1).
    pub(crate) fn uniform(&self) -> f64 {
        self.random.borrow_mut().random()
    }

    /// A draw from a distribution.
    pub(crate) fn amount(&self, distribution: &Distribution) -> f64 {
        draw::amount(distribution, &mut self.random.borrow_mut())
    }

    /// A draw from a distribution of seconds.
    pub(crate) fn time(&self, seconds: &Distribution) -> Duration {
        draw::time(seconds, &mut self.random.borrow_mut())
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
