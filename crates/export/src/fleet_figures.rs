//! Figures of a fleet as metrics: while it runs, and its result.

use crate::metric::{Families, Labels, with_label};
use results::{FleetProgress, FleetResult, LatencyHistogram};
use std::collections::BTreeMap;

/// Microseconds per second.
const US_IN_S: f64 = 1e6;
/// Percentiles of a result with their `quantile` labels; 100 is the maximum.
const QUANTILES: [(f64, &str); 4] = [(50.0, "0.5"), (90.0, "0.9"), (99.0, "0.99"), (100.0, "1")];

/// Figures of a running fleet.
#[derive(Clone, Debug)]
pub struct FleetFigures {
    phase: &'static str,
    /// Start of the fleet, in milliseconds since 1970.
    since_ms: i64,
    wanted: u64,
    connected: u64,
    complete: u64,
    pushes: u64,
    bytes: u64,
    /// Number of changes begun, by kind.
    changes: BTreeMap<String, u64>,
    change: Option<ChangeUnderWay>,
}

#[derive(Clone, Debug)]
struct ChangeUnderWay {
    kind: String,
    number: usize,
    reached: u64,
    expected: u64,
}

impl FleetFigures {
    /// Figures of a fleet that starts now.
    #[must_use]
    pub fn starting_now() -> Self {
        Self {
            phase: "waiting",
            since_ms: jiff::Timestamp::now().as_millisecond(),
            wanted: 0,
            connected: 0,
            complete: 0,
            pushes: 0,
            bytes: 0,
            changes: BTreeMap::new(),
            change: None,
        }
    }

    /// Adds a progress report of the fleet. True if a phase begins, or if a second has ended.
    pub fn add(&mut self, progress: &FleetProgress) -> bool {
        let phase = match progress {
            FleetProgress::Writing { .. } => "writing",
            FleetProgress::WindowOpened => "connecting",
            FleetProgress::Connecting { connected, complete, of } => {
                (self.wanted, self.connected, self.complete) = (*of, *connected, *complete);
                "connecting"
            }
            FleetProgress::Change { kind, number, reached, expected } => {
                if self.change.as_ref().is_none_or(|change| change.number != *number) {
                    *self.changes.entry(kind.clone()).or_default() += 1;
                }
                let (kind, number, reached, expected) = (kind.clone(), *number, *reached, *expected);
                self.change = Some(ChangeUnderWay { kind, number, reached, expected });
                "changing"
            }
            FleetProgress::Second(second) => {
                (self.connected, self.complete) = (second.connected, second.complete);
                self.pushes += second.pushes;
                self.bytes += second.bytes;
                return true;
            }
            FleetProgress::Ask(_) => return false,
            FleetProgress::WindowClosed => "ending",
            FleetProgress::Removing => "removing",
        };
        std::mem::replace(&mut self.phase, phase) != phase
    }

    /// Adds these figures as metrics with these labels.
    pub fn add_to(&self, families: &mut Families, labels: &Labels) {
        let phase = with_label(labels, "phase", self.phase);
        families.gauge("meshmeter_fleet_phase", "Phase of the fleet.", phase, 1.0);
        for (state, proxies) in
            [("wanted", self.wanted), ("connected", self.connected), ("complete", self.complete)]
        {
            families.gauge(
                "meshmeter_fleet_proxies",
                "Simulated proxies: of the fleet, connected, and with a complete configuration.",
                with_label(labels, "state", state),
                proxies as f64,
            );
        }
        let mut counter = |name, help, labels, count: u64| {
            families.counter(name, help, labels, self.since_ms, count as f64);
        };
        counter("meshmeter_fleet_pushes_total", "Responses received.", labels.clone(), self.pushes);
        counter("meshmeter_fleet_received_bytes_total", "Bytes received.", labels.clone(), self.bytes);
        for (kind, count) in &self.changes {
            let labels = with_label(labels, "kind", kind);
            counter("meshmeter_fleet_changes_total", "Changes written and followed.", labels, *count);
        }
        let Some(change) = &self.change else { return };
        for (state, proxies) in [("expected", change.expected), ("reached", change.reached)] {
            families.gauge(
                "meshmeter_fleet_change_proxies",
                "Proxies that the last change must reach, and has reached.",
                with_label(&with_label(labels, "kind", &change.kind), "state", state),
                proxies as f64,
            );
        }
    }
}

/// Adds the result of a fleet as metrics with these labels.
pub fn add_fleet_result(result: &FleetResult, families: &mut Families, labels: &Labels) {
    let mut quantiles = |name, help, labels: &Labels, times: &LatencyHistogram, never: u64| {
        if times.count() + never == 0 {
            return;
        }
        for (percentile, quantile) in QUANTILES {
            let us = times.percentile_with(percentile, never);
            let value = us.map_or(f64::INFINITY, |us| us / US_IN_S);
            families.gauge(name, help, with_label(labels, "quantile", quantile), value);
        }
    };
    let first = &result.first_configuration_us;
    quantiles(
        "meshmeter_fleet_first_configuration_quantile_seconds",
        "From the start of connecting to the first complete configuration, 1 the last; +Inf among proxies without one.",
        labels,
        &LatencyHistogram::decode(&first.histogram).unwrap_or_default(),
        first.censored,
    );
    let mut kinds: BTreeMap<&str, (LatencyHistogram, u64)> = BTreeMap::new();
    for change in &result.changes {
        let (times, never) = kinds.entry(&change.kind).or_default();
        times.merge(&LatencyHistogram::decode(&change.convergence_us.histogram).unwrap_or_default());
        *never += change.convergence_us.censored;
    }
    for (kind, (times, never)) in &kinds {
        quantiles(
            "meshmeter_fleet_convergence_quantile_seconds",
            "From a change's acknowledgement to its arrival at each proxy, 1 the last; +Inf among proxies never reached.",
            &with_label(labels, "kind", *kind),
            times,
            *never,
        );
    }
    let mut gauge = |name, help, labels: Labels, value: f64| families.gauge(name, help, labels, value);
    gauge(
        "meshmeter_fleet_never_proxies",
        "Proxies without a complete configuration at the end.",
        labels.clone(),
        result.proxies.never as f64,
    );
    gauge("meshmeter_fleet_rejections", "Responses rejected.", labels.clone(), result.rejections as f64);
    for part in &result.control_plane {
        let labels = with_label(labels, "component", &part.name);
        if let Some(cpu_s) = part.cpu_s {
            let help = "CPU of the control plane from the first connection to the end.";
            gauge("meshmeter_fleet_control_plane_cpu_seconds", help, labels.clone(), cpu_s);
        }
        if let Some(bytes) = part.memory_peak_bytes {
            let help = "Peak memory of the control plane.";
            gauge("meshmeter_fleet_control_plane_memory_peak_bytes", help, labels, bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::text;
    use results::{ControlPlaneFigures, FleetChange, FleetProxies, FleetSecond};
    use std::time::Duration;

    #[test]
    fn progress_is_counted_and_each_phase_begins_once() {
        let mut figures = FleetFigures::starting_now();
        let writing = |written| FleetProgress::Writing { written, of: 9 };
        assert!(figures.add(&writing(1)) && !figures.add(&writing(9)));
        assert!(figures.add(&FleetProgress::Connecting { connected: 3, complete: 2, of: 4 }));
        let change = |number, reached| FleetProgress::Change {
            kind: "endpoint-added".to_owned(),
            number,
            reached,
            expected: 4,
        };
        for change in [change(1, 0), change(1, 4), change(2, 1)] {
            figures.add(&change);
        }
        let second = FleetSecond { t_s: 1.0, connected: 4, complete: 4, pushes: 7, bytes: 100 };
        assert!(figures.add(&FleetProgress::Second(second.clone())));
        assert!(figures.add(&FleetProgress::Second(second)));
        let mut families = Families::default();
        figures.add_to(&mut families, &Labels::new());
        let page = text(&families);
        for expected in [
            "meshmeter_fleet_phase{phase=\"changing\"} 1\n",
            "meshmeter_fleet_proxies{state=\"wanted\"} 4\n",
            "meshmeter_fleet_proxies{state=\"complete\"} 4\n",
            "meshmeter_fleet_pushes_total 14\n",
            "meshmeter_fleet_received_bytes_total 200\n",
            "meshmeter_fleet_changes_total{kind=\"endpoint-added\"} 2\n",
            "meshmeter_fleet_change_proxies{kind=\"endpoint-added\",state=\"reached\"} 1\n",
        ] {
            assert!(page.contains(expected), "{expected}{page}");
        }
    }

    #[test]
    fn result_has_quantiles_by_kind_and_infinity_for_unreached_proxies() {
        let mut times = LatencyHistogram::new();
        times.record(Duration::from_millis(250));
        let change = |never| FleetChange {
            kind: "service-entry".to_owned(),
            convergence_us: times.summary_with(never),
            ..FleetChange::default()
        };
        let istiod = ControlPlaneFigures {
            name: "istiod".to_owned(),
            cpu_s: Some(2.5),
            ..ControlPlaneFigures::default()
        };
        let result = FleetResult {
            proxies: FleetProxies { never: 1, ..FleetProxies::default() },
            changes: vec![change(0), change(1)],
            control_plane: vec![istiod],
            ..FleetResult::default()
        };
        let mut families = Families::default();
        add_fleet_result(&result, &mut families, &Labels::new());
        let page = text(&families);
        for expected in [
            "meshmeter_fleet_convergence_quantile_seconds{kind=\"service-entry\",quantile=\"0.5\"} 0.25",
            "meshmeter_fleet_convergence_quantile_seconds{kind=\"service-entry\",quantile=\"1\"} +Inf\n",
            "meshmeter_fleet_never_proxies 1\n",
            "meshmeter_fleet_control_plane_cpu_seconds{component=\"istiod\"} 2.5\n",
        ] {
            assert!(page.contains(expected), "{expected}{page}");
        }
        assert!(!page.contains("first_configuration"), "{page}");
    }
}
