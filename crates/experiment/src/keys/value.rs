//! Values of keys: read from a file and written to one, each by the kind of its key.

use super::words::Words;
use super::{Kind, SWITCH};
use crate::diagnostic::ExperimentError;
use crate::yaml::section::Field;
use crate::yaml::written::Yaml;
use results::units::{
    format_cores, format_duration, format_fraction, format_size, parse_cores, parse_duration, parse_fraction,
    parse_rate, parse_size,
};
use std::time::Duration;

type Result<T, E = Box<ExperimentError>> = std::result::Result<T, E>;

/// Value of a key.
pub(crate) trait Value: Sized {
    fn read(field: &Field<'_>, kind: Kind) -> Result<Self>;

    /// The value in a file; absent if it is given by leaving out the key.
    fn written(&self, kind: Kind) -> Option<Yaml>;
}

impl<T: Value> Value for Option<T> {
    fn read(field: &Field<'_>, kind: Kind) -> Result<Self> {
        T::read(field, kind).map(Some)
    }

    fn written(&self, kind: Kind) -> Option<Yaml> {
        self.as_ref()?.written(kind)
    }
}

impl<T: Words> Value for T {
    fn read(field: &Field<'_>, _: Kind) -> Result<Self> {
        field.choice(T::WORDS)
    }

    fn written(&self, _: Kind) -> Option<Yaml> {
        let (word, _) = T::WORDS.iter().find(|(_, value)| value == self)?;
        Some(Yaml::Text((*word).to_owned()))
    }
}

impl Value for bool {
    fn read(field: &Field<'_>, _: Kind) -> Result<Self> {
        field.choice(&SWITCH)
    }

    fn written(&self, _: Kind) -> Option<Yaml> {
        Some(Yaml::Switch(*self))
    }
}

impl Value for usize {
    fn read(field: &Field<'_>, kind: Kind) -> Result<Self> {
        let Kind::Whole(least, most) = kind else { unreachable!("`{}` is a whole number", field.path) };
        field.whole(least as Self..=most as Self)
    }

    fn written(&self, _: Kind) -> Option<Yaml> {
        Some(Yaml::Number(*self as u64))
    }
}

/// A size, bytes.
impl Value for u64 {
    fn read(field: &Field<'_>, kind: Kind) -> Result<Self> {
        let bytes = field.quantity(parse_size)?;
        match kind {
            Kind::SizeFor(what, least) if bytes < least => Err(field.place().error(
                format!("`{}` is too small for {what}", field.path),
                format!("expected at least {}", format_size(least)),
            )),
            _ => Ok(bytes),
        }
    }

    fn written(&self, _: Kind) -> Option<Yaml> {
        Some(Yaml::Text(format_size(*self)))
    }
}

/// A rate per second, a fraction, or CPU cores.
impl Value for f64 {
    fn read(field: &Field<'_>, kind: Kind) -> Result<Self> {
        match kind {
            Kind::Rate => field.quantity(parse_rate),
            Kind::Fraction => field.quantity(parse_fraction),
            _ => field.quantity(parse_cores),
        }
    }

    fn written(&self, kind: Kind) -> Option<Yaml> {
        Some(match kind {
            Kind::Rate => Yaml::rate(*self),
            Kind::Fraction => Yaml::Text(format_fraction(*self)),
            _ => Yaml::Text(format_cores(*self)),
        })
    }
}

impl Value for Duration {
    fn read(field: &Field<'_>, kind: Kind) -> Result<Self> {
        match kind {
            Kind::PositiveDuration => field.positive_duration(),
            Kind::Milliseconds => whole_milliseconds(field),
            Kind::DurationUpTo(most) => duration_up_to(field, most),
            _ => field.quantity(parse_duration),
        }
    }

    fn written(&self, _: Kind) -> Option<Yaml> {
        Some(Yaml::Text(format_duration(*self)))
    }
}

/// Envoy would read less than a millisecond as 0, which means no timeout.
fn whole_milliseconds(field: &Field<'_>) -> Result<Duration> {
    let time = field.positive_duration()?;
    if time.subsec_nanos() % 1_000_000 != 0 {
        return Err(field.place().error(
            format!("`{}` is finer than routes measure time", field.path),
            "expected whole milliseconds",
        ));
    }
    Ok(time)
}

fn duration_up_to(field: &Field<'_>, most: Duration) -> Result<Duration> {
    let duration = field.quantity(parse_duration)?;
    if duration > most {
        return Err(field.place().error(
            format!("`{}` is too long", field.path),
            format!("expected at most {}", format_duration(most)),
        ));
    }
    Ok(duration)
}

/// Reads and writes a type as its text.
macro_rules! by_text {
    ($type:ty) => {
        impl $crate::keys::value::Value for $type {
            fn read(
                field: &$crate::yaml::section::Field<'_>,
                _: $crate::keys::Kind,
            ) -> Result<Self, Box<$crate::diagnostic::ExperimentError>> {
                field.quantity(str::parse)
            }

            fn written(&self, _: $crate::keys::Kind) -> Option<$crate::yaml::written::Yaml> {
                Some($crate::yaml::written::Yaml::Text(self.to_string()))
            }
        }
    };
}
pub(crate) use by_text;

by_text!(results::units::Churn);
