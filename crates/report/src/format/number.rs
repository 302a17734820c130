//! Plain numbers: how many digits, and how minus signs, thousands and units are written.

use super::ABSENT;

/// Values from here on have an exponent: none of ours is as large, and hundreds of digits tell nobody anything.
const MIN_EXPONENT_VALUE: f64 = 1e15;

/// A number and its unit, kept on one line; a missing figure has no unit.
#[must_use]
pub fn with_unit(number: &str, unit: &str) -> String {
    if number == ABSENT || unit.is_empty() { number.to_owned() } else { format!("{number}\u{a0}{unit}") }
}

/// 3 significant digits, without an exponent below [`MIN_EXPONENT_VALUE`]: `0.0421`, `4.21`, `421`, `42100`.
#[must_use]
pub fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    fixed(value, decimals_for(value.abs(), 3))
}

/// The shortest exact form, for the ticks of an axis: `0.5`, `20`, `1500`.
#[must_use]
pub fn tick(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Decimals that show `significant` digits of a value; negative if digits before the decimal point are
/// rounded.
pub(super) fn decimals_for(value: f64, significant: i32) -> i32 {
    if !value.is_finite() || value <= 0.0 {
        return significant;
    }
    // A value such as 9.996 gains a digit when it is rounded.
    let magnitude = value.log10().floor() as i32;
    let unit = 10f64.powi(magnitude - significant + 1);
    let rounded = (value / unit).round() * unit;
    let magnitude = (rounded * (1.0 + 1e-12)).log10().floor() as i32;
    significant - 1 - magnitude
}

/// A number with this many decimals (at most 9), with a true minus sign.
pub(super) fn fixed(value: f64, decimals: i32) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if value.abs() >= MIN_EXPONENT_VALUE {
        return format!("{value:.2e}").replace('-', "−");
    }
    let rounded = if decimals < 0 {
        let unit = 10f64.powi(-decimals);
        (value / unit).round() * unit
    } else {
        value
    };
    let places = usize::try_from(decimals.clamp(0, 9)).unwrap_or(0);
    let text = format!("{rounded:.places$}");
    match text.strip_prefix('-') {
        Some(magnitude) if magnitude.chars().all(|digit| matches!(digit, '0' | '.')) => magnitude.to_owned(),
        Some(magnitude) => format!("−{magnitude}"),
        None => text,
    }
}

/// A whole number with thin spaces between thousands: `1 234 567`.
#[must_use]
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun in the singular or the plural: `1 trial`, `5 trials`.
#[must_use]
pub fn counted(number: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(number), if number == 1 { singular } else { plural })
}
