//! Changes, made one after the other. Each is followed until it has reached every proxy that must receive it.

use super::churn;
use super::links;
use super::metrics::MetricsSampler;
use super::phases::PhaseRecorder;
use super::state::{FleetRunner, POLL_INTERVAL};
use super::witnesses::Witnesses;
use experiment::environment::error_chain;
use experiment::settings::fleet::ChangeKind;
use experiment::xds::Presence;
use fleet::{ChangeId, ChangeMarks, Fleet, Selection, Target, Waited};
use population::changes::{Change, Changes, Expected};
use population::{Population, Proxy};
use results::units::Churn;
use results::{FleetAsk, FleetChange, FleetPhase, FleetProgress, FleetWitness, IDLE_PHASE};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Seed for choosing services.
const SEED: u64 = 1;

/// Kind of the changes made by churn.
pub(super) const CHURN: &str = "churn";

/// Makes the changes of a run.
pub(super) struct Changing<'a> {
    pub runner: &'a FleetRunner<'a>,
    pub fleet: &'a Fleet,
    pub population: &'a Population,
    /// Locked until a change is written: the next change builds on it.
    sequence: Mutex<Sequence>,
    /// Changes that could not be made.
    impossible: Mutex<Vec<FleetChange>>,
    witnesses: Witnesses,
    phases: PhaseRecorder<'a>,
}

/// Results of changes, beside the fleet's own figures.
#[derive(Default)]
pub(super) struct Changed {
    /// Changes that could not be made.
    pub impossible: Vec<FleetChange>,
    pub witnesses: Vec<FleetWitness>,
    pub phases: Vec<FleetPhase>,
    /// Writes that restore the mesh to its size, in order.
    pub undo: Vec<Change>,
}

/// Proxies that are cut off by the environment, not by the fleet.
pub(super) struct CutOff<'a> {
    pub cause: &'a str,
    pub places: BTreeSet<usize>,
}

/// Identifiers of a change that was written.
#[derive(Default)]
pub(super) struct Written {
    /// One per kind of proxy.
    pub changes: Vec<ChangeId>,
    /// One per kind of proxy, for the proxies that are cut off at the time.
    pub catching_up: Vec<ChangeId>,
}

struct Sequence {
    changes: Changes,
    /// Written changes that altered the size of the mesh.
    resized: Vec<Change>,
    /// Written changes that have not arrived everywhere yet.
    pending: Vec<Pending>,
}

struct Pending {
    ids: Vec<ChangeId>,
    /// Expected content: bytes of resources, or resource names.
    contents: Vec<Vec<u8>>,
}

impl Pending {
    /// True if `change` removes what this one adds. If istiod pushes both together, this one never arrives.
    fn is_undone_by(&self, change: &Change) -> bool {
        let gone = change.replaced.iter().flat_map(|replaced| {
            [replaced.gone.address.to_string().into_bytes(), format!("/{}", replaced.gone.pod).into_bytes()]
        });
        let gone: Vec<Vec<u8>> = gone.chain(contents(change, Presence::Gone)).collect();
        self.contents.iter().any(|content| gone.iter().any(|gone| content.ends_with(gone)))
    }
}

fn contents(change: &Change, presence: Presence) -> impl Iterator<Item = Vec<u8>> {
    let marks = change.expected.iter().flat_map(|expected| &expected.marks);
    marks.filter(move |mark| mark.presence == presence).map(|mark| match &mark.resource {
        Some(name) if mark.needle.is_empty() => name.clone().into_bytes(),
        _ => mark.needle.clone(),
    })
}

impl<'a> Changing<'a> {
    pub fn new(
        runner: &'a FleetRunner<'a>,
        fleet: &'a Fleet,
        population: &'a Population,
        sampler: &'a MetricsSampler,
    ) -> Self {
        let sequence =
            Sequence { changes: Changes::new(population, SEED), resized: Vec::new(), pending: Vec::new() };
        Self {
            runner,
            fleet,
            population,
            sequence: Mutex::new(sequence),
            impossible: Mutex::default(),
            witnesses: Witnesses::new(&runner.args.proxies.witness),
            phases: PhaseRecorder::new(fleet, sampler),
        }
    }

    /// Makes every configured change while the fleet is observed, with churn alongside.
    pub fn make_all(&self) {
        let settings = self.runner.settings;
        std::thread::scope(|scope| {
            let beside = if settings.churn == Churn::None { IDLE_PHASE } else { CHURN };
            let churn = (!settings.duration.is_zero()).then(|| {
                self.phases.begin(beside);
                scope.spawn(|| churn::run(self))
            });
            self.make_each();
            if churn.is_some() {
                self.phases.begin(beside);
            }
            while churn.as_ref().is_some_and(|churn| !churn.is_finished()) {
                self.tick();
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        self.phases.end();
    }

    fn make_each(&self) {
        let settings = self.runner.settings;
        let kinds = settings.changes.iter().flat_map(|change| std::iter::repeat_n(change.kind, change.count));
        let mut next_at = Instant::now();
        for (place, kind) in kinds.enumerate() {
            self.rest_until(next_at);
            if self.runner.is_stopped() {
                return;
            }
            next_at = Instant::now() + settings.between;
            // Churn runs alongside the other changes for the whole time.
            if settings.churn == Churn::None {
                self.phases.begin(kind.name());
            }
            self.make(place + 1, kind);
        }
    }

    pub fn finish(self) -> Changed {
        let Sequence { mut changes, resized, .. } =
            self.sequence.into_inner().unwrap_or_else(PoisonError::into_inner);
        Changed {
            undo: resized.iter().rev().filter_map(|change| changes.undo(change)).collect(),
            impossible: self.impossible.into_inner().unwrap_or_else(PoisonError::into_inner),
            witnesses: self.witnesses.finish(),
            phases: self.phases.finish(),
        }
    }

    fn make(&self, number: usize, kind: ChangeKind) {
        let made = match kind {
            ChangeKind::ConnectStorm => Ok(vec![self.fleet.reconnect(kind.name(), Selection::All)]),
            ChangeKind::CertificateRotation => {
                let rotation = self.fleet.rotate_certificates(Selection::All);
                rotation.map(|change| vec![change]).map_err(|error| error_chain(&error))
            }
            ChangeKind::IstiodRestart => self.restart_istiod(),
            ChangeKind::IstiodAdded => self.add_istiod(),
            ChangeKind::IstiodRemoved => self.remove_istiod(),
            ChangeKind::LinkDown => links::cut(self, number),
            kind => self.write(kind, kind.name()),
        };
        match made {
            Ok(changes) => self.follow(number, kind.name(), &changes),
            Err(failure) => self.failed(kind.name(), failure),
        }
    }

    /// Writes a change of the mesh, which the fleet expects under `name`: once per kind of proxy, since their
    /// marks differ.
    pub fn write(&self, kind: ChangeKind, name: &str) -> Result<Vec<ChangeId>, String> {
        self.write_while(kind, name, None).map(|written| written.changes)
    }

    /// Like [`Self::write`], while some proxies are cut off.
    pub fn write_while(
        &self,
        kind: ChangeKind,
        name: &str,
        cut_off: Option<&CutOff<'_>>,
    ) -> Result<Written, String> {
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        let change = sequence.changes.next(kind).map_err(|error| error_chain(&error))?;
        self.wait_for_undone(&mut sequence.pending, &change);
        let expect = |expected: &Expected| {
            self.fleet.expect(ChangeMarks {
                kind: name.to_owned(),
                marks: expected.marks.clone(),
                expected: self.selection(expected),
                objects: change.writes.len(),
            })
        };
        let catching_up = cut_off.into_iter().flat_map(|cut_off| {
            change.expected.iter().map(|expected| {
                let those = self.places(expected).filter(|place| cut_off.places.contains(place)).collect();
                self.fleet.expect_catching_up(
                    cut_off.cause,
                    expected.marks.clone(),
                    Selection::Proxies(those),
                )
            })
        });
        let catching_up: Vec<ChangeId> = catching_up.collect();
        let ids: Vec<ChangeId> = change.expected.iter().map(expect).collect();
        // Churn is not followed.
        if name == kind.name() {
            ids.iter().zip(&change.expected).for_each(|(id, expected)| self.witnesses.expect(*id, expected));
        }
        match change.perform(&self.runner.api.client) {
            Ok(performed) => {
                ids.iter()
                    .for_each(|id| self.fleet.written(*id, performed.first_sent, performed.acknowledged));
                let contents = contents(&change, Presence::Present).collect();
                sequence.pending.push(Pending { ids: ids.clone(), contents });
                if change.changes_size() {
                    sequence.resized.push(change);
                }
                Ok(Written { changes: ids, catching_up })
            }
            Err(error) => {
                let failure = error_chain(&error);
                ids.iter().chain(&catching_up).for_each(|id| self.fleet.failed(*id, failure.clone()));
                if ids.is_empty() { Err(failure) } else { Ok(Written::default()) }
            }
        }
    }

    /// Waits until content that `change` removes has arrived, or its time is up.
    fn wait_for_undone(&self, pending: &mut Vec<Pending>, change: &Change) {
        pending.retain(|pending| !pending.ids.iter().all(|id| self.fleet.reached(*id).is_complete()));
        let deadline = Instant::now() + self.runner.settings.settle;
        for id in
            pending.iter().filter(|pending| pending.is_undone_by(change)).flat_map(|pending| &pending.ids)
        {
            while !self.runner.is_stopped() && Instant::now() < deadline {
                if self.fleet.wait(*id, deadline.min(Instant::now() + POLL_INTERVAL)).is_complete() {
                    break;
                }
            }
        }
    }

    fn selection(&self, expected: &Expected) -> Selection {
        Selection::Proxies(self.places(expected).collect())
    }

    /// Indices of the proxies that are expected to receive a change.
    fn places<'b>(&'b self, expected: &'b Expected) -> impl Iterator<Item = usize> + 'b {
        let is_expected = |proxy: &Proxy| {
            proxy.kind == expected.kind
                && expected.namespace.as_ref().is_none_or(|namespace| *namespace == proxy.namespace)
        };
        let proxies = self.population.proxies().iter().enumerate();
        proxies.filter(move |(_, proxy)| is_expected(proxy)).map(|(place, _)| place)
    }

    /// Follows a change until it has reached all proxies, its time is up, or the run is to end.
    pub fn follow(&self, number: usize, kind: &str, changes: &[ChangeId]) {
        let deadline = Instant::now() + self.runner.settings.settle;
        loop {
            let look_at = deadline.min(Instant::now() + POLL_INTERVAL);
            let waited: Vec<Waited> =
                changes.iter().map(|change| self.fleet.wait(*change, look_at)).collect();
            let (reached, expected) = (
                waited.iter().map(|waited| waited.reached).sum(),
                waited.iter().map(|waited| waited.expected).sum(),
            );
            self.runner.reporter.report(&FleetProgress::Change {
                kind: kind.to_owned(),
                number,
                reached,
                expected,
            });
            self.tick();
            if reached >= expected || Instant::now() >= deadline || self.runner.is_stopped() {
                break;
            }
        }
        self.witnesses.follow(self.fleet, changes);
    }

    fn restart_istiod(&self) -> Result<Vec<ChangeId>, String> {
        let change = self.fleet.expect_return(ChangeKind::IstiodRestart.name(), Selection::All);
        match self.ask(FleetAsk::IstiodRestart) {
            Ok(_) => Ok(vec![change]),
            Err(failure) => {
                self.fleet.failed(change, failure);
                Ok(Vec::new())
            }
        }
    }

    /// Connected proxies stay where they are, as in a cluster; only new connections may reach the new istiod.
    fn add_istiod(&self) -> Result<Vec<ChangeId>, String> {
        let istiods = self.ask(FleetAsk::IstiodAdded)?;
        let first = self.runner.targets.first().ok_or("there is no istiod")?;
        for address in istiods {
            if self.runner.targets.iter().all(|target| target.address != address) {
                self.fleet
                    .add_target(&Target { address, ..first.clone() })
                    .map_err(|error| error_chain(&error))?;
            }
        }
        Ok(Vec::new())
    }

    /// The proxies of the removed istiod reconnect to another one.
    fn remove_istiod(&self) -> Result<Vec<ChangeId>, String> {
        let before = self.runner.targets.iter().map(|target| target.address.clone());
        let change = self.fleet.expect_return(ChangeKind::IstiodRemoved.name(), Selection::All);
        let left = match self.ask(FleetAsk::IstiodRemoved) {
            Ok(left) => left,
            Err(failure) => {
                self.fleet.failed(change, failure);
                return Ok(Vec::new());
            }
        };
        before
            .filter(|address| !left.contains(address))
            .for_each(|address| self.fleet.remove_target(&address));
        // Only proxies of that istiod reconnect: waits until the fleet is complete again.
        let deadline = Instant::now() + self.runner.settings.settle;
        self.rest_until(Instant::now() + self.runner.settings.between);
        while !self.runner.is_stopped() && Instant::now() < deadline {
            self.tick();
            if self.fleet.wait_complete(deadline.min(Instant::now() + POLL_INTERVAL)).is_complete() {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Returns the istiods after the action.
    pub fn ask(&self, ask: FleetAsk) -> Result<Vec<String>, String> {
        let answer = self.runner.link.ask(ask, &self.runner.reporter, &self.runner.stop)?;
        let started_at_unix_s = self.fleet.started_at_unix_s();
        for happening in answer.happened {
            self.fleet.event_at(happening.since(started_at_unix_s));
        }
        Ok(answer.istiods)
    }

    /// Records a change that could not be made.
    pub fn failed(&self, kind: &str, failure: String) {
        let at = self.fleet.started().elapsed().as_secs_f64();
        self.fleet.event("change-failed", format!("{kind}: {failure}"));
        let change =
            FleetChange { kind: kind.to_owned(), at, failure: Some(failure), ..FleetChange::default() };
        self.impossible.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    }

    pub fn rest_until(&self, until: Instant) {
        while !self.runner.is_stopped() {
            self.tick();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }

    fn tick(&self) {
        self.runner.tick(self.fleet);
    }
}
