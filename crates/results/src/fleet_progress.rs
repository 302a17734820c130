//! Events that `meshmeter fleet --progress json` writes while it runs, one JSON object per line on standard
//! error, and the environment's responses on its standard input.

use crate::fleet::{FleetEvent, FleetSecond};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Progress of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum FleetProgress {
    /// The mesh is being written.
    Writing {
        /// Objects written.
        written: usize,
        /// Objects of the mesh.
        of: usize,
    },
    /// The measurement has just begun; no proxy has connected yet.
    WindowOpened,
    /// Proxies are connecting.
    Connecting {
        /// Connected proxies.
        connected: u64,
        /// Proxies with a complete configuration.
        complete: u64,
        /// Proxies of the fleet.
        of: u64,
    },
    /// A change has been written, or more proxies have received it.
    Change {
        /// Kind, such as `endpoint-added`.
        kind: String,
        /// Number of the change, counted from 1.
        number: usize,
        /// Proxies reached so far.
        reached: u64,
        /// Proxies expected to receive it.
        expected: u64,
    },
    /// One second has passed.
    Second(FleetSecond),
    /// Requests an action from the environment and waits for a [`FleetAnswer`].
    Ask(FleetAsk),
    /// The measurement is over.
    WindowClosed,
    /// The mesh is being removed.
    Removing,
}

/// Action that a fleet requests from its environment.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum FleetAsk {
    /// Kills and restarts every istiod.
    IstiodRestart,
    /// Starts another istiod.
    IstiodAdded,
    /// Stops the istiod that was started last.
    IstiodRemoved,
    /// Drops all packets to and from these addresses of the fleet's pod.
    LinkDown {
        /// Source addresses of the disconnected proxies.
        addresses: Vec<Ipv4Addr>,
    },
    /// Stops dropping them.
    LinkUp {
        /// Source addresses of the disconnected proxies.
        addresses: Vec<Ipv4Addr>,
    },
}

impl FleetAsk {
    /// Name of the change that it belongs to, such as `istiod-restart`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::IstiodRestart => "istiod-restart",
            Self::IstiodAdded => "istiod-added",
            Self::IstiodRemoved => "istiod-removed",
            Self::LinkDown { .. } => "link-down",
            Self::LinkUp { .. } => "link-up",
        }
    }
}

/// Response of the environment to a [`FleetAsk`], once done: one JSON object per line on the fleet's standard
/// input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetAnswer {
    /// Events, in order.
    pub happened: Vec<Happening>,
    /// Addresses of the istiods from now on, `host:port`, in start order.
    pub istiods: Vec<String>,
    /// Why the action failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Event performed or observed by the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Happening {
    /// Wall-clock time, seconds since 1970.
    pub at_unix_s: f64,
    /// Kind, such as `istiod-killed`, `istiod-ready`, `link-down`.
    pub kind: String,
    /// Detail, such as the istiod's name; may be empty.
    pub detail: String,
}

impl Happening {
    /// Converts it to an event of a fleet that started at this time.
    #[must_use]
    pub fn since(self, started_at_unix_s: f64) -> FleetEvent {
        FleetEvent { at: self.at_unix_s - started_at_unix_s, kind: self.kind, detail: self.detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_responses_are_json_lines() {
        let asks = [
            (FleetAsk::IstiodRestart, r#"{"event":"ask","ask":"istiod-restart"}"#),
            (
                FleetAsk::LinkDown { addresses: vec![Ipv4Addr::new(10, 77, 0, 9)] },
                r#"{"event":"ask","ask":"link-down","addresses":["10.77.0.9"]}"#,
            ),
        ];
        for (ask, line) in asks {
            let event = FleetProgress::Ask(ask);
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
            assert_eq!(serde_json::from_str::<FleetProgress>(line).unwrap(), event);
        }
        let answer = FleetAnswer {
            happened: vec![Happening {
                at_unix_s: 12.5,
                kind: "istiod-ready".to_owned(),
                detail: "istiod".to_owned(),
            }],
            istiods: vec!["10.77.0.2:15012".to_owned()],
            failure: None,
        };
        let line = serde_json::to_string(&answer).unwrap();
        assert!(!line.contains('\n') && !line.contains("failure"), "{line}");
        assert_eq!(serde_json::from_str::<FleetAnswer>(&line).unwrap(), answer);
        assert_eq!(answer.happened[0].clone().since(10.0).at, 2.5);
    }

    #[test]
    fn seconds_read_back() {
        let event = FleetProgress::Second(FleetSecond { connected: 3, ..FleetSecond::default() });
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<FleetProgress>(&line).unwrap(), event, "{line}");
    }
}
