//! Figures of control plane components over a window, from their Prometheus metrics: CPU, memory, goroutines
//! and the chain of histograms of istiod; CPU and memory of kube-apiserver and etcd.
//! [`MetricsWindow`] adds up readings. A restarted process counts from zero; the total keeps what its
//! predecessor counted up to the last reading.
//!
//! istiod's chain for one change: `pilot_debounce_time` (collecting changes, the push context included) →
//! `pilot_pushcontext_init_seconds` → `pilot_proxy_queue_time` (per proxy) → `pilot_xds_push_time` (per proxy
//! and type). `pilot_proxy_convergence_time` spans the push request's start to the end of the push, per
//! proxy. istiod does not expose the length of its push queue.

use experiment::environment::{EnvironmentError, ErrorContext};
use results::exposition::Exposition;
use results::{ControlPlaneFigures, ReportedHistogram};
use std::collections::BTreeMap;

/// istiod's histograms, each with its name in results.
const CHAIN: [(&str, &str); 5] = [
    ("debounce", "pilot_debounce_time"),
    ("push_context", "pilot_pushcontext_init_seconds"),
    ("queue", "pilot_proxy_queue_time"),
    ("push", "pilot_xds_push_time"),
    ("convergence", "pilot_proxy_convergence_time"),
];
const PUSHES: &str = "pilot_xds_pushes";
const TRIGGERS: &str = "pilot_push_triggers";
/// Appears only after the first rejected configuration.
const REJECTIONS: &str = "pilot_total_xds_rejects";
/// Metric and label that hold the version, exposed by every istiod.
const ISTIOD_VERSION: (&str, &str) = ("pilot_info", "version");
const API_SERVER_VERSION: (&str, &str) = ("kubernetes_build_info", "git_version");
const ETCD_VERSION: (&str, &str) = ("etcd_server_version", "server_version");

const CPU_S: &str = "process_cpu_seconds_total";
const MEMORY_BYTES: &str = "process_resident_memory_bytes";
const GOROUTINES: &str = "go_goroutines";
const STARTED_AT: &str = "process_start_time_seconds";

/// The component whose metrics are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exposed {
    Istiod,
    ApiServer,
    Etcd,
}

impl Exposed {
    pub fn name(self) -> &'static str {
        match self {
            Self::Istiod => "istiod",
            Self::ApiServer => "kube-apiserver",
            Self::Etcd => "etcd",
        }
    }

    fn version(self) -> (&'static str, &'static str) {
        match self {
            Self::Istiod => ISTIOD_VERSION,
            Self::ApiServer => API_SERVER_VERSION,
            Self::Etcd => ETCD_VERSION,
        }
    }
}

/// One metrics page: counters since the process started, and gauges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsReading {
    pub version: Option<String>,
    /// Start time of the process, which shows restarts.
    started_at: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub goroutines: Option<u64>,
    pub counted: Counted,
}

/// Counters since the process started, or their increase over a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    pub cpu_s: f64,
    pub chain: BTreeMap<String, ReportedHistogram>,
    pub pushes: BTreeMap<String, u64>,
    pub triggers: BTreeMap<String, u64>,
    pub rejections: u64,
}

impl MetricsReading {
    pub fn parse(exposed: Exposed, page: &str) -> Result<Self, EnvironmentError> {
        let operation = || format!("read the metrics of {}", exposed.name());
        let page = Exposition::parse(page).context(operation())?;
        let (name, label) = exposed.version();
        let version = page.named(name).find_map(|sample| sample.label(label));
        if version.is_none() {
            let reason = format!("it has no {name}: another program responds there");
            return Err(EnvironmentError::new(operation(), reason));
        }
        let cpu_s = page.sum(CPU_S);
        let cpu_s = cpu_s.ok_or_else(|| EnvironmentError::new(operation(), format!("it has no {CPU_S}")))?;
        let histogram = |(short, name): (&str, &str)| Some((short.to_owned(), page.histogram(name)?));
        let whole = |name: &str| page.sum(name).map(|value| value as u64);
        Ok(Self {
            version: version.map(|version| version.trim().to_owned()).filter(|version| !version.is_empty()),
            started_at: page.sum(STARTED_AT),
            memory_bytes: whole(MEMORY_BYTES),
            goroutines: whole(GOROUTINES),
            counted: Counted {
                cpu_s,
                chain: CHAIN.into_iter().filter_map(histogram).collect(),
                pushes: page.counts_by(PUSHES, "type"),
                triggers: page.counts_by(TRIGGERS, "type"),
                rejections: whole(REJECTIONS).unwrap_or_default(),
            },
        })
    }

    fn is_of_another_process(&self, earlier: &Self) -> bool {
        self.started_at != earlier.started_at || self.counted.cpu_s < earlier.counted.cpu_s
    }
}

impl Counted {
    /// Increase since an earlier reading of the same process.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = |now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>| {
            let since = |(name, count): (&String, &u64)| {
                (name.clone(), count.saturating_sub(*then.get(name).unwrap_or(&0)))
            };
            now.iter().map(since).filter(|(_, count)| *count > 0).collect()
        };
        let histogram = |(name, now): (&String, &ReportedHistogram)| {
            (name.clone(), earlier.chain.get(name).map_or_else(|| now.clone(), |then| now.since(then)))
        };
        Self {
            cpu_s: (self.cpu_s - earlier.cpu_s).max(0.0),
            chain: self.chain.iter().map(histogram).collect(),
            pushes: counts(&self.pushes, &earlier.pushes),
            triggers: counts(&self.triggers, &earlier.triggers),
            rejections: self.rejections.saturating_sub(earlier.rejections),
        }
    }

    fn add(&mut self, other: &Self) {
        self.cpu_s += other.cpu_s;
        for (name, histogram) in &other.chain {
            self.chain.entry(name.clone()).or_default().add(histogram);
        }
        for (counts, others) in [(&mut self.pushes, &other.pushes), (&mut self.triggers, &other.triggers)] {
            for (name, count) in others {
                *counts.entry(name.clone()).or_default() += count;
            }
        }
        self.rejections += other.rejections;
    }
}

/// Readings of one component, beginning with the first.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsWindow {
    exposed: Exposed,
    /// Total of processes that have ended.
    ended: Counted,
    /// Counters at the window's start; zero if the current process started later.
    base: Counted,
    last: MetricsReading,
    memory_peak_bytes: Option<u64>,
    goroutines_peak: Option<u64>,
    restarts: u64,
}

impl MetricsWindow {
    pub fn new(exposed: Exposed, first: MetricsReading) -> Self {
        Self {
            exposed,
            ended: Counted::default(),
            base: first.counted.clone(),
            memory_peak_bytes: first.memory_bytes,
            goroutines_peak: first.goroutines,
            last: first,
            restarts: 0,
        }
    }

    pub fn add(&mut self, reading: MetricsReading) {
        if reading.is_of_another_process(&self.last) {
            self.ended = self.total();
            self.base = Counted::default();
            self.restarts += 1;
        }
        self.memory_peak_bytes = self.memory_peak_bytes.max(reading.memory_bytes);
        self.goroutines_peak = self.goroutines_peak.max(reading.goroutines);
        self.last = reading;
    }

    /// Total since the window's start.
    pub fn total(&self) -> Counted {
        let mut total = self.ended.clone();
        total.add(&self.last.counted.since(&self.base));
        total
    }

    pub fn last(&self) -> &MetricsReading {
        &self.last
    }

    /// The window's figures. If `chain` is given, which covers a part of the window, the chain of histograms
    /// is taken from it.
    pub fn figures(&self, chain: Option<&Counted>) -> ControlPlaneFigures {
        let total = self.total();
        let is_istiod = self.exposed == Exposed::Istiod;
        ControlPlaneFigures {
            name: self.exposed.name().to_owned(),
            version: self.last.version.clone(),
            cpu_s: Some(total.cpu_s),
            memory_bytes: self.last.memory_bytes,
            memory_peak_bytes: self.memory_peak_bytes,
            goroutines: self.last.goroutines,
            goroutines_peak: self.goroutines_peak,
            restarts: self.restarts,
            chain: if is_istiod { chain.unwrap_or(&total).chain.clone() } else { BTreeMap::new() },
            pushes: total.pushes,
            triggers: total.triggers,
            rejections: total.rejections,
            ..ControlPlaneFigures::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(started_at: f64, cpu_s: f64, pushes: u64) -> String {
        format!(
            "pilot_info{{version=\"1.31.1\"}} 1\n\
             process_cpu_seconds_total {cpu_s}\n\
             process_resident_memory_bytes {}\n\
             go_goroutines 200\n\
             process_start_time_seconds {started_at}\n\
             pilot_xds_pushes{{type=\"cds\"}} {pushes}\n\
             pilot_push_triggers{{type=\"endpoint\"}} {pushes}\n\
             pilot_debounce_time_bucket{{le=\"0.1\"}} {pushes}\n\
             pilot_debounce_time_sum {}\n\
             pilot_debounce_time_count {pushes}\n",
            1e8 + pushes as f64,
            0.5 * pushes as f64
        )
    }

    fn reading(started_at: f64, cpu_s: f64, pushes: u64) -> MetricsReading {
        MetricsReading::parse(Exposed::Istiod, &page(started_at, cpu_s, pushes)).unwrap()
    }

    #[test]
    fn window_has_counter_increases_and_gauge_peaks() {
        let mut window = MetricsWindow::new(Exposed::Istiod, reading(1.0, 10.0, 100));
        window.add(reading(1.0, 11.0, 160));
        window.add(reading(1.0, 12.5, 150));
        let figures = window.figures(None);
        assert_eq!((figures.cpu_s, figures.restarts), (Some(2.5), 0));
        assert_eq!((figures.memory_bytes, figures.memory_peak_bytes), (Some(100_000_150), Some(100_000_160)));
        assert_eq!(figures.pushes, BTreeMap::from([("cds".to_owned(), 50)]));
        assert_eq!(figures.triggers, BTreeMap::from([("endpoint".to_owned(), 50)]));
        let expected = ReportedHistogram { count: 50, sum: 25.0, buckets: vec![(0.1, 50)] };
        assert_eq!(figures.chain, BTreeMap::from([("debounce".to_owned(), expected)]));
        assert_eq!(figures.version.as_deref(), Some("1.31.1"));
    }

    #[test]
    fn window_continues_across_restart() {
        let mut window = MetricsWindow::new(Exposed::Istiod, reading(1.0, 10.0, 100));
        window.add(reading(1.0, 12.0, 110));
        window.add(reading(2.0, 0.5, 7));
        window.add(reading(2.0, 1.5, 9));
        let figures = window.figures(None);
        assert_eq!((figures.cpu_s, figures.restarts), (Some(3.5), 1));
        assert_eq!(figures.pushes["cds"], 19);
        assert_eq!(figures.chain["debounce"].count, 19);
    }

    #[test]
    fn figures_take_chain_from_part_of_window() {
        let mut window = MetricsWindow::new(Exposed::Istiod, reading(1.0, 10.0, 100));
        window.add(reading(1.0, 12.0, 110));
        let connected = window.total();
        window.add(reading(1.0, 13.0, 113));
        let changes = window.total().since(&connected);
        let figures = window.figures(Some(&changes));
        assert_eq!((figures.pushes["cds"], figures.chain["debounce"].count), (13, 3));
    }

    #[test]
    fn page_of_another_program_is_error() {
        let parse = |page: &str| MetricsReading::parse(Exposed::Istiod, page).unwrap_err();
        let reason = |page: &str| experiment::environment::error_chain(&parse(page));
        assert!(reason("up 1\n").contains("it has no pilot_info: another program responds there"));
        assert!(reason("<html>\n").contains("line 1 is not a sample"));
        assert!(reason("pilot_info{version=\"1\"} 1\n").contains("it has no process_cpu_seconds_total"));
    }
}
