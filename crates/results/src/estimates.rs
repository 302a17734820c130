//! Estimates by metric.

use crate::estimate::Estimate;
use crate::metric::Metric;
use serde::de::value::Error;
use serde::de::{IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Estimates by metric; in result files, each under its key, and null if it is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Estimates(BTreeMap<Metric, Option<Estimate>>);

impl Estimates {
    /// Estimate of a metric.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<Estimate> {
        self.0.get(&metric).copied().flatten()
    }

    /// Sets the estimate of a metric.
    pub fn set(&mut self, metric: Metric, estimate: Option<Estimate>) {
        self.0.insert(metric, estimate);
    }

    /// Estimates of these metrics.
    pub fn read(
        metrics: impl IntoIterator<Item = Metric>,
        estimate: impl Fn(Metric) -> Option<Estimate>,
    ) -> Self {
        Self(metrics.into_iter().map(|metric| (metric, estimate(metric))).collect())
    }
}

impl<'de> Deserialize<'de> for Estimates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EstimatesVisitor)
    }
}

/// Reads the metrics of an object; its other fields are ignored.
struct EstimatesVisitor;

impl<'de> Visitor<'de> for EstimatesVisitor {
    type Value = Estimates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("estimates by metric")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Estimates, A::Error> {
        let mut estimates = Estimates::default();
        while let Some(key) = map.next_key::<String>()? {
            let metric: Result<Metric, Error> = Metric::deserialize(key.as_str().into_deserializer());
            match metric {
                Ok(metric) => estimates.set(metric, map.next_value()?),
                Err(_) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(estimates)
    }
}
