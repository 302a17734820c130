//! Snapshots of one request, with the series that end between them.
//!
//! A series that the receiver knows and that a snapshot lacks has ended: a stale marker in Prometheus, a
//! point without a value in OTLP. Series that only appeared in a dropped snapshot do not matter: the receiver
//! knows what was sent.

use crate::metric::{Families, Kind, Labels, Value};
use crate::queue::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Series that were sent to a receiver and have not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownSeries(BTreeMap<(&'static str, Labels), Series>);

#[derive(Clone, Copy, Debug)]
struct Series {
    help: &'static str,
    kind: Kind,
    since_ms: i64,
}

/// Metrics at one moment, including the series that end there.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub time_ms: i64,
    pub families: Families,
}

impl KnownSeries {
    /// The frames of these snapshots, and the series that are known after them.
    pub(crate) fn frames(mut self, snapshots: &[Arc<Snapshot>]) -> (Vec<Frame>, Self) {
        let frames = snapshots.iter().map(|snapshot| self.frame(snapshot)).collect();
        (frames, self)
    }

    fn frame(&mut self, snapshot: &Snapshot) -> Frame {
        let mut families = snapshot.families.clone();
        let present = Self::from_families(&families);
        for ((name, labels), series) in std::mem::replace(&mut self.0, present) {
            let key = (name, labels);
            if !self.0.contains_key(&key) {
                families.push((name, series.help, series.kind), key.1, series.since_ms, Value::Ended);
            }
        }
        Frame { time_ms: snapshot.time_ms, families }
    }

    fn from_families(families: &Families) -> BTreeMap<(&'static str, Labels), Series> {
        let mut series = BTreeMap::new();
        for family in families.iter() {
            for point in &family.points {
                let entry = Series { help: family.help, kind: family.kind, since_ms: point.since_ms };
                series.insert((family.name, point.labels.clone()), entry);
            }
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::with_label;

    fn snapshot(time_ms: i64, phases: &[&str]) -> Arc<Snapshot> {
        let mut families = Families::default();
        for phase in phases {
            families.gauge("phase", "", with_label(&Labels::new(), "phase", *phase), 1.0);
        }
        Arc::new(Snapshot { time_ms, families, is_last: phases.is_empty() })
    }

    fn ended(frame: &Frame) -> Vec<String> {
        let points = frame.families.iter().flat_map(|family| &family.points);
        points
            .filter(|point| point.value == Value::Ended)
            .map(|point| point.labels["phase"].clone())
            .collect()
    }

    #[test]
    fn series_end_once_if_missing_in_snapshot() {
        let snapshots =
            [snapshot(1, &["a"]), snapshot(2, &["a", "b"]), snapshot(3, &["b"]), snapshot(4, &[])];
        let (frames, known) = KnownSeries::default().frames(&snapshots);
        let ended: Vec<Vec<String>> = frames.iter().map(ended).collect();
        assert_eq!(ended, [vec![], vec![], vec!["a".to_owned()], vec!["b".to_owned()]]);
        assert!(known.0.is_empty());
    }

    #[test]
    fn series_of_earlier_request_end_later() {
        let (_, known) = KnownSeries::default().frames(&[snapshot(1, &["a", "b"])]);
        let (frames, _) = known.frames(&[snapshot(9, &["b"])]);
        assert_eq!(ended(&frames[0]), ["a"]);
    }
}
