//! Streaming JSON of an answer: `{"status": …, "data": {"result": [row, …]}}`. Rows are handed on one by one.

use super::samples::Samples;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Labels that are kept beside Istio's.
pub(super) const FURTHER_LABELS: [&str; 31] = [
    "authority",
    "classification",
    "daemonset",
    "deployment",
    "destination_app",
    "destination_namespace",
    "direction",
    "dst_daemonset",
    "dst_deployment",
    "dst_k8s_job",
    "dst_namespace",
    "dst_replicaset",
    "dst_replicationcontroller",
    "dst_service",
    "dst_statefulset",
    "grpc_status",
    "grpc_status_code",
    "k8s_job",
    "namespace",
    "peer",
    "protocol",
    "replicaset",
    "replicationcontroller",
    "route_name",
    "source_app",
    "source_namespace",
    "statefulset",
    "status",
    "status_code",
    "target_port",
    "traffic_direction",
];

/// A row of a result.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) metric: Labels,
    /// Time and value, in a vector.
    pub(super) value: Option<(f64, Number)>,
    /// Times and values, in a matrix.
    pub(super) values: Option<Samples>,
}

/// Labels that are read. Of others only the hash of all has a part.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// Hash of all names and values, whatever their order.
    pub(super) hash: u64,
    pub(super) name: Option<String>,
    /// Metric and period, set by the query.
    pub(super) meshmeter: Option<String>,
    pub(super) reporter: Option<String>,
    pub(super) source_workload: Option<String>,
    pub(super) source_workload_namespace: Option<String>,
    pub(super) destination_workload: Option<String>,
    pub(super) destination_workload_namespace: Option<String>,
    pub(super) destination_service: Option<String>,
    pub(super) request_protocol: Option<String>,
    pub(super) response_code: Option<String>,
    pub(super) grpc_response_status: Option<String>,
    pub(super) le: Option<String>,
    /// Those of other meshes than Istio.
    pub(super) further: Vec<(&'static str, String)>,
}

impl Labels {
    fn set(&mut self, name: &str, value: String) {
        let mut hasher = DefaultHasher::new();
        (name, &value).hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
        let label = match name {
            "__name__" => &mut self.name,
            "meshmeter" => &mut self.meshmeter,
            "reporter" => &mut self.reporter,
            "source_workload" => &mut self.source_workload,
            "source_workload_namespace" => &mut self.source_workload_namespace,
            "destination_workload" => &mut self.destination_workload,
            "destination_workload_namespace" => &mut self.destination_workload_namespace,
            "destination_service" => &mut self.destination_service,
            "request_protocol" => &mut self.request_protocol,
            "response_code" => &mut self.response_code,
            "grpc_response_status" => &mut self.grpc_response_status,
            "le" => &mut self.le,
            _ => {
                // Each once, however often a hostile row repeats it.
                if let Some(own) = FURTHER_LABELS.into_iter().find(|own| *own == name)
                    && self.further.iter().all(|(known, _)| *known != own)
                {
                    self.further.push((own, value));
                }
                return;
            }
        };
        *label = Some(value);
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("labels with values that are text")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels = Labels::default();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    labels.set(&name, value);
                }
                Ok(labels)
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Number as text: `"12.5"`, `"NaN"`, `"+Inf"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(pub(super) f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Number;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number as text")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
                text.parse().map(Number).map_err(|_| E::custom("a sample's value is not a number"))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Maximum number of remarks that are kept of an answer.
const MAX_REMARKS: usize = 20;

/// Remarks of an answer, beside its rows.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    /// Error that Prometheus reports instead of rows.
    pub(super) error: Option<String>,
    /// Warnings, such as of stores that did not answer, and notes.
    pub(super) warnings: Vec<String>,
}

/// Seed of one answer.
pub(super) struct Answers<'a> {
    /// Takes a row; returns false to stop.
    pub(super) sink: &'a mut dyn FnMut(Row) -> bool,
    /// Set once there is an answer: an input that ends before is complete.
    pub(super) begun: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Answers<'_> {
    type Value = Remarks;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Remarks, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Answers<'_> {
    type Value = Remarks;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an answer with `status` and `data`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Remarks, A::Error> {
        *self.begun = true;
        let (mut error, mut failed, mut has_data) = (None, false, false);
        let mut warnings = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "status" => failed = map.next_value::<String>()? == "error",
                "error" => error = Some(map.next_value::<String>()?),
                "warnings" | "infos" => {
                    warnings.extend(map.next_value::<Option<Vec<String>>>()?.into_iter().flatten());
                    warnings.truncate(MAX_REMARKS);
                }
                "data" => {
                    map.next_value_seed(Data { sink: &mut *self.sink })?;
                    has_data = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if !failed && !has_data {
            return Err(A::Error::custom("`data` is missing"));
        }
        let error = failed.then(|| error.unwrap_or_else(|| "no reason".to_owned()));
        Ok(Remarks { error, warnings })
    }
}

struct Data<'a> {
    sink: &'a mut dyn FnMut(Row) -> bool,
}

impl<'de> DeserializeSeed<'de> for Data<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Data<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("`data` with a `result`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "result" {
                map.next_value_seed(Rows { sink: &mut *self.sink })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Rows<'a> {
    sink: &'a mut dyn FnMut(Row) -> bool,
}

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows of a vector or a matrix")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element::<Row>()? {
            if !(self.sink)(row) {
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}
