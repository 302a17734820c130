//! Streaming JSON of an answer: `{"status": …, "data": {"result": [row, …]}}`. Rows are handed on one by one.

use super::samples::Samples;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A row of a result.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) metric: Labels,
    /// Time and value, in a vector.
    pub(super) value: Option<(f64, Number)>,
    /// Times and values, in a matrix.
    pub(super) values: Option<Samples>,
}

/// Labels that are read; others are skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Labels {
    #[serde(rename = "__name__")]
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

/// Seed of one answer. Its value is the error that Prometheus reports, if any.
pub(super) struct Answers<'a> {
    /// Takes a row; returns false to stop.
    pub(super) sink: &'a mut dyn FnMut(Row) -> bool,
    /// Set once there is an answer: an input that ends before is complete.
    pub(super) begun: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Answers<'_> {
    type Value = Option<String>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Answers<'_> {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an answer with `status` and `data`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        *self.begun = true;
        let (mut error, mut failed, mut has_data) = (None, false, false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "status" => failed = map.next_value::<String>()? == "error",
                "error" => error = Some(map.next_value::<String>()?),
                "data" => {
                    map.next_value_seed(Data { sink: &mut *self.sink })?;
                    has_data = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match (failed, has_data) {
            (true, _) => Ok(Some(error.unwrap_or_else(|| "no reason".to_owned()))),
            (false, true) => Ok(None),
            (false, false) => Err(A::Error::custom("`data` is missing")),
        }
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
