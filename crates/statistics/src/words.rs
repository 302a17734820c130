//! Figures as text: two or three digits, a suitable unit, the interval behind it.

pub use experiment::plan::{brief, described, offered};
use results::units::format_duration;
use results::{Cell, CellKey, Conditions, Estimate, Mode};
use std::time::Duration;

/// A duration in microseconds such as `0.38 ms (0.35–0.41)`.
pub fn latency(estimate_us: &Estimate) -> String {
    let (unit, unit_us, decimals) = latency_unit(estimate_us.estimate);
    with_interval(estimate_us, unit_us, decimals, unit)
}

/// A duration in microseconds without an interval, such as `0.38 ms`.
pub fn latency_value(value_us: f64) -> String {
    latency(&Estimate::single(value_us))
}

/// The unit in which the value has two or three digits.
fn latency_unit(value_us: f64) -> (&'static str, f64, usize) {
    match value_us.abs() {
        us if us < 9.95 => ("µs", 1.0, 1),
        us if us < 99.5 => ("µs", 1.0, 0),
        us if us < 9995.0 => ("ms", 1e3, 2),
        us if us < 99_950.0 => ("ms", 1e3, 1),
        us if us < 999_500.0 => ("ms", 1e3, 0),
        _ => ("s", 1e6, 2),
    }
}

/// CPU such as `0.21 cores (0.20–0.22)`.
pub fn cores(estimate: &Estimate) -> String {
    with_interval(estimate, 1.0, cores_decimals(estimate.estimate), "cores")
}

/// CPU without an interval, such as `0.21 cores`.
pub fn cores_value(cores: f64) -> String {
    number(cores, cores_decimals(cores)) + " cores"
}

fn cores_decimals(cores: f64) -> usize {
    if cores.abs() < 0.0995 { 3 } else { 2 }
}

/// CPU time per request, from cores per 1000 requests/s, which equals milliseconds per request: `0.21 ms
/// (0.20–0.22)`.
pub fn cpu_time(cores_per_1000_rps: &Estimate) -> String {
    latency(&cores_per_1000_rps.map(|milliseconds| milliseconds * 1000.0))
}

/// CPU time per request without an interval, such as `0.21 ms`.
pub fn cpu_time_value(cores_per_1000_rps: f64) -> String {
    cpu_time(&Estimate::single(cores_per_1000_rps))
}

/// Memory such as `41 MB (40–42)`; MB is 1 000 000 bytes, as in the published figures.
pub fn memory(estimate_bytes: &Estimate) -> String {
    let decimals = if estimate_bytes.estimate < 9.95e6 { 1 } else { 0 };
    with_interval(estimate_bytes, 1e6, decimals, "MB")
}

/// Memory without an interval, such as `41 MB`.
pub fn memory_value(bytes: f64) -> String {
    memory(&Estimate::single(bytes))
}

/// A size such as `12 kB` or `1.3 MB`; a kB is 1000 bytes.
pub fn size(bytes: f64) -> String {
    let (unit, unit_bytes) = if bytes < 999.5e3 { ("kB", 1e3) } else { ("MB", 1e6) };
    let value = bytes / unit_bytes;
    format!("{} {unit}", number(value, usize::from(value < 9.95)))
}

/// A size with its interval, such as `69 kB (68–71)`.
pub fn size_interval(estimate_bytes: &Estimate) -> String {
    let (unit, unit_bytes) = if estimate_bytes.estimate.abs() < 999.5e3 { ("kB", 1e3) } else { ("MB", 1e6) };
    let decimals = usize::from((estimate_bytes.estimate / unit_bytes).abs() < 9.95);
    with_interval(estimate_bytes, unit_bytes, decimals, unit)
}

/// A fraction such as `0.12%`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let decimals = if percent >= 10.0 { 0 } else { 2 };
    format!("{}%", number(percent, decimals))
}

/// A change such as `−10 % (−14 to −6)`.
pub fn change(fraction: &Estimate) -> String {
    let decimals = usize::from(fraction.estimate.abs() < 0.0995);
    let decimals = decimals_off_zero(fraction, 0.01, decimals);
    let percent = |fraction: f64| number(fraction * 100.0, decimals);
    let value = percent(fraction.estimate);
    match (fraction.low, fraction.high) {
        (Some(low), Some(high)) if percent(low) != value || percent(high) != value => {
            format!("{value} % ({} to {})", percent(low), percent(high))
        }
        _ => format!("{value} %"),
    }
}

/// A change without an interval, such as `−10 %`.
pub fn change_value(fraction: f64) -> String {
    change(&Estimate::single(fraction))
}

/// `1 client` or `20 clients`.
pub fn clients(count: usize) -> String {
    format!("{count} client{}", if count == 1 { "" } else { "s" })
}

/// A bound of an objective such as `20 ms`.
pub fn bound(duration: Duration) -> String {
    let text = format_duration(duration);
    match text.find(|c: char| c.is_alphabetic()) {
        Some(unit) => format!("{} {}", &text[..unit], &text[unit..]),
        None => text,
    }
}

/// A rate such as `998 requests/s`.
pub fn rate(rate: f64) -> String {
    format!("{} requests/s", number(rate, usize::from(rate < 10.0)))
}

/// A rate with its interval, such as `3980 requests/s (3900–4060)`.
pub fn rate_interval(rate: &Estimate) -> String {
    with_interval(rate, 1.0, usize::from(rate.estimate < 10.0), "requests/s")
}

/// A cell such as `sidecar at 1000 requests/s`.
pub fn cell(cell: &Cell) -> String {
    place(cell.key())
}

/// A cell given by its key, such as `sidecar at 1000 requests/s`.
pub fn place(cell: CellKey<'_>) -> String {
    format!("{} {}", mode(cell.mode), at(cell.conditions))
}

/// A mode as it reads in a sentence, where `none` would mean "nothing".
pub fn mode(mode: Mode) -> &'static str {
    if mode == Mode::None { "no mesh" } else { mode.name() }
}

/// A load such as `at 1000 requests/s` or `with 8 clients`.
pub fn at(conditions: Conditions<'_>) -> String {
    let preposition = if conditions.load.rate.is_some() { "at" } else { "with" };
    format!("{preposition} {}", described(conditions))
}

/// A load as short as in a table, such as `at 1000/s` or `with 8 clients`.
pub fn brief_at(conditions: Conditions<'_>) -> String {
    let preposition = if conditions.load.rate.is_some() { "at" } else { "with" };
    format!("{preposition} {}", brief(conditions))
}

/// A cell as short as in a table, such as `sidecar at 1000/s`.
pub fn brief_place(cell: CellKey<'_>) -> String {
    format!("{} {}", mode(cell.mode), brief_at(cell.conditions))
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Capitalises the first letter, unless the name has its own (`mTLS`).
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    if text.chars().nth(1).is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// A difference as text, with a plus sign if it is above zero: `+6 µs (−39 to 50)`.
pub fn signed(difference: &Estimate, text: impl Fn(&Estimate) -> String) -> String {
    let sign = if difference.estimate > 0.0 { "+" } else { "" };
    format!("{sign}{}", text(difference))
}

/// A figure relative to a baseline: `×7.1`, or `+12 %` if it is less than doubled.
pub fn relative(value: f64, baseline: f64) -> Option<String> {
    let ratio = Some(value / baseline).filter(|ratio| baseline > 0.0 && ratio.is_finite())?;
    Some(match ratio {
        2.0.. => format!("×{}", number(ratio, usize::from(ratio < 9.95))),
        1.0.. => format!("+{}", change_value(ratio - 1.0)),
        _ => change_value(ratio - 1.0),
    })
}

/// `0.38 ms (0.35–0.41)`; `0.01 ms (−0.02 to 0.03)` if the interval reaches below zero; `41 MB` if it is
/// narrower than the last digit.
fn with_interval(estimate: &Estimate, unit_size: f64, decimals: usize, unit: &str) -> String {
    let decimals = decimals_off_zero(estimate, unit_size, decimals);
    let value = number(estimate.estimate / unit_size, decimals);
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else { return format!("{value} {unit}") };
    let between = if low < 0.0 { " to " } else { "–" };
    let (low, high) = (number(low / unit_size, decimals), number(high / unit_size, decimals));
    if low == value && high == value {
        return format!("{value} {unit}");
    }
    format!("{value} {unit} ({low}{between}{high})")
}

/// Decimals with which an end that is not zero does not read as zero: an interval that excludes zero is told from one that
/// includes it.
fn decimals_off_zero(estimate: &Estimate, unit_size: f64, decimals: usize) -> usize {
    const MOST: usize = 3;
    let reads_as_zero =
        |end: f64, decimals: usize| (end / unit_size).abs() < 0.5 * 0.1_f64.powi(decimals as i32);
    let near = match (estimate.low, estimate.high) {
        (Some(low), _) if low > 0.0 => low,
        (_, Some(high)) if high < 0.0 => high,
        _ => return decimals,
    };
    (decimals..decimals + MOST).find(|decimals| !reads_as_zero(near, *decimals)).unwrap_or(decimals + MOST)
}

/// Values from here on have an exponent instead of hundreds of digits.
const MIN_EXPONENT_VALUE: f64 = 1e15;

/// A number with this many decimals and a true minus sign; never `−0`.
fn number(value: f64, decimals: usize) -> String {
    let text = if value.is_finite() && value.abs() >= MIN_EXPONENT_VALUE {
        format!("{value:.2e}")
    } else {
        format!("{value:.decimals$}")
    };
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| matches!(c, '0' | '.')) => digits.to_owned(),
        Some(digits) => format!("−{digits}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(estimate: f64, low: f64, high: f64) -> Estimate {
        Estimate { estimate, low: Some(low), high: Some(high), n: 3, alone: None }
    }

    #[test]
    fn figures_are_formatted_with_units_and_intervals() {
        let text = [
            latency(&estimate(380.0, 351.0, 409.0)),
            latency(&estimate(38.2, 35.0, 41.0)),
            latency(&estimate(3.21, 2.0, 4.4)),
            latency(&estimate(8.0, -21.0, 33.0)),
            latency(&estimate(-120.0, -150.0, -90.0)),
            latency(&estimate(23_456.0, 20_000.0, 27_000.0)),
            latency_value(812_000.0),
            latency_value(1_234_000.0),
            latency_value(-0.01),
            latency_value(1e300),
            cores(&estimate(0.2123, 0.20, 0.224)),
            cores_value(0.0321),
            memory(&estimate(41.2e6, 40.4e6, 42.0e6)),
            memory(&estimate(41.2e6, 41.1e6, 41.3e6)),
            size(1_260_000.0),
            size(16_299.0),
            size(999_700.0),
            bound(Duration::from_micros(1500)),
            percent(0.0012),
            percent(0.25),
            list(&["a".into(), "b".into(), "c".into()]),
        ];
        insta::assert_snapshot!(text.join("\n"));
    }
}
