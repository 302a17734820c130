//! Numbers as people read them, the same in the terminal and in HTML: 3 significant digits, a unit at each number,
//! an en dash in ranges.
//!
//! Times of one table or chart share one [`TimeUnit`], so that they can be compared at a glance. Figures that are not
//! finite read as [`ABSENT`].

use experiment::schema::{ComponentVersion, Estimate, PublishedFigure};

/// What stands where there is no figure.
pub const ABSENT: &str = "–";

/// Unit of the times in one table or chart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeUnit {
    /// µs.
    Microseconds,
    /// ms.
    Milliseconds,
    /// s.
    Seconds,
}

impl TimeUnit {
    /// The unit in which these times, microseconds, read best together: that of the greatest;
    /// milliseconds where there is none.
    pub fn for_times(times_us: impl IntoIterator<Item = f64>) -> Self {
        let greatest_us =
            times_us.into_iter().filter(|time| time.is_finite()).map(f64::abs).fold(0.0, f64::max);
        if greatest_us > 0.0 && greatest_us < 1e3 {
            Self::Microseconds
        } else if greatest_us < 10e6 {
            Self::Milliseconds
        } else {
            Self::Seconds
        }
    }

    /// Microseconds in one of this unit.
    #[must_use]
    pub fn us(self) -> f64 {
        match self {
            Self::Microseconds => 1.0,
            Self::Milliseconds => 1e3,
            Self::Seconds => 1e6,
        }
    }

    /// `µs`, `ms` or `s`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    /// The time in this unit, without its name, no finer than what histograms tell apart.
    #[must_use]
    pub fn number(self, time_us: f64) -> String {
        if time_us == 0.0 {
            return "0".to_owned();
        }
        let time = time_us / self.us();
        fixed(time, decimals_for(time.abs(), 3).min(self.most_decimals()))
    }

    /// A microsecond is the finest that histograms tell apart; means over trials may be a digit finer.
    fn most_decimals(self) -> i32 {
        match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 3,
            Self::Seconds => 6,
        }
    }

    /// The time with its unit.
    #[must_use]
    pub fn time(self, time_us: f64) -> String {
        with_unit(&self.number(time_us), self.symbol())
    }

    /// An estimate and its interval in this unit, without its name.
    #[must_use]
    pub fn interval(self, estimate_us: &Estimate) -> Interval {
        Interval::rounded(estimate_us, 1.0 / self.us(), self.most_decimals())
    }
}

/// One time, microseconds, in the unit that suits it.
#[must_use]
pub fn time(time_us: f64) -> String {
    TimeUnit::for_times([time_us]).time(time_us)
}

/// An estimate and its interval as text. The digits go no further than the interval allows: two digits of its width, at
/// most three of the figures.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: String,
    /// `0.35–0.41`, or `−0.02 to 0.05` where an end is below zero; absent where there is no interval.
    pub range: Option<String>,
}

impl Interval {
    /// The estimate in its own unit.
    #[must_use]
    pub fn new(estimate: &Estimate) -> Self {
        Self::scaled(estimate, 1.0)
    }

    /// The estimate times a factor, to change its unit.
    #[must_use]
    pub fn scaled(estimate: &Estimate, factor: f64) -> Self {
        Self::rounded(estimate, factor, 9)
    }

    fn rounded(estimate: &Estimate, factor: f64, most_decimals: i32) -> Self {
        let middle = estimate.estimate * factor;
        let (Some(low), Some(high)) = (finite(estimate.low), finite(estimate.high)) else {
            let decimals = decimals_for(middle.abs(), 3).min(most_decimals);
            return Self { estimate: fixed(middle, decimals), range: None };
        };
        let (low, high) = (low * factor, high * factor);
        let greatest = [middle, low, high].into_iter().map(f64::abs).fold(0.0, f64::max);
        let decimals = decimals_for(greatest, 3).min(decimals_for((high - low) / 2.0, 2)).min(most_decimals);
        let separator = if low < 0.0 { " to " } else { "–" };
        Self {
            estimate: fixed(middle, decimals),
            range: Some(format!("{}{separator}{}", fixed(low, decimals), fixed(high, decimals))),
        }
    }

    /// `0.38 (0.35–0.41)`.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.range {
            Some(range) => format!("{} ({range})", self.estimate),
            None => self.estimate.clone(),
        }
    }

    /// `0.38 ms (0.35–0.41)`.
    #[must_use]
    pub fn text_with_unit(&self, unit: &str) -> String {
        let estimate = with_unit(&self.estimate, unit);
        match &self.range {
            Some(range) => format!("{estimate} ({range})"),
            None => estimate,
        }
    }

    /// The same for a difference: a plus sign where it is above zero.
    #[must_use]
    pub fn signed(mut self) -> Self {
        let above_zero = self.estimate.parse::<f64>().is_ok_and(|estimate| estimate > 0.0);
        if above_zero {
            self.estimate.insert(0, '+');
        }
        self
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// A number and its unit, kept on one line; a figure that is absent has no unit.
#[must_use]
pub fn with_unit(number: &str, unit: &str) -> String {
    if number == ABSENT || unit.is_empty() { number.to_owned() } else { format!("{number}\u{a0}{unit}") }
}

/// What a number in a sentence may be followed by.
const UNITS: [&str; 13] =
    ["µs", "ms", "s", "%", "core", "cores", "B", "kB", "MB", "GB", "KiB", "vCPU", "requests/s"];

/// A sentence with each number and its unit kept on one line, by no-break spaces.
#[must_use]
pub fn unbroken(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(space) = rest.find(' ') {
        let (before, after) = (&rest[..space], &rest[space + 1..]);
        let unit = after.split([' ', '.', ',', ';', ')']).next().unwrap_or_default();
        let kept = before.ends_with(|last: char| last.is_ascii_digit()) && UNITS.contains(&unit);
        result.push_str(before);
        result.push(if kept { '\u{a0}' } else { ' ' });
        rest = after;
    }
    result + rest
}

/// 3 significant digits, never an exponent: `0.0421`, `4.21`, `421`, `42100`.
#[must_use]
pub fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    fixed(value, decimals_for(value.abs(), 3))
}

/// As short as it is exact, for the ticks of an axis: `0.5`, `20`, `1500`.
#[must_use]
pub fn tick(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Decimals that show `significant` digits of a value; negative where the last digits before the point are rounded.
fn decimals_for(value: f64, significant: i32) -> i32 {
    if !value.is_finite() || value <= 0.0 {
        return significant;
    }
    // A value such as 9.996 has one digit more once it is rounded.
    let magnitude = value.log10().floor() as i32;
    let unit = 10f64.powi(magnitude - significant + 1);
    let rounded = (value / unit).round() * unit;
    let magnitude = (rounded * (1.0 + 1e-12)).log10().floor() as i32;
    significant - 1 - magnitude
}

/// A number with so many decimals (at most 9), with a true minus sign.
fn fixed(value: f64, decimals: i32) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
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

/// A whole number, its thousands set apart by thin spaces: `1 234 567`.
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

/// A count of something, in the singular or the plural: `1 trial`, `5 trials`.
#[must_use]
pub fn counted(number: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(number), if number == 1 { singular } else { plural })
}

/// Events a second: `998/s`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    let number = digits(per_second);
    if number == ABSENT { number } else { format!("{number}/s") }
}

/// The rate that an experiment asks for, as it was written: `1000/s`, `12500/s`.
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

/// CPU: `0.213 cores`; what is under a thousandth of a core reads so.
#[must_use]
pub fn cores(cores: f64) -> String {
    with_unit(&cores_number(cores), "cores")
}

/// The same without the unit.
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

/// CPU with its interval, no finer than a thousandth of a core.
#[must_use]
pub fn cores_interval(estimate: &Estimate) -> Interval {
    let range = match (finite(estimate.low), finite(estimate.high)) {
        (Some(low), Some(high)) if low < 0.0 => {
            Some(format!("{} to {}", cores_number(low), cores_number(high)))
        }
        (Some(low), Some(high)) => Some(format!("{}–{}", cores_number(low), cores_number(high))),
        _ => None,
    };
    Interval { estimate: cores_number(estimate.estimate), range }
}

/// Unit of the sizes in one table or chart; decimal, as published figures of memory mostly are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SizeUnit {
    /// B.
    Bytes,
    /// kB, 1000 bytes.
    Kilobytes,
    /// MB.
    Megabytes,
    /// GB.
    Gigabytes,
}

impl SizeUnit {
    /// The unit in which these sizes, bytes, read best together: that of the greatest;
    /// MB where there is none.
    pub fn for_sizes(sizes_bytes: impl IntoIterator<Item = f64>) -> Self {
        let greatest =
            sizes_bytes.into_iter().filter(|size| size.is_finite()).map(f64::abs).fold(0.0, f64::max);
        if greatest > 0.0 && greatest < 1e3 {
            Self::Bytes
        } else if greatest > 0.0 && greatest < 1e6 {
            Self::Kilobytes
        } else if greatest < 1e9 {
            Self::Megabytes
        } else {
            Self::Gigabytes
        }
    }

    /// Bytes in one of this unit.
    #[must_use]
    pub fn bytes(self) -> f64 {
        match self {
            Self::Bytes => 1.0,
            Self::Kilobytes => 1e3,
            Self::Megabytes => 1e6,
            Self::Gigabytes => 1e9,
        }
    }

    /// `B`, `kB`, `MB` or `GB`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::Kilobytes => "kB",
            Self::Megabytes => "MB",
            Self::Gigabytes => "GB",
        }
    }
}

/// A size in the unit that suits it: `38.2 MB`.
#[must_use]
pub fn size(bytes: f64) -> String {
    let unit = SizeUnit::for_sizes([bytes]);
    with_unit(&tick(bytes / unit.bytes()), unit.symbol())
}

/// The size of a body as experiments write it: `1 KiB` where it is a whole number of those.
#[must_use]
pub fn payload(bytes: u64) -> String {
    const KIBIBYTE: u64 = 1024;
    const MEBIBYTE: u64 = 1024 * KIBIBYTE;
    match bytes {
        0 => with_unit("0", "B"),
        bytes if bytes % MEBIBYTE == 0 => with_unit(&count(bytes / MEBIBYTE), "MiB"),
        bytes if bytes % KIBIBYTE == 0 => with_unit(&count(bytes / KIBIBYTE), "KiB"),
        bytes => size(bytes as f64),
    }
}

/// Seconds as people write a duration: `20 s`, `2 min 30 s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 120.0 {
        return with_unit(&tick(seconds), "s");
    }
    let whole = seconds.round() as u64;
    let (minutes, rest) = (whole / 60, whole % 60);
    if rest == 0 { format!("{minutes}\u{a0}min") } else { format!("{minutes}\u{a0}min {rest}\u{a0}s") }
}

/// An RFC 3339 time as `2026-11-20 09:49 UTC`; text that is none stays as it is.
#[must_use]
pub fn moment(rfc3339: &str) -> String {
    match rfc3339.parse::<jiff::Timestamp>() {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => rfc3339.to_owned(),
    }
}

/// A program that the user named: `envoy 1.40.0, named by an option (/home/me/envoy, SHA-256 0123456789ab…)`.
#[must_use]
pub fn named_program(version: &ComponentVersion) -> String {
    let by = match version.named_by.as_deref() {
        Some("option") => ", named by an option",
        Some("variable") => ", named by a variable of the environment",
        Some("search-path") => ", found in PATH",
        _ => "",
    };
    let digest = version.sha256.as_deref().map(|digest| format!("SHA-256 {}", shortened_digest(digest)));
    let details: Vec<String> = version.path.clone().into_iter().chain(digest).collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    format!("{} {}{by}{details}", version.name, version.version)
}

/// Whether a run agrees with a published figure, in words; nothing where it has no interval of a single figure.
#[must_use]
pub fn agreement(figure: &PublishedFigure) -> Option<&'static str> {
    let has_interval = figure.measured_estimate.is_some_and(|measured| measured.low.is_some());
    match figure.agrees {
        Some(true) => Some("agrees"),
        Some(false) => Some("differs"),
        None if has_interval => Some("too uncertain to tell"),
        None => None,
    }
}

/// The first digits of a digest: enough to tell builds apart by eye. The whole is in `host.json`.
#[must_use]
pub fn shortened_digest(sha256: &str) -> String {
    const SHOWN: usize = 12;
    match sha256.get(..SHOWN) {
        Some(start) if sha256.len() > SHOWN => format!("{start}…"),
        _ => sha256.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(estimate: f64, low: f64, high: f64) -> Estimate {
        Estimate { estimate, low: Some(low), high: Some(high) }
    }

    #[test]
    fn three_digits_and_no_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (0.042_14, "0.0421"),
            (0.999_6, "1.00"),
            (9.996, "10.0"),
            (42.14, "42.1"),
            (421.4, "421"),
            (42_140.0, "42100"),
            (-3.25, "−3.25"),
            (f64::NAN, ABSENT),
            (f64::INFINITY, ABSENT),
        ] {
            assert_eq!(digits(value), text, "{value}");
        }
        assert_eq!(digits(1.0), "1.00");
        assert_eq!(tick(0.5), "0.5");
        assert_eq!(tick(100.0), "100");
        assert_eq!(tick(0.0), "0");
    }

    #[test]
    fn intervals_show_no_more_digits_than_they_know() {
        let text = |estimate: &Estimate| Interval::new(estimate).text();
        assert_eq!(text(&estimate(0.3812, 0.351, 0.4118)), "0.381 (0.351–0.412)");
        assert_eq!(text(&estimate(1.2345, 0.3, 2.1)), "1.23 (0.30–2.10)");
        assert_eq!(text(&estimate(12.345, 3.0, 21.1)), "12.3 (3.0–21.1)");
        assert_eq!(text(&estimate(0.012, -0.05, 0.08)), "0.012 (−0.050 to 0.080)");
        assert_eq!(text(&Estimate { estimate: 5.0, low: None, high: None }), "5.00");
        assert_eq!(text(&estimate(f64::NAN, f64::NAN, 1.0)), ABSENT);
        assert_eq!(
            Interval::new(&estimate(0.4, 0.3, 0.5)).signed().text_with_unit("ms"),
            "+0.40\u{a0}ms (0.30–0.50)"
        );
        assert_eq!(Interval::new(&estimate(-0.4, -0.5, -0.3)).signed().text(), "−0.40 (−0.50 to −0.30)");
    }

    #[test]
    fn times_of_a_table_share_a_unit() {
        let unit = TimeUnit::for_times([80.0, 2340.0, f64::NAN]);
        assert_eq!(unit, TimeUnit::Milliseconds);
        assert_eq!(unit.time(2340.0), "2.34\u{a0}ms");
        assert_eq!(TimeUnit::for_times([80.0, 999.0]), TimeUnit::Microseconds);
        assert_eq!(TimeUnit::for_times([]), TimeUnit::Milliseconds);
        assert_eq!(TimeUnit::for_times([12e6]), TimeUnit::Seconds);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            unbroken("adds 0.38 ms (0.35–0.41) to 4 of 5 at 1000 requests/s, 10 %."),
            "adds 0.38\u{a0}ms (0.35–0.41) to 4 of 5 at 1000\u{a0}requests/s, 10\u{a0}%."
        );
        assert_eq!(unbroken(" 5 "), " 5 ");
    }

    #[test]
    fn counts_sizes_and_fractions() {
        assert_eq!(count(9999), "9999");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(counted(1, "trial", "trials"), "1 trial");
        assert_eq!(payload(1024), "1\u{a0}KiB");
        assert_eq!(payload(1500), "1.5\u{a0}kB");
        assert_eq!(size(40e6), "40\u{a0}MB");
        assert_eq!(percent(0.001_23), "0.123\u{a0}%");
        assert_eq!(percent(0.0), "0\u{a0}%");
        assert_eq!(percent(1.0), "100\u{a0}%");
        assert_eq!(cores(0.2134), "0.213\u{a0}cores");
        assert_eq!(cores_number(0.0001), "<0.001");
        assert_eq!(duration(150.0), "2\u{a0}min 30\u{a0}s");
        assert_eq!(offered_rate(12_500.0), "12500/s");
        assert_eq!(moment("2026-11-20T09:49:12.5Z"), "2026-11-20 09:49 UTC");
        assert_eq!(moment("<b>"), "<b>");
    }
}
