//! Serde types for quantities in files.

use super::{
    CORES, DURATION, FRACTION, RATE, SIZE, UnitError, format_cores, format_duration, format_fraction,
    format_rate, format_size, parse_cores, parse_duration, parse_fraction, parse_rate, parse_size,
};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Reads a scalar as the text in the file, whether the format calls it a number or a string.
struct ScalarText(&'static str);

impl Visitor<'_> for ScalarText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}", self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_i64<E>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

/// Defines a serde type for a quantity: deserializes with the parser, serializes with the formatter.
macro_rules! quantity_in_files {
    ($(#[$docs:meta])* $name:ident($inner:ty), $quantity:expr, $parse:path, $format:path) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $name(pub $inner);

        impl FromStr for $name {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<Self, UnitError> {
                $parse(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$format(self.0))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = deserializer.deserialize_any(ScalarText($quantity.name))?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

quantity_in_files!(
    /// A duration in a file, such as `500ms`.
    TimeSpan(Duration), DURATION, parse_duration, format_duration
);
quantity_in_files!(
    /// A size in a file, bytes, such as `1KiB`.
    ByteSize(u64), SIZE, parse_size, format_size
);
quantity_in_files!(
    /// A fraction in a file, 0 to 1, such as `0.1%`.
    Fraction(f64), FRACTION, parse_fraction, format_fraction
);
quantity_in_files!(
    /// A rate in a file, per second, such as `1000`.
    Rate(f64), RATE, parse_rate, format_rate
);
quantity_in_files!(
    /// CPU cores in a file, such as `500m`.
    CpuCores(f64), CORES, parse_cores, format_cores
);
