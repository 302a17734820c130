//! Rates, shares and CPU.

use super::ABSENT;
use super::number::{digits, fixed, tick, with_unit};

/// Events per second: `998/s`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    let number = digits(per_second);
    if number == ABSENT { number } else { format!("{number}/s") }
}

/// An offered rate, in the form in which experiments write it: `1000/s`, `12500/s`.
#[must_use]
pub fn offered_rate(per_second: f64) -> String {
    if per_second.is_finite() && per_second.fract() == 0.0 && per_second.abs() < 1e15 {
        format!("{per_second:.0}/s")
    } else {
        rate(per_second)
    }
}

/// A fraction as a percentage: `0.12 %`, `100 %`.
#[must_use]
pub fn percent(fraction: f64) -> String {
    if fraction == 0.0 {
        return with_unit("0", "%");
    }
    with_unit(&tick(fraction * 100.0), "%")
}

/// CPU such as `0.213 cores`; with its own text if it is below a thousandth of a core.
#[must_use]
pub fn cores(cores: f64) -> String {
    with_unit(&cores_number(cores), "cores")
}

/// CPU without the unit.
#[must_use]
pub fn cores_number(cores: f64) -> String {
    if cores > 0.0 && cores < 0.0005 {
        "<0.001".to_owned()
    } else if cores != 0.0 && cores.abs() < 1.0 && cores.is_finite() {
        fixed(cores, 3)
    } else {
        digits(cores)
    }
}
