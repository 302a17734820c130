//! Live metrics of a run: what its generators report each second, and the figures of each completed trial.
//!
//! The lab has no route to the user's network. The sending thread is started before the process leaves that
//! network, and stays in it. A second thread collects what the run reports and publishes a snapshot every
//! second, so that the run neither encodes nor waits.

mod trial_figures;

use crate::cli::ExportArgs;
use crate::failure::Failure;
use crate::output::tell;
use experiment::PlannedTrial;
use export::{Exporter, Families, FleetFigures, Labels, LoadFigures, LoadPhase, SecondFigures, Settings};
use results::{
    ExportRecord, Factors, FleetProgress, LatencyHistogram, LoadEvent, LoadPoint, SecondDetail, TrialRecord,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use trial_figures::trial_families;

/// Labels set by the run itself, in addition to one per factor.
const OWN_LABELS: [&str; 12] = [
    "mode",
    "load",
    "trial",
    "repeat",
    "generator",
    "driver",
    "namespace",
    "pod",
    "service",
    "gateway",
    "observer",
    "target",
];

/// Starts to send, from the network of the calling thread. `None` if no export is requested.
pub(super) fn start_exporter(args: &ExportArgs, run: &str) -> Result<Option<Exporter>, Failure> {
    if !args.is_asked_for() {
        return Ok(None);
    }
    let destinations = args.destinations().map_err(Failure::usage)?;
    let own = [("job", "meshmeter".to_owned()), ("run", run.to_owned())];
    let mut labels: Labels = own.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect();
    labels.extend(args.label.iter().map(|(name, value)| (Cow::Owned(name.clone()), value.clone())));
    Exporter::start(Settings { destinations, labels }, |text| tell!("{text}"))
        .map(Some)
        .map_err(|error| Failure::environment(&error).about("start to send metrics"))
}

/// Checks the options as far as possible before the lab is entered.
pub(super) fn check(args: &ExportArgs) -> Result<(), Failure> {
    args.destinations().map_err(Failure::usage)?;
    match args.label.iter().find(|(name, _)| OWN_LABELS.contains(&name.as_str())) {
        Some((name, _)) => Err(Failure::usage(format!("--label {name}: a run sets this label itself"))),
        None => Ok(()),
    }
}

/// Live metrics of a run.
pub(super) struct LiveMetrics {
    events: Sender<LiveEvent>,
    collector: JoinHandle<Vec<ExportRecord>>,
}

/// Message from the run to the collector.
enum LiveEvent {
    Planned(usize),
    Begins(Labels),
    Load { generator: String, driver: String, namespace: String, event: LoadEvent },
    Fleet { driver: String, event: FleetProgress },
    Ended(Box<TrialRecord>),
}

impl LiveMetrics {
    /// Starts the collector, which publishes a snapshot per `interval` to this exporter.
    pub(super) fn start(exporter: Exporter, interval: Duration) -> Result<Self, Failure> {
        let (events, received) = channel();
        let collect = move || Collector::new(exporter, interval).collect(&received);
        let collector = thread::Builder::new()
            .name("collect metrics".to_owned())
            .spawn(collect)
            .map_err(|error| Failure::environment(&error).about("start to collect metrics"))?;
        Ok(Self { events, collector })
    }

    /// Announces `trials` more trials.
    pub(super) fn planned(&self, trials: usize) {
        self.send_event(LiveEvent::Planned(trials));
    }

    /// Announces trial number `index` of the run.
    pub(super) fn trial_begins(&self, planned: &PlannedTrial, index: usize) {
        let mut labels = cell_labels(&planned.factors, &planned.load);
        labels.insert(Cow::Borrowed("mode"), planned.mode().to_string());
        labels.insert(Cow::Borrowed("repeat"), planned.repeat.to_string());
        labels.insert(Cow::Borrowed("trial"), index.to_string());
        self.send_event(LiveEvent::Begins(labels));
    }

    /// Passes on an event of a generator.
    pub(super) fn load(&self, generator: &str, driver: &str, namespace: &str, event: &LoadEvent) {
        // Skips plain seconds: `SecondDetail` has everything that they have.
        if !matches!(event, LoadEvent::Second(_)) {
            let [generator, driver, namespace] = [generator, driver, namespace].map(str::to_owned);
            self.send_event(LiveEvent::Load { generator, driver, namespace, event: event.clone() });
        }
    }

    /// Passes on an event of a fleet.
    pub(super) fn fleet(&self, driver: &str, event: &FleetProgress) {
        self.send_event(LiveEvent::Fleet { driver: driver.to_owned(), event: event.clone() });
    }

    /// Passes on the record of a completed trial.
    pub(super) fn trial_ended(&self, record: &TrialRecord) {
        self.send_event(LiveEvent::Ended(Box::new(record.clone())));
    }

    /// Ends all series, with a timeout, and returns what became of the snapshots.
    pub(super) fn finish(self) -> Vec<ExportRecord> {
        drop(self.events);
        self.collector.join().unwrap_or_default()
    }

    fn send_event(&self, event: LiveEvent) {
        // The collector has exited with the run, or panicked; either way there are no more metrics.
        let _ = self.events.send(event);
    }
}

/// Labels of a cell: the load as text, and every factor. Characters of a factor's key that labels cannot have
/// become `_`.
fn cell_labels(factors: &Factors, load: &LoadPoint) -> Labels {
    let strength = match (load.rate, load.clients) {
        (Some(rate), _) => format!("{rate}/s"),
        (None, Some(clients)) => format!("{clients} clients"),
        (None, None) => "none".to_owned(),
    };
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric();
    let factors = factors.iter().map(|(key, value)| {
        let name = key.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect();
        (Cow::Owned(name), value.to_string())
    });
    factors.chain([(Cow::Borrowed("load"), strength)]).collect()
}

/// State of the collector.
struct Collector {
    exporter: Exporter,
    interval: Duration,
    published_at: Instant,
    /// Labels of the current trial.
    labels: Labels,
    /// Generators of the current trial, with their labels.
    generators: BTreeMap<String, (Labels, LoadFigures)>,
    /// Fleets of the current trial, with their labels.
    fleets: BTreeMap<String, (Labels, FleetFigures)>,
    /// Figures of the last completed trial.
    last_trial: Families,
    planned: usize,
    ended: usize,
}

impl Collector {
    fn new(exporter: Exporter, interval: Duration) -> Self {
        Self {
            exporter,
            interval,
            published_at: Instant::now(),
            labels: Labels::new(),
            generators: BTreeMap::new(),
            fleets: BTreeMap::new(),
            last_trial: Families::default(),
            planned: 0,
            ended: 0,
        }
    }

    /// Collects until all senders are gone.
    fn collect(mut self, received: &Receiver<LiveEvent>) -> Vec<ExportRecord> {
        loop {
            let due_in = self.interval.saturating_sub(self.published_at.elapsed());
            match received.recv_timeout(due_in) {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => self.publish(),
                Err(RecvTimeoutError::Disconnected) => return self.exporter.finish(),
            }
        }
    }

    fn handle(&mut self, event: LiveEvent) {
        match event {
            LiveEvent::Planned(trials) => self.planned += trials,
            LiveEvent::Begins(labels) => {
                self.labels = labels;
                self.generators.clear();
                self.fleets.clear();
            }
            LiveEvent::Load { generator, driver, namespace, event } => {
                self.load(generator, [("driver", driver), ("namespace", namespace)], event);
            }
            LiveEvent::Fleet { driver, event } => {
                let (_, figures) = self.fleets.entry(driver).or_insert_with_key(|driver| {
                    let mut labels = self.labels.clone();
                    labels.insert(Cow::Borrowed("driver"), driver.clone());
                    (labels, FleetFigures::starting_now())
                });
                figures.add(&event);
            }
            LiveEvent::Ended(record) => {
                self.ended += 1;
                self.last_trial = trial_families(&record, &self.labels);
                // Publishes the last state of the generators before they are removed.
                self.publish();
                self.generators.clear();
                self.fleets.clear();
            }
        }
    }

    fn load(&mut self, generator: String, place: [(&'static str, String); 2], event: LoadEvent) {
        let (_, figures) = self.generators.entry(generator).or_insert_with_key(|generator| {
            let mut labels = self.labels.clone();
            labels.insert(Cow::Borrowed("generator"), generator.clone());
            labels.extend(place.map(|(name, value)| (Cow::Borrowed(name), value)));
            (labels, LoadFigures::starting_now())
        });
        match event {
            LoadEvent::Waiting => figures.phase = LoadPhase::Waiting,
            LoadEvent::Connecting => figures.phase = LoadPhase::Connecting,
            LoadEvent::Ready => figures.phase = LoadPhase::Ready,
            LoadEvent::WarmingUp => figures.phase = LoadPhase::WarmingUp,
            LoadEvent::WindowOpened => figures.phase = LoadPhase::Measuring,
            LoadEvent::WindowClosed => figures.phase = LoadPhase::Draining,
            LoadEvent::SecondDetail(detail) => add(figures, &detail),
            LoadEvent::StartMissed | LoadEvent::Second(_) => {}
        }
    }

    fn publish(&mut self) {
        let mut families = Families::default();
        for (state, trials) in [("planned", self.planned), ("ended", self.ended)] {
            let labels = Labels::from([(Cow::Borrowed("state"), state.to_owned())]);
            let help = "Trials of the run, reruns included.";
            families.gauge("meshmeter_run_trials", help, labels, trials as f64);
        }
        for (labels, figures) in self.generators.values() {
            figures.add_to(&mut families, labels);
        }
        for (labels, figures) in self.fleets.values() {
            figures.add_to(&mut families, labels);
        }
        families.append(self.last_trial.clone());
        self.exporter.publish(families);
        self.published_at = Instant::now();
    }
}

fn add(figures: &mut LoadFigures, detail: &SecondDetail) {
    // If a histogram cannot be decoded, the counts still can be used.
    let [response_time, service_time, schedule_lag] =
        [&detail.response_time_us, &detail.service_time_us, &detail.schedule_lag_us]
            .map(|text| LatencyHistogram::decode(text).ok());
    figures.add(&SecondFigures {
        sent: detail.sent,
        completed: detail.completed,
        failed: detail.failed,
        errors: detail.errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect(),
        statuses: detail.statuses.iter().map(|(code, count)| (code.clone(), *count)).collect(),
        bytes_sent: detail.bytes_sent,
        bytes_received: detail.bytes_received,
        connections_open: detail.connections_open,
        due: detail.due,
        response_time: response_time.as_ref(),
        service_time: service_time.as_ref(),
        schedule_lag: schedule_lag.as_ref(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::FactorValue;

    #[test]
    fn factors_are_labels() {
        let factors = Factors::from([
            ("ingress.domains".to_owned(), FactorValue::from_typed("20")),
            ("gateway.cpu".to_owned(), FactorValue::from_typed("250m")),
            ("load.body-size".to_owned(), FactorValue::from_typed("1KiB")),
        ]);
        let load = LoadPoint {
            protocol: "http/1.1".to_owned(),
            rate: None,
            clients: Some(50),
            connections: 50,
            requests_per_connection: None,
            payload_bytes: 0,
            stream: None,
            arrival: "uniform".to_owned(),
            surrounding_services: None,
        };
        let labels = cell_labels(&factors, &load);
        let expected = [
            ("gateway_cpu", "250m"),
            ("ingress_domains", "20"),
            ("load", "50 clients"),
            ("load_body_size", "1KiB"),
        ];
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (&**name, value.as_str())).collect();
        assert_eq!(labels, expected);
    }
}
