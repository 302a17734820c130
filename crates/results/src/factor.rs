//! Factors: keys of an experiment that hold a list. Each value has its own cells.

use crate::Mode;
use crate::load_point::LoadPoint;
use crate::units::{Churn, parse_cores, parse_duration, parse_fraction, parse_rate, parse_size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Factor for the size of the mesh: number of background services.
pub const BACKGROUND_SERVICES: &str = "istio.background-services.services";

/// True if a factor is a version or program of the mesh.
#[must_use]
pub fn is_of_components(key: &str) -> bool {
    key.starts_with("components.")
}

/// Values of a cell's factors by dotted key, such as `proxy.workers`. Empty in an experiment without factors.
pub type Factors = BTreeMap<String, FactorValue>;

/// Each factor as text, such as `gateway.cpu 2`.
#[must_use]
pub fn factor_texts(factors: &Factors) -> Vec<String> {
    factors.iter().map(|(key, value)| format!("{key} {value}")).collect()
}

/// A text with the factors behind it, such as `mode gateway, gateway.cpu 2`.
#[must_use]
pub fn with_factors(text: String, factors: &Factors) -> String {
    std::iter::once(text).chain(factor_texts(factors)).collect::<Vec<_>>().join(", ")
}

/// Value of a factor, as typed in the experiment.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FactorValue {
    /// A plain number.
    Number(serde_json::Number),
    /// Any other text, including quantities with a unit such as `250m`.
    Text(String),
}

impl FactorValue {
    /// Value of a scalar in an experiment file.
    #[must_use]
    pub fn from_typed(text: &str) -> Self {
        let text = text.trim();
        if let Ok(whole) = text.parse::<u64>() {
            return Self::Number(whole.into());
        }
        let is_decimal = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let decimal = text.parse::<f64>().ok().filter(|_| is_decimal).and_then(serde_json::Number::from_f64);
        decimal.map_or_else(|| Self::Text(text.to_owned()), Self::Number)
    }

    /// Value as a number in the unit of its key: cores (`….cpu`), bytes (`….payload`, `….memory`, `….prompt`), seconds
    /// (`….delay`, `….cpu-time`, `….timeout`, `….debounce-after`, `….debounce-max`, `….first`, `….gap`, `….pause`), a fraction
    /// (`….error-rate`, `….tracing`, `….density`; for `….churn`, of the pods per minute), per second
    /// (`….connect-rate`; for `….churn`, pods), otherwise a plain number. Absent for words, and for versions
    /// (`components.…`).
    #[must_use]
    pub fn quantity(&self, key: &str) -> Option<f64> {
        // A version such as 1.30 is a name, not a number.
        if is_of_components(key) {
            return None;
        }
        let text = match self {
            Self::Number(number) => return number.as_f64(),
            Self::Text(text) => text,
        };
        match key.rsplit('.').next()? {
            "cpu" => parse_cores(text).ok(),
            "payload" | "memory" | "prompt" => parse_size(text).ok().map(|bytes| bytes as f64),
            "delay" | "cpu-time" | "timeout" | "debounce-after" | "debounce-max" | "first" | "gap"
            | "pause" => parse_duration(text).ok().map(|time| time.as_secs_f64()),
            "churn" => text.parse::<Churn>().ok().map(Churn::amount),
            "connect-rate" => parse_rate(text).ok(),
            "error-rate" | "tracing" | "density" => parse_fraction(text).ok(),
            _ => None,
        }
    }
}

/// Short names for two values. Paths are shortened to the last components from where they differ.
#[must_use]
pub fn short_names(one: &FactorValue, other: &FactorValue) -> (String, String) {
    let (one, other) = (one.to_string(), other.to_string());
    if !(one.starts_with('/') && other.starts_with('/')) {
        return (one, other);
    }
    let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let (of_one, of_other) = (parts(&one), parts(&other));
    let alike =
        of_one.iter().rev().zip(of_other.iter().rev()).take_while(|(one, other)| one == other).count();
    let end = |parts: &[String]| match parts.len() - alike {
        // One path is a suffix of the other.
        0 | 1 => None,
        different => Some(parts[different - 1..].join("/")),
    };
    match (end(&of_one), end(&of_other)) {
        (Some(one), Some(other)) => (one, other),
        _ => (one, other),
    }
}

impl fmt::Display for FactorValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.pad(&number.to_string()),
            Self::Text(text) => f.pad(text),
        }
    }
}

/// Key of a cell: mode × factors × load.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CellKey<'a> {
    /// The mode.
    pub mode: Mode,
    /// Factors and load.
    pub conditions: Conditions<'a>,
}

/// [`CellKey`] with factors and load of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnedCellKey {
    /// The mode.
    pub mode: Mode,
    /// Values of the factors that can touch the mode; empty in an experiment without factors.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load.
    pub load: LoadPoint,
}

impl OwnedCellKey {
    /// Key of the cell.
    #[must_use]
    pub fn key(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode)
    }

    /// Factors and load.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }
}

impl From<CellKey<'_>> for OwnedCellKey {
    fn from(cell: CellKey<'_>) -> Self {
        let Conditions { factors, load } = cell.conditions;
        Self { mode: cell.mode, factors: factors.clone(), load: load.clone() }
    }
}

/// Conditions shared by cells that are compared by mode.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Conditions<'a> {
    /// Values of the factors.
    pub factors: &'a Factors,
    /// The load.
    pub load: &'a LoadPoint,
}

impl<'a> Conditions<'a> {
    /// Cell of a mode under these conditions.
    #[must_use]
    pub fn cell(self, mode: Mode) -> CellKey<'a> {
        CellKey { mode, conditions: self }
    }

    /// True if a cell under these conditions is also the cell of its mode under `other`: a factor that cannot touch a
    /// mode is absent from its cells, which are those of every value of it.
    #[must_use]
    pub fn covers(self, other: Conditions<'_>) -> bool {
        let has = |(key, value): (&String, &FactorValue)| other.factors.get(key) == Some(value);
        self == other || self.factors.iter().all(has) && self.load.covers(other.load)
    }

    /// Conditions of a comparison of two cells: the factors of both. Absent if the cells have different values of a
    /// factor, or different loads.
    #[must_use]
    pub fn joined(self, other: Conditions<'_>) -> Option<(Factors, LoadPoint)> {
        let agrees =
            |(key, value): (&String, &FactorValue)| other.factors.get(key).is_none_or(|other| other == value);
        let load = if self.load.covers(other.load) {
            other.load
        } else {
            Some(self.load).filter(|load| other.load.covers(load))?
        };
        self.factors.iter().all(agrees).then(|| {
            let mut factors = self.factors.clone();
            factors.extend(other.factors.iter().map(|(key, value)| (key.clone(), value.clone())));
            (factors, load.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_or_text_as_typed() {
        let json = |text: &str| serde_json::to_string(&FactorValue::from_typed(text)).unwrap();
        let typed = ["200", "0.5", "250m", "strict", "true", "1k", "inf", "1e3"].map(json);
        assert_eq!(
            typed,
            ["200", "0.5", "\"250m\"", "\"strict\"", "\"true\"", "\"1k\"", "\"inf\"", "1000.0"]
        );
    }

    #[test]
    fn paths_are_shortened_to_distinct_suffixes() {
        let pair = |one: &str, other: &str| {
            let (one, other) = short_names(&FactorValue::Text(one.into()), &FactorValue::Text(other.into()));
            format!("{one} {other}")
        };
        assert_eq!(pair("/opt/a/envoy", "/opt/b/envoy"), "a/envoy b/envoy");
        assert_eq!(pair("/opt/envoy-1", "/opt/envoy-2"), "envoy-1 envoy-2");
        assert_eq!(pair("/envoy", "/opt/envoy"), "/envoy /opt/envoy");
        assert_eq!(pair("/opt/envoy", "/opt/envoy"), "/opt/envoy /opt/envoy");
        assert_eq!(pair("1.29.4", "1.30.1"), "1.29.4 1.30.1");
    }

    #[test]
    fn cell_without_a_factor_covers_every_value_of_it() {
        let factors = |text: &[(&str, &str)]| -> Factors {
            text.iter().map(|(key, value)| ((*key).to_owned(), FactorValue::from_typed(value))).collect()
        };
        let load = |services| LoadPoint { surrounding_services: services, ..LoadPoint::of_fleet() };
        let (none, one, both) = (factors(&[]), factors(&[("a", "1")]), factors(&[("a", "1"), ("b", "2")]));
        let other = factors(&[("b", "2")]);
        let (plain, large) = (load(None), load(Some(200)));
        let at = |factors, load| Conditions { factors, load };
        assert!(at(&none, &plain).covers(at(&both, &large)) && at(&one, &plain).covers(at(&both, &plain)));
        assert!(!at(&both, &plain).covers(at(&one, &plain)) && !at(&one, &large).covers(at(&one, &plain)));
        let joined = at(&one, &plain).joined(at(&other, &large)).unwrap();
        assert_eq!((&joined.0, &joined.1), (&both, &large));
        assert_eq!(at(&other, &large).joined(at(&one, &plain)), Some(joined));
        assert_eq!(at(&one, &plain).joined(at(&factors(&[("a", "2")]), &plain)), None);
    }

    #[test]
    fn versions_have_no_quantity() {
        assert_eq!(FactorValue::from_typed("2").quantity("components.istio"), None);
    }

    #[test]
    fn quantities_have_the_unit_of_their_key() {
        let quantity = |key: &str, text: &str| FactorValue::from_typed(text).quantity(key);
        assert_eq!(quantity("proxy.cpu", "250m"), Some(0.25));
        assert_eq!(quantity("proxy.cpu", "1"), Some(1.0));
        assert_eq!(quantity("load.payload", "1KiB"), Some(1024.0));
        assert_eq!(quantity("gateway.memory", "1GiB"), Some(1_073_741_824.0));
        assert_eq!(quantity("server.delay", "5m"), Some(300.0));
        assert_eq!(quantity("istio.tracing", "1%"), Some(0.01));
        assert_eq!(quantity("fleet.churn", "25%/m"), Some(0.25));
        assert_eq!(quantity("fleet.churn", "0"), Some(0.0));
        assert_eq!(quantity("fleet.churn", "10/s"), Some(10.0));
        assert_eq!(quantity("istio.istiod.debounce-after", "50ms"), Some(0.05));
        assert_eq!(quantity("proxy.mtls", "strict"), None);
    }
}
