//! Source, period and spread of every figure of a learned topology: `meshmeter.learned/1`, beside the topology file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Schema of the file.
pub(crate) const SCHEMA: &str = "meshmeter.learned/1";
/// Name of a service's figure: CPU that each of its sidecars requests.
pub const SIDECAR_CPU_REQUEST: &str = "sidecar CPU request";
/// Name of a service's figure: memory that each of its sidecars requests.
pub const SIDECAR_MEMORY_REQUEST: &str = "sidecar memory request";

/// Sources of everything in a learned topology.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Provenance {
    /// Schema of the file.
    pub schema: String,
    /// Name of the topology.
    pub name: String,
    /// Length of the period that was learned from, seconds.
    pub period_s: f64,
    /// End of the period, seconds since 1970.
    pub period_end_s: f64,
    /// Factor of rates and replicas.
    pub scale: f64,
    /// True if names are hashes.
    pub anonymised: bool,
    /// Inputs by metric or kind of object.
    pub sources: Vec<Source>,
    /// Services and hosts that receive requests.
    pub services: Vec<ServiceRecord>,
    /// Calls, those of drivers included.
    pub edges: Vec<EdgeRecord>,
    /// Drivers, whose rates a topology file does not have.
    pub drivers: Vec<DriverRecord>,
    /// Usage of the mesh's own sidecars, whatever the scale; absent if the telemetry lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecars: Option<SidecarUsage>,
    /// Results of the checks.
    pub findings: Vec<Finding>,
}

/// CPU and memory of all sidecars together, the means over the period.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SidecarUsage {
    /// CPU, cores.
    pub cpu_cores: Option<Figure>,
    /// Working set, bytes.
    pub memory_bytes: Option<Figure>,
}

/// An input.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Source {
    /// Metric, or kind of object.
    pub name: String,
    /// Number of rows or objects that were read.
    pub rows: u64,
}

/// A figure with its source.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Unit, such as `requests/s`, `s`, `bytes`, `fraction`, `pods`.
    pub unit: String,
    /// Metric and reporter, object, or assumption.
    pub source: String,
    /// Number of events that the figure rests on; 0 for an assumption.
    pub n: f64,
    /// Lower end of the spread: of a rate the 95 % interval of its count, of a median the bounds of its bucket.
    pub low: Option<f64>,
    /// Upper end of the spread.
    pub high: Option<f64>,
    /// 99th percentile, for distributions.
    pub p99: Option<f64>,
    /// Remark for readers.
    pub note: Option<String>,
}

/// Figures of a service.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ServiceRecord {
    /// Qualified name.
    pub name: String,
    /// Figures by name.
    pub figures: BTreeMap<String, Figure>,
}

/// Figures of a call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EdgeRecord {
    /// Qualified name of the caller, a client if a driver makes the call.
    pub from: String,
    /// Qualified name of the callee.
    pub to: String,
    /// Figures by name.
    pub figures: BTreeMap<String, Figure>,
}

/// A driver and its rate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DriverRecord {
    /// Name in the topology.
    pub name: String,
    /// Qualified name of the target.
    pub target: String,
    /// Reason for the driver.
    pub reason: String,
    /// Requests per second.
    pub rate: f64,
}

/// Result of a check.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Finding {
    /// Kind, such as `missing-callers`.
    pub kind: String,
    /// Subject: a service, a call, or empty.
    pub subject: String,
    /// A sentence.
    pub text: String,
}

impl Provenance {
    /// Sources of a call (`web:cart`, `shop/web:shop/cart`), a service or a driver as text; `None` if there is no such.
    #[must_use]
    pub fn explain(&self, name: &str) -> Option<String> {
        let is_named = |qualified: &str, name: &str| {
            qualified == name || qualified.rsplit_once('/').is_some_and(|(_, own)| own == name)
        };
        let mut text = String::new();
        match name.split_once(':') {
            Some((from, to)) => {
                for edge in
                    self.edges.iter().filter(|edge| is_named(&edge.from, from) && is_named(&edge.to, to))
                {
                    let subject = format!("{} → {}", edge.from, edge.to);
                    self.describe(&subject, &edge.figures, &mut text);
                }
            }
            None => {
                for service in self.services.iter().filter(|service| is_named(&service.name, name)) {
                    self.describe(&service.name, &service.figures, &mut text);
                }
                for driver in self.drivers.iter().filter(|driver| driver.name == name) {
                    let DriverRecord { name, target, reason, rate } = driver;
                    let _ = writeln!(text, "{name}: {} requests/s to {target}: {reason}", shown(*rate));
                }
            }
        }
        (!text.is_empty()).then_some(text)
    }

    fn describe(&self, subject: &str, figures: &BTreeMap<String, Figure>, text: &mut String) {
        let _ = writeln!(text, "{subject}, over {} s", shown(self.period_s));
        for (name, figure) in figures {
            let spread = match (figure.low, figure.high) {
                (Some(low), Some(high)) => format!(" ({}–{})", shown(low), shown(high)),
                _ => String::new(),
            };
            let p99 = figure.p99.map_or_else(String::new, |p99| format!(", p99 {}", shown(p99)));
            let _ = write!(text, "  {name}: {}{spread}{p99} {}", shown(figure.value), figure.unit);
            let _ = write!(text, ": {}", figure.source);
            if figure.n > 0.0 {
                let _ = write!(text, ", n = {}", shown(figure.n.round()));
            }
            let note = figure.note.as_ref().map_or_else(String::new, |note| format!("; {note}"));
            let _ = writeln!(text, "{note}");
        }
        for finding in self.findings.iter().filter(|finding| finding.subject == subject) {
            let _ = writeln!(text, "  {}", finding.text);
        }
    }
}

/// Values from here on have an exponent instead of hundreds of digits.
const MIN_EXPONENT_VALUE: f64 = 1e15;

/// Number with four significant digits.
pub(crate) fn shown(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    if value.abs() >= MIN_EXPONENT_VALUE {
        return format!("{value:.3e}");
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (0.001_234_56, "0.001235"),
            (12.0, "12"),
            (123_456.7, "123457"),
            (0.1, "0.1"),
            (1e300, "1.000e300"),
        ] {
            assert_eq!(shown(value), expected);
        }
    }
}
