//! Arrivals of an open loop, and clients of a closed loop.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Arrivals of an open loop that do not come at even intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "process", rename_all = "kebab-case")]
pub enum Arrivals {
    /// A Poisson process.
    Poisson,
    /// A Poisson process whose rate changes between two levels.
    Bursts(BurstArrivals),
    /// Instants of a recording.
    Replay(ReplayArrivals),
}

/// A Poisson process whose rate is higher in bursts. Bursts, and the times between them, have exponentially distributed lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstArrivals {
    /// Rate in bursts, of that between them.
    pub factor: f64,
    /// Fraction of the time with a burst, in the long run.
    pub share: f64,
    /// Mean length of a burst, seconds.
    pub length_s: f64,
    /// Number of bursts in the window, one that was there at its beginning included.
    pub count: u64,
}

/// Requests of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayArrivals {
    /// The file, as given.
    pub file: String,
    /// Its format.
    pub format: RecordingFormat,
    /// Requests in it.
    pub requests: u64,
    /// Number of times as fast as they were recorded.
    pub speed: f64,
    /// Lines (entries of a HAR) that were not understood.
    pub ignored: u64,
    /// Entries that were before an earlier one in time, and were brought into order.
    pub out_of_order: u64,
}

/// Format of a recording.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingFormat {
    /// An instant per line.
    Instants,
    /// Envoy's default text format.
    Envoy,
    /// Envoy's JSON, with the fields that Istio names.
    EnvoyJson,
    /// Common or combined log format of nginx and Apache, with times in whole seconds.
    CommonLog,
    /// HTTP archive of a browser.
    Har,
}

/// A stage of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientStage {
    /// Clients at its start.
    pub from: usize,
    /// Clients at its end; in between their number changes evenly.
    pub to: usize,
    /// Length, seconds.
    pub duration_s: f64,
}

impl RecordingFormat {
    /// Display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instants => "instants",
            Self::Envoy => "Envoy's access log",
            Self::EnvoyJson => "Envoy's access log in JSON",
            Self::CommonLog => "common log format",
            Self::Har => "HAR",
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson => f.write_str("Poisson process"),
            Self::Bursts(BurstArrivals { factor, share, length_s, count }) => write!(
                f,
                "bursts of {factor} times the rate between them, {} % of the time, {length_s} s on average; {count} in the window",
                (share * 1e4).round() / 1e2
            ),
            Self::Replay(ReplayArrivals { file, format, speed, .. }) => {
                write!(f, "replay of {file} ({})", format.name())?;
                if *speed == 1.0 { Ok(()) } else { write!(f, ", {speed} times as fast") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_named_in_json_and_text() {
        let bursts = Arrivals::Bursts(BurstArrivals { factor: 5.0, share: 0.125, length_s: 0.5, count: 3 });
        let json = serde_json::to_value(&bursts).unwrap();
        assert_eq!(json["process"], "bursts");
        assert_eq!(serde_json::from_value::<Arrivals>(json).unwrap(), bursts);
        assert_eq!(
            bursts.to_string(),
            "bursts of 5 times the rate between them, 12.5 % of the time, 0.5 s on average; 3 in the window"
        );
        let replay = |speed| {
            let file = "access.log".to_owned();
            let format = RecordingFormat::EnvoyJson;
            Arrivals::Replay(ReplayArrivals { file, format, requests: 3, speed, ignored: 0, out_of_order: 0 })
        };
        assert_eq!(replay(1.0).to_string(), "replay of access.log (Envoy's access log in JSON)");
        assert_eq!(
            replay(2.5).to_string(),
            "replay of access.log (Envoy's access log in JSON), 2.5 times as fast"
        );
        assert_eq!(
            serde_json::to_value(Arrivals::Poisson).unwrap(),
            serde_json::json!({"process": "poisson"})
        );
    }
}
