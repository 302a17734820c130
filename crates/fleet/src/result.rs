//! Assembles a fleet's result from its threads.

use crate::figures::{Figures, ReadLag};
use crate::fleet::{ChangeClass, ChangeRecord};
use crate::outage::{MAX_NAMES, outages};
use crate::sampler::Samples;
use crate::shared::Shared;
use crate::spec::Spread;
use crate::target::ResolvedTarget;
use crate::thread::WorkerResult;
use crate::usage::memory_peak_bytes;
use crate::worker::{FinalState, Outcome};
use crate::xds::ProxySpec;
use results::{
    FLEET_SCHEMA, FleetChange, FleetOfIstiod, FleetOutage, FleetProxies, FleetResult, FleetUsage,
    FleetVerdict, HistogramSummary, LatencyHistogram,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of outages in a result.
const MAX_OUTAGES: usize = 100;
/// If the p99 read delay of changes exceeds this, they may have waited for a full receive buffer before the
/// kernel stamped them.
const MAX_LAG_P99_US: f64 = 1_000_000.0;

/// A fleet that has ended.
pub(crate) struct Ending {
    pub(crate) duration: Duration,
    pub(crate) started_at: jiff::Timestamp,
    pub(crate) xds: String,
    pub(crate) spread: Spread,
    pub(crate) proxies: Arc<[Arc<ProxySpec>]>,
    pub(crate) targets: Vec<Arc<ResolvedTarget>>,
    pub(crate) threads: Vec<WorkerResult>,
    pub(crate) samples: Samples,
    pub(crate) changes: Vec<ChangeRecord>,
    /// Error of kernel timestamps: the greater of those at the start and at the end.
    pub(crate) timestamp_check: Option<Duration>,
    pub(crate) shared: Arc<Shared>,
}

pub(crate) fn assemble(mut ending: Ending) -> FleetResult {
    let triggers = ending.shared.triggers();
    let per_target = figures_per_target(&ending);
    let mut all = Figures::default();
    per_target.iter().for_each(|figures| all.merge(figures));
    let outcomes = outcomes_by_change(&ending);
    let (changes, convergence) = all_changes(&ending, &outcomes);
    let proxies = proxies(&ending, None);
    let mut read_lag = ReadLag::default();
    ending.threads.iter().for_each(|thread| read_lag.merge(&thread.core.read_lag));
    let usage = usage(&ending, &read_lag);
    let verdict = verdict(&ending, &proxies, &read_lag);
    FleetResult {
        schema: FLEET_SCHEMA.to_owned(),
        started_at: ending.started_at.to_string(),
        duration_s: ending.duration.as_secs_f64(),
        istiod: ending.targets.iter().map(|target| target.address.clone()).collect(),
        xds: ending.xds.clone(),
        security: ending.targets.first().map_or("", |target| target.security.name()).to_owned(),
        kinds: kinds(&ending),
        connect_us: all.connect.summary(),
        first_configuration_us: first_configuration(states(&ending, None), &all),
        convergence_us: convergence.iter().fold(Convergence::default(), Convergence::plus).summary(),
        changes,
        bytes_received: all.bytes_received(),
        pushes: all.pushes(&triggers),
        rejections: all.rejections,
        acknowledgements: all.acknowledgements,
        violations: all.violations_by_name(),
        cut_off: all_outages(&mut ending, &outcomes),
        by_istiod: by_istiod(&ending, &per_target, &convergence, &triggers),
        events: ending.shared.events(),
        series: std::mem::take(&mut ending.samples.series),
        proxies,
        fleet: usage,
        verdict,
        // The command adds the fields that only it knows.
        ..FleetResult::default()
    }
}

/// Times of arrival, and the number of connections never reached.
#[derive(Clone, Debug, Default)]
struct Convergence {
    times: LatencyHistogram,
    never: u64,
}

impl Convergence {
    /// Outcomes of a change that counts as written `offset` after its beginning.
    fn from_outcomes<'a>(outcomes: impl Iterator<Item = &'a Outcome>, offset: Duration) -> Self {
        let mut convergence = Self::default();
        for outcome in outcomes {
            match outcome.arrival {
                Some(arrival) => convergence.times.record(arrival.saturating_sub(offset)),
                None => convergence.never += 1,
            }
        }
        convergence
    }

    fn plus(mut self, other: &Self) -> Self {
        self.times.merge(&other.times);
        self.never += other.never;
        self
    }

    fn summary(&self) -> HistogramSummary {
        self.times.summary_with(self.never)
    }
}

fn figures_per_target(ending: &Ending) -> Vec<Figures> {
    let copies = ending.threads.first().map_or(0, |thread| thread.core.figures.len());
    let mut sums = vec![Figures::default(); copies];
    for thread in &ending.threads {
        sums.iter_mut().zip(&thread.core.figures).for_each(|(sum, figures)| sum.merge(figures));
    }
    sums
}

fn outcomes_by_change(ending: &Ending) -> BTreeMap<usize, Vec<Outcome>> {
    let mut outcomes = BTreeMap::<_, Vec<_>>::new();
    for (change, of_change) in ending.threads.iter().flat_map(|thread| &thread.outcomes) {
        outcomes.entry(*change).or_default().extend_from_slice(of_change);
    }
    outcomes
}

/// A change in the form of results: one entry, or one per target if each target has the whole fleet.
pub(crate) fn changes(
    record: &ChangeRecord,
    outcomes: &[Outcome],
    copies: usize,
    shared: &Shared,
) -> Vec<FleetChange> {
    let one = |target| entry(record, outcomes, target, shared).0;
    if copies > 1 { (0..copies).map(|target| one(Some(target))).collect() } else { vec![one(None)] }
}

fn entry(
    record: &ChangeRecord,
    outcomes: &[Outcome],
    target: Option<usize>,
    shared: &Shared,
) -> (FleetChange, Convergence) {
    let acknowledged = record.written.map_or(record.begun, |written| written.acknowledged);
    let offset = acknowledged.saturating_duration_since(record.begun);
    let of_target = outcomes.iter().filter(|outcome| target.is_none_or(|target| target == outcome.target));
    let convergence = Convergence::from_outcomes(of_target, offset);
    let reached = convergence.times.count();
    let change = FleetChange {
        kind: record.kind.clone(),
        at: shared.seconds(acknowledged),
        made: 1,
        objects: record.objects,
        written_s: record.written.map_or(0.0, |written| {
            written.acknowledged.saturating_duration_since(written.first_sent).as_secs_f64()
        }),
        expected: reached + convergence.never,
        reached,
        convergence_us: convergence.summary(),
        istiod: target,
        failure: record.failure.clone(),
    };
    (change, convergence)
}

/// All changes, and per target the convergence over those changes of the mesh that were made.
fn all_changes(
    ending: &Ending,
    outcomes: &BTreeMap<usize, Vec<Outcome>>,
) -> (Vec<FleetChange>, Vec<Convergence>) {
    let copies = ending.threads.first().map_or(1, |thread| thread.core.figures.len());
    let mut convergence = vec![Convergence::default(); copies];
    let mut changes = Vec::new();
    for (change, record) in ending.changes.iter().enumerate() {
        if record.what == ChangeClass::CutOff {
            continue;
        }
        let outcomes = outcomes.get(&change).map_or(&[][..], Vec::as_slice);
        for (target, sum) in convergence.iter_mut().enumerate() {
            let (entry, of_change) = entry(record, outcomes, (copies > 1).then_some(target), &ending.shared);
            if record.what == ChangeClass::Mesh && record.failure.is_none() {
                *sum = std::mem::take(sum).plus(&of_change);
            }
            changes.push(entry);
        }
    }
    (changes, convergence)
}

fn by_istiod(
    ending: &Ending,
    per_target: &[Figures],
    convergence: &[Convergence],
    triggers: &[String],
) -> Vec<FleetOfIstiod> {
    if per_target.len() < 2 {
        return Vec::new();
    }
    let parts = per_target.iter().zip(convergence).enumerate();
    let entries = parts.map(|(target, (figures, convergence))| FleetOfIstiod {
        istiod: ending.targets[target].address.clone(),
        proxies: proxies(ending, Some(target)),
        first_configuration_us: first_configuration(states(ending, Some(target)), figures),
        convergence_us: convergence.summary(),
        bytes_received: figures.bytes_received(),
        pushes: figures.pushes(triggers),
        rejections: figures.rejections,
    });
    entries.collect()
}

/// Connections at the end, of one target or of all.
fn states(ending: &Ending, target: Option<usize>) -> impl Iterator<Item = &FinalState> {
    let all = ending.threads.iter().flat_map(|thread| &thread.states);
    all.filter(move |state| target.is_none_or(|target| target == state.link / ending.proxies.len()))
}

/// Times include failed attempts before the successful one. Proxies that never had a complete configuration rank above all times;
/// one that has lost it since has its time.
fn first_configuration<'a>(
    states: impl Iterator<Item = &'a FinalState>,
    figures: &Figures,
) -> HistogramSummary {
    let without = states.filter(|state| !state.was_complete).count();
    figures.first_configuration.summary_with(without as u64)
}

fn proxies(ending: &Ending, target: Option<usize>) -> FleetProxies {
    let states: Vec<_> = states(ending, target).collect();
    let mut never: Vec<_> =
        states.iter().filter(|state| !state.has_converged()).map(|state| state.link).collect();
    never.sort_unstable();
    FleetProxies {
        wanted: states.len() as u64,
        connected: states.iter().filter(|state| state.connected).count() as u64,
        converged: (states.len() - never.len()) as u64,
        never: never.len() as u64,
        never_names: never.iter().take(MAX_NAMES).map(|link| name(ending, *link)).collect(),
    }
}

/// Name of a connection's proxy, with the control plane's address if each target has the whole fleet.
fn name(ending: &Ending, link: usize) -> String {
    let (target, index) = (link / ending.proxies.len(), link % ending.proxies.len());
    let proxy = &ending.proxies[index];
    match ending.targets.get(target).filter(|_| ending.spread == Spread::Each && ending.targets.len() > 1) {
        Some(target) => format!("{}.{} at {}", proxy.name, proxy.namespace, target.address),
        None => format!("{}.{}", proxy.name, proxy.namespace),
    }
}

fn kinds(ending: &Ending) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for proxy in ending.proxies.iter() {
        *kinds.entry(proxy.kind.name().to_owned()).or_default() += 1;
    }
    kinds
}

/// Expected and unexpected outages, in order of time.
fn all_outages(ending: &mut Ending, outcomes: &BTreeMap<usize, Vec<Outcome>>) -> Vec<FleetOutage> {
    let mut losses = Vec::new();
    for thread in &mut ending.threads {
        losses.extend(std::mem::take(&mut thread.core.losses).into_all());
    }
    let ending = &*ending;
    let mut all = outages(losses, |link| name(ending, link));
    for (change, record) in ending.changes.iter().enumerate() {
        if !matches!(record.what, ChangeClass::CutOff | ChangeClass::Restart) {
            continue;
        }
        let outcomes = outcomes.get(&change).map_or(&[][..], Vec::as_slice);
        let mut links: Vec<_> = outcomes.iter().map(|outcome| outcome.link).collect();
        if links.is_empty() {
            continue;
        }
        links.sort_unstable();
        all.push(FleetOutage {
            cause: record.kind.clone(),
            at: ending.shared.seconds(record.begun),
            proxies: links.len() as u64,
            names: links.iter().take(MAX_NAMES).map(|link| name(ending, *link)).collect(),
            recovery_us: Convergence::from_outcomes(outcomes.iter(), Duration::ZERO).summary(),
        });
    }
    all.sort_by(|one, other| one.at.total_cmp(&other.at));
    all.truncate(MAX_OUTAGES);
    all
}

fn usage(ending: &Ending, read_lag: &ReadLag) -> FleetUsage {
    let cpu: Duration = ending.threads.iter().map(|thread| thread.cpu).sum();
    FleetUsage {
        cpu_s: (cpu + ending.samples.cpu).as_secs_f64(),
        memory_peak_bytes: memory_peak_bytes(),
        memory_settled_bytes: ending.samples.memory_settled_bytes,
        lag_us: read_lag.lag.summary(),
        clock: if read_lag.is_by_kernel() { "kernel" } else { "reading" }.to_owned(),
        timestamp_error_p99_us: read_lag
            .error_p99_us()
            .map(|bound_us| bound_us + ending.timestamp_check.map_or(0.0, |check| check.as_secs_f64() * 1e6)),
        timestamp_check_p99_us: ending.timestamp_check.map(|check| check.as_secs_f64() * 1e6),
        arrivals_followed: read_lag.followed,
        threads: ending.threads.len(),
    }
}

fn verdict(ending: &Ending, proxies: &FleetProxies, read_lag: &ReadLag) -> FleetVerdict {
    let mut reasons = Vec::new();
    if proxies.never > 0 {
        reasons.push(format!("not-converged: {} of {} proxies", proxies.never, proxies.wanted));
    }
    let lag_us = read_lag.change_lag.percentile_us(99.0);
    if lag_us > MAX_LAG_P99_US {
        reasons
            .push(format!("fleet-late: changes were read {:.1} s after their receipt at p99", lag_us / 1e6));
    }
    if ending.shared.is_interrupted() {
        reasons.push("interrupted".to_owned());
    }
    FleetVerdict { valid: reasons.is_empty(), reasons, notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_that_is_away_at_the_end_has_its_first_configuration_once() {
        let state = |link, complete, was_complete| FinalState {
            link,
            connected: complete,
            complete,
            was_complete,
            reached: true,
        };
        // The second has lost its connection since, the third never had a configuration.
        let states = [state(0, true, true), state(1, false, true), state(2, false, false)];
        let mut figures = Figures::default();
        (0..2).for_each(|_| figures.first_configuration.record(Duration::from_millis(900)));
        let times = first_configuration(states.iter(), &figures);
        assert_eq!((times.count, times.censored), (2, 1));
        let all_had_one = first_configuration(states[..2].iter(), &figures);
        assert_eq!((all_had_one.censored, all_had_one.max.is_some()), (0, true));
    }
}
