//! State of a thread: its proxies, and what they share.

use crate::certificates::Certificates;
use crate::core::Core;
use crate::expectation::{Expectation, Goal};
use crate::proxy::{Ended, LinkSpec, Phase, Proxy};
use crate::shared::Shared;
use crate::spec::{FleetSpec, Selection, Spread};
use crate::target::ResolvedTarget;
use crate::transport::READ_BUFFER_BYTES;
use crate::xds::Session;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Initial state of a thread.
pub(crate) struct WorkerSpec {
    pub(crate) shared: Arc<Shared>,
    /// The fleet's, without its proxies.
    pub(crate) settings: Arc<FleetSpec>,
    pub(crate) targets: Arc<[Arc<ResolvedTarget>]>,
    pub(crate) links: Vec<LinkSpec>,
    /// Start of the whole fleet's connection attempts.
    pub(crate) start: Instant,
}

/// Outcome of a change on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) link: usize,
    pub(crate) target: usize,
    /// Time since the change's beginning; absent: not reached.
    pub(crate) arrival: Option<Duration>,
}

/// State of a proxy at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinalState {
    pub(crate) link: usize,
    pub(crate) connected: bool,
    pub(crate) complete: bool,
    /// True once it has had a complete configuration.
    pub(crate) was_complete: bool,
    /// True if every expected change has arrived.
    pub(crate) reached: bool,
}

impl FinalState {
    pub(crate) fn has_converged(&self) -> bool {
        self.complete && self.reached
    }
}

/// State of a thread.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Arc<FleetSpec>,
    pub(crate) targets: RefCell<Arc<[Arc<ResolvedTarget>]>>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) certificates: Certificates,
    /// Read buffer.
    pub(crate) buffer: RefCell<Vec<u8>>,
    pub(crate) core: RefCell<Core>,
}

impl Worker {
    pub(crate) fn new(spec: WorkerSpec) -> Self {
        let WorkerSpec { shared, settings, targets, links, start: _ } = spec;
        let figures = if settings.spread == Spread::Each { targets.len() } else { 1 };
        let proxies = links.into_iter().enumerate().map(|(place, link)| {
            let session = Session::new(Arc::clone(&link.proxy), settings.xds);
            Proxy::new(link, place, session)
        });
        Self {
            proxies: proxies.collect(),
            certificates: Certificates::new(settings.certificates, settings.connect_timeout),
            targets: RefCell::new(targets),
            buffer: RefCell::new(vec![0; READ_BUFFER_BYTES]),
            core: RefCell::new(Core::new(figures, settings.message_limit_bytes)),
            shared,
            settings,
        }
    }

    /// Time at which a proxy starts to connect, relative to the fleet's start.
    pub(crate) fn start_of(&self, place: usize) -> Duration {
        let rate = self.settings.connect_rate.filter(|rate| *rate > 0.0);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(self.proxies[place].link as f64 / rate))
    }

    /// Target of a connection. As behind a Service, replicas are chosen in turn at first, and at random on
    /// reconnects.
    pub(crate) fn target_for(&self, proxy: &Proxy, attempt: usize) -> Arc<ResolvedTarget> {
        let targets = self.targets.borrow();
        let place = match self.settings.spread {
            Spread::Each => proxy.target,
            Spread::Shared if attempt == 0 => proxy.index,
            Spread::Shared => mixed(self.settings.seed, proxy.link as u64, attempt as u64) as usize,
        };
        Arc::clone(&targets[place % targets.len()])
    }

    /// Called when a connection or a connection attempt has ended.
    pub(crate) fn ended(&self, proxy: &Proxy, ended: &Ended) {
        let phase = proxy.phase.replace(Phase::Down);
        let now = Instant::now();
        self.core.borrow_mut().ended(proxy, phase, ended, now, &self.shared);
    }

    pub(crate) fn expect(&self, goal: Goal, selection: &Selection, at: Instant) -> Expectation {
        let expected =
            self.proxies.iter().map(|proxy| u16::from(selection.contains(proxy.index, &proxy.spec)));
        let mut expectation = Expectation::new(goal, at, expected.collect());
        // A proxy without a connection cannot lose it before the return.
        let down = self.proxies.iter().filter(|proxy| proxy.phase.get() == Phase::Down);
        down.for_each(|proxy| expectation.lost(proxy.place));
        expectation
    }

    pub(crate) fn restore(&self, change: usize) {
        let core = self.core.borrow();
        let Some(expectation) = core.expectations.get(&change) else { return };
        for proxy in self.proxies.iter().filter(|proxy| expectation.expects(proxy.place)) {
            proxy.cut_off.set(false);
            proxy.order();
        }
    }

    pub(crate) fn outcomes(&self, change: usize) -> Vec<Outcome> {
        let core = self.core.borrow();
        let outcomes = core.expectations.get(&change).into_iter().flat_map(Expectation::outcomes);
        let located = outcomes.map(|(place, arrival)| {
            let proxy = &self.proxies[place];
            Outcome { link: proxy.link, target: proxy.target, arrival }
        });
        located.collect()
    }

    pub(crate) fn all_outcomes(&self) -> Vec<(usize, Vec<Outcome>)> {
        let changes: Vec<_> = self.core.borrow().expectations.keys().copied().collect();
        changes.into_iter().map(|change| (change, self.outcomes(change))).collect()
    }

    pub(crate) fn final_state(&self, proxy: &Proxy) -> FinalState {
        let core = self.core.borrow();
        let phase = proxy.phase.get();
        FinalState {
            link: proxy.link,
            connected: phase != Phase::Down,
            complete: phase == Phase::Complete,
            was_complete: proxy.was_complete.get(),
            reached: !core.expectations.values().any(|expectation| expectation.misses(proxy.place)),
        }
    }
}

/// A pseudorandom number.
fn mixed(seed: u64, link: u64, attempt: u64) -> u64 {
    use rand::{RngExt as _, SeedableRng as _};
    let seed = seed ^ link.rotate_left(20) ^ attempt.rotate_left(44);
    rand::rngs::ChaCha8Rng::seed_from_u64(seed).random()
}
