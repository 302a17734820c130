//! Quantities as text: durations, sizes, fractions, rates and CPU cores.
//!
//! The `parse_…` functions take text and serve as value parsers of command line options too; the `format_…` functions
//! write text that parses back to the same value. The types around them ([`TimeSpan`], [`ByteSize`], [`Fraction`],
//! [`Rate`], [`CpuCores`]) are for files: they read and write that text.
//!
//! | quantity | examples | meaning |
//! |---|---|---|
//! | duration | `250us`, `5ms`, `1.5s`, `1m30s`, `1h` | a number without a unit is an error |
//! | size | `1024`, `1KB`, `1KiB`, `1.5MiB` | bytes; `KB` is 1000 bytes, `KiB` (and `Ki`) 1024 |
//! | fraction | `0.1%`, `0.001` | 0 to 1, that is 0 % to 100 % |
//! | rate | `1000`, `1000/s`, `10k`, `1.2Mrps`, `600/m`, `345M/day` | per second unless it says otherwise; `k`, `M`, `G` of 1000 |
//! | CPU cores | `500m`, `2`, `0.5` | as in a pod's resource limits; `m` is a thousandth |
//! | churn ([`Churn`]) | `25%/m`, `10/s`, `0` | pods replaced: a share of all per minute, or pods per second |
//!
//! Exponents, signs, infinities and digit separators are rejected: nobody writes them on purpose.

mod churn;
mod in_files;

pub use churn::Churn;
pub use in_files::{ByteSize, CpuCores, Fraction, Rate, TimeSpan};

use std::time::Duration;

/// Maximum duration accepted: one year. Longer ones are typos.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);
/// Maximum size accepted: 1 PiB.
const MAX_BYTES: f64 = (1_u64 << 50) as f64;
/// Maximum rate accepted, per second.
const MAX_RATE: f64 = 1e9;
/// Maximum number of cores accepted.
const MAX_CORES: f64 = 100_000.0;

/// Error: text is not a valid quantity.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{given}` is not a {quantity}: {expected}, for example `{example}`")]
pub struct UnitError {
    /// Given text, shortened if long.
    pub given: String,
    /// Kind of quantity, such as `duration`.
    pub quantity: &'static str,
    /// Expected form or range.
    pub expected: String,
    /// Valid example.
    pub example: &'static str,
}

/// Kind of quantity: its name, expected form and example for errors.
struct Quantity {
    name: &'static str,
    expected: &'static str,
    example: &'static str,
}

const DURATION: Quantity = Quantity {
    name: "duration",
    expected: "expected a number with a unit (us, ms, s, m, h)",
    example: "500ms",
};
const SIZE: Quantity = Quantity {
    name: "size",
    expected: "expected bytes, or a number with a unit (B, KB, MB, GB of 1000; KiB, MiB, GiB of 1024)",
    example: "1KiB",
};
const FRACTION: Quantity =
    Quantity { name: "fraction", expected: "expected 0% to 100%, or 0 to 1", example: "0.1%" };
const CHANGE: Quantity = Quantity {
    name: "change",
    expected: "expected a percentage, with a minus sign for less",
    example: "-10%",
};
const RATE: Quantity = Quantity {
    name: "rate",
    expected: "expected a number above 0, per second by default",
    example: "1000/s",
};
const CORES: Quantity = Quantity {
    name: "number of CPU cores",
    expected: "expected cores or thousandths of a core (m)",
    example: "500m",
};

impl Quantity {
    /// Error for text that does not have the form of this quantity.
    fn malformed(&self, given: &str) -> UnitError {
        self.refused(given, self.expected)
    }

    /// Error for text that has the form but a value out of range.
    fn refused(&self, given: &str, expected: impl Into<String>) -> UnitError {
        UnitError {
            given: shortened(given),
            quantity: self.name,
            expected: expected.into(),
            example: self.example,
        }
    }
}

/// Shortens text to at most 40 characters on one line.
#[must_use]
pub fn shortened(text: &str) -> String {
    shortened_to(text, 40)
}

/// Shortens text to at most this many characters on one line.
#[must_use]
pub fn shortened_to(text: &str, max_characters: usize) -> String {
    let text = crate::plain_text(text);
    let mut characters = text.chars();
    let head: String = characters.by_ref().take(max_characters).collect();
    if characters.next().is_some() { format!("{head}…") } else { head }
}

/// Splits off the leading number (digits with at most one point) from the rest of the text.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.starts_with('.') || digits.ends_with('.') {
        return None;
    }
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some((number, rest))
}

/// Parses a duration such as `250us`, `5ms`, `1.5s`, `1m30s` or `1h`.
///
/// # Errors
/// Returns an error if the text has another form (such as a number without a unit) or is longer than a year.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let mut rest = text.trim();
    let mut total_ns = 0.0_f64;
    let mut previous_unit_ns = f64::INFINITY;
    if leading_number(rest).is_some_and(|(_, unit)| unit.is_empty()) {
        return Err(DURATION.refused(text, "a unit is missing (us, ms, s, m, h)"));
    }
    while !rest.is_empty() {
        let (number, after) = leading_number(rest).ok_or_else(|| DURATION.malformed(text))?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let unit_ns = match unit.trim() {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(DURATION.malformed(text)),
        };
        // `1m30s` is valid; `30s1m` and `1s1s` are typos.
        if unit_ns >= previous_unit_ns {
            return Err(DURATION.malformed(text));
        }
        total_ns += number * unit_ns;
        previous_unit_ns = unit_ns;
        rest = next;
    }
    if previous_unit_ns.is_infinite() {
        return Err(DURATION.malformed(text));
    }
    if total_ns > MAX_DURATION.as_nanos() as f64 {
        return Err(DURATION.refused(text, "expected at most a year"));
    }
    Ok(Duration::from_nanos(total_ns.round() as u64))
}

/// Formats a duration in the largest unit that needs at most three decimals.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let total_ns = duration.as_nanos();
    for (unit, unit_ns) in [("h", 3_600_000_000_000), ("m", 60_000_000_000)] {
        if total_ns >= unit_ns && total_ns.is_multiple_of(unit_ns) {
            return format!("{}{unit}", total_ns / unit_ns);
        }
    }
    for (unit, unit_ns) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)] {
        if total_ns >= unit_ns && total_ns.is_multiple_of(unit_ns / 1000) {
            let decimals = format!("{:03}", total_ns % unit_ns / (unit_ns / 1000));
            let decimals = decimals.trim_end_matches('0');
            let point = if decimals.is_empty() { "" } else { "." };
            return format!("{}{point}{decimals}{unit}", total_ns / unit_ns);
        }
    }
    if total_ns == 0 { "0s".into() } else { format!("{total_ns}ns") }
}

/// Parses a size such as `1024`, `1KB` (1000) or `1KiB` (1024), in bytes.
///
/// # Errors
/// Returns an error if the text has another form, is not a whole number of bytes, or is above 1 PiB.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = leading_number(text.trim()).ok_or_else(|| SIZE.malformed(text))?;
    let unit_bytes = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" | "ki" => 1024.0,
        "mib" | "mi" => 1024.0 * 1024.0,
        "gib" | "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(SIZE.malformed(text)),
    };
    let bytes = number * unit_bytes;
    if bytes > MAX_BYTES {
        return Err(SIZE.refused(text, "expected at most 1 PiB"));
    }
    // `0.1KB` is 100 bytes although 0.1 has no exact binary form.
    if (bytes - bytes.round()).abs() > bytes * 1e-12 {
        return Err(SIZE.refused(text, "expected a whole number of bytes"));
    }
    Ok(bytes.round() as u64)
}

/// Formats a size in the largest unit that divides it evenly.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let units = [
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("KB", 1000),
    ];
    units
        .iter()
        .find(|(_, unit_bytes)| bytes >= *unit_bytes && bytes.is_multiple_of(*unit_bytes))
        .map_or_else(|| bytes.to_string(), |(unit, unit_bytes)| format!("{}{unit}", bytes / unit_bytes))
}

/// Parses a fraction such as `0.1%` or `0.001`, 0 to 1.
///
/// # Errors
/// Returns an error if the text has another form or is outside 0 to 1.
pub fn parse_fraction(text: &str) -> Result<f64, UnitError> {
    let trimmed = text.trim();
    let (number, unit) = leading_number(trimmed).ok_or_else(|| FRACTION.malformed(text))?;
    let fraction = match unit.trim() {
        "" => number,
        "%" => number / 100.0,
        _ => return Err(FRACTION.malformed(text)),
    };
    if fraction > 1.0 {
        return Err(FRACTION.malformed(text));
    }
    Ok(fraction)
}

/// Parses a relative change such as `-10%` or `25%`: −0.1 and 0.25.
///
/// # Errors
/// Returns an error if the text is not a percentage or the change is below −100 %.
pub fn parse_change(text: &str) -> Result<f64, UnitError> {
    let trimmed = text.trim();
    let (sign, digits) = match trimmed.strip_prefix(['-', '\u{2212}']) {
        Some(digits) => (-1.0, digits),
        None => (1.0, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (number, unit) = leading_number(digits).ok_or_else(|| CHANGE.malformed(text))?;
    if unit.trim() != "%" {
        return Err(CHANGE.malformed(text));
    }
    let change = sign * number / 100.0;
    if change < -1.0 {
        return Err(CHANGE.refused(text, "expected at least -100%: nothing left"));
    }
    Ok(change)
}

/// Formats a change as a percentage with its sign.
#[must_use]
pub fn format_change(change: f64) -> String {
    let digits = without_trailing_zeros(&format!("{:.9}", change.abs() * 100.0));
    format!("{}{digits}%", if change < 0.0 { "-" } else { "" })
}

/// Formats a fraction as a percentage, or as a plain number if the percentage would lose precision.
#[must_use]
pub fn format_fraction(fraction: f64) -> String {
    let percent = without_trailing_zeros(&format!("{:.9}", fraction * 100.0)) + "%";
    if parse_fraction(&percent) == Ok(fraction) { percent } else { fraction.to_string() }
}

/// Parses a rate such as `1000`, `1000/s`, `10k`, `1.2Mrps`, `600/m` or `345M/day`, per second.
///
/// # Errors
/// Returns an error if the text has another form, is zero, or is above 1e9 per second.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = leading_number(text.trim()).ok_or_else(|| RATE.malformed(text))?;
    let unit = unit.trim();
    let multiples = [(['k', 'K'], 1e3), (['M', 'M'], 1e6), (['G', 'G'], 1e9)];
    let multiple =
        multiples.iter().find_map(|(prefix, multiple)| Some((*multiple, unit.strip_prefix(*prefix)?)));
    let (multiple, per) = multiple.unwrap_or((1.0, unit));
    let seconds = match per.trim() {
        "" | "/s" | "rps" => 1.0,
        "/m" | "/min" => 60.0,
        "/h" => 3600.0,
        "/d" | "/day" => 86_400.0,
        _ => return Err(RATE.malformed(text)),
    };
    let rate = number * multiple / seconds;
    if rate <= 0.0 {
        return Err(RATE.malformed(text));
    }
    if rate > MAX_RATE {
        return Err(RATE.refused(text, "expected at most 1000000000/s"));
    }
    Ok(rate)
}

/// Formats a rate as a plain number per second.
#[must_use]
pub fn format_rate(rate: f64) -> String {
    rate.to_string()
}

/// Parses CPU cores as in a pod's resource limits: `500m`, `2` or `0.5`.
///
/// # Errors
/// Returns an error if the text has another form, is under a thousandth of a core, or is above 100 000 cores.
pub fn parse_cores(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = leading_number(text.trim()).ok_or_else(|| CORES.malformed(text))?;
    let cores = match unit.trim() {
        "" => number,
        "m" => number / 1000.0,
        _ => return Err(CORES.malformed(text)),
    };
    if cores < 0.001 {
        return Err(CORES.refused(text, "expected at least 1m, a thousandth of a core"));
    }
    if cores > MAX_CORES {
        return Err(CORES.refused(text, "expected at most 100000 cores"));
    }
    Ok(cores)
}

/// Formats CPU cores: whole cores as a number, otherwise thousandths.
#[must_use]
pub fn format_cores(cores: f64) -> String {
    if cores.fract() == 0.0 {
        return cores.to_string();
    }
    let thousandths = format!("{}m", (cores * 1000.0).round());
    if parse_cores(&thousandths) == Ok(cores) { thousandths } else { cores.to_string() }
}

fn without_trailing_zeros(decimals: &str) -> String {
    if decimals.contains('.') {
        decimals.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        decimals.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_parse_and_format() {
        for (text, expected_us) in [
            ("250us", 250),
            ("250µs", 250),
            ("5ms", 5_000),
            ("1.5s", 1_500_000),
            ("2m", 120_000_000),
            ("1m30s", 90_000_000),
            ("1h", 3_600_000_000),
            ("0s", 0),
            (" 10 ms ", 10_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_micros(expected_us)), "{text}");
        }
    }

    #[test]
    fn sizes_fractions_rates_and_cores_parse_and_format() {
        for (text, bytes) in
            [("1024", 1024), ("1KB", 1000), ("1KiB", 1024), ("1.5MiB", 1_572_864), ("0.1kB", 100)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for (text, fraction) in [("0.1%", 0.001), ("0.001", 0.001), ("100%", 1.0), ("0", 0.0)] {
            assert_eq!(parse_fraction(text), Ok(fraction), "{text}");
        }
        for (text, rate) in [
            ("1000", 1000.0),
            ("1000/s", 1000.0),
            ("10k", 10_000.0),
            ("1.5k/s", 1500.0),
            ("600/m", 10.0),
            ("50000rps", 50_000.0),
            ("1.2Mrps", 1_200_000.0),
            ("86.4M/day", 1000.0),
        ] {
            assert_eq!(parse_rate(text), Ok(rate), "{text}");
        }
        for (text, cores) in [("500m", 0.5), ("2", 2.0), ("0.5", 0.5), ("1500m", 1.5)] {
            assert_eq!(parse_cores(text), Ok(cores), "{text}");
        }
    }

    #[test]
    fn errors_name_given_text_expectation_and_example() {
        let errors = [
            parse_duration("5").unwrap_err(),
            parse_duration("5 seconds").unwrap_err(),
            parse_duration("30s1m").unwrap_err(),
            parse_duration("9999999h").unwrap_err(),
            parse_size("1 KX").unwrap_err(),
            parse_size("0.3").unwrap_err(),
            parse_fraction("5").unwrap_err(),
            parse_rate("0").unwrap_err(),
            parse_rate("fast").unwrap_err(),
            parse_cores("0m").unwrap_err(),
            parse_cores("two").unwrap_err(),
        ];
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        `5` is not a duration: a unit is missing (us, ms, s, m, h), for example `500ms`
        `5 seconds` is not a duration: expected a number with a unit (us, ms, s, m, h), for example `500ms`
        `30s1m` is not a duration: expected a number with a unit (us, ms, s, m, h), for example `500ms`
        `9999999h` is not a duration: expected at most a year, for example `500ms`
        `1 KX` is not a size: expected bytes, or a number with a unit (B, KB, MB, GB of 1000; KiB, MiB, GiB of 1024), for example `1KiB`
        `0.3` is not a size: expected a whole number of bytes, for example `1KiB`
        `5` is not a fraction: expected 0% to 100%, or 0 to 1, for example `0.1%`
        `0` is not a rate: expected a number above 0, per second by default, for example `1000/s`
        `fast` is not a rate: expected a number above 0, per second by default, for example `1000/s`
        `0m` is not a number of CPU cores: expected at least 1m, a thousandth of a core, for example `500m`
        `two` is not a number of CPU cores: expected cores or thousandths of a core (m), for example `500m`
        ");
    }

    #[test]
    fn quantities_in_files_read_numbers_and_text_and_write_text() {
        assert_eq!(serde_json::from_str::<ByteSize>("2048").unwrap(), ByteSize(2048));
        assert_eq!(serde_json::to_string(&ByteSize(2048)).unwrap(), "\"2KiB\"");
        assert_eq!(serde_json::from_str::<Fraction>("0.25").unwrap(), Fraction(0.25));
        assert!(serde_json::from_str::<TimeSpan>("3").unwrap_err().to_string().contains("unit is missing"));
    }

    proptest! {
        #[test]
        fn parsers_do_not_panic_on_any_text(text in ".{0,60}") {
            let _ = parse_duration(&text);
            let _ = parse_size(&text);
            let _ = parse_fraction(&text);
            let _ = parse_rate(&text);
            let _ = parse_cores(&text);
        }

        #[test]
        fn formatted_quantities_read_back(us in 0_u64..10_000_000_000, bytes in 0_u64..(1 << 50), fraction in 0.0_f64..=1.0, rate in 1e-3_f64..1e6, cores in 0.001_f64..512.0) {
            let duration = Duration::from_micros(us);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
            prop_assert_eq!(parse_fraction(&format_fraction(fraction)), Ok(fraction));
            prop_assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
            prop_assert_eq!(parse_cores(&format_cores(cores)), Ok(cores));
        }
    }
}
