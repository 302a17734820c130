use super::*;
use results::Estimate;

fn estimate(estimate: f64, low: f64, high: f64) -> Estimate {
    Estimate { estimate, low: Some(low), high: Some(high), n: 3, alone: None }
}

#[test]
fn digits_are_three_without_exponent_unless_the_value_is_huge() {
    for (value, text) in [
        (0.0, "0"),
        (0.042_14, "0.0421"),
        (0.999_6, "1.00"),
        (9.996, "10.0"),
        (42.14, "42.1"),
        (421.4, "421"),
        (42_140.0, "42100"),
        (-3.25, "−3.25"),
        (1e300, "1.00e300"),
        (-4.2e15, "−4.20e15"),
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
fn margin_reaches_farther_end_of_interval() {
    let margin = |middle, low, high| Interval::new(&estimate(middle, low, high)).margin();
    assert_eq!(margin(0.4, 0.37, 0.42).as_deref(), Some("±0.03"));
    assert_eq!(margin(1.0, -0.5, 1.5).as_deref(), Some("±2"));
    assert_eq!(margin(80.3, 79.2, 81.0).as_deref(), Some("±2"));
    assert_eq!(margin(0.401, 0.365, 0.41).as_deref(), Some("±0.04"));
    assert_eq!(Interval::absent().margin(), None);
}

#[test]
fn interval_digits_are_limited_by_width() {
    let text = |estimate: &Estimate| Interval::new(estimate).text();
    assert_eq!(text(&estimate(0.3812, 0.351, 0.4118)), "0.381 (0.351–0.412)");
    assert_eq!(text(&estimate(1.2345, 0.3, 2.1)), "1.23 (0.30–2.10)");
    assert_eq!(text(&estimate(12.345, 3.0, 21.1)), "12.3 (3.0–21.1)");
    assert_eq!(text(&estimate(0.012, -0.05, 0.08)), "0.012 (−0.050 to 0.080)");
    assert_eq!(text(&Estimate::single(5.0)), "5.00");
    assert_eq!(text(&estimate(f64::NAN, f64::NAN, 1.0)), ABSENT);
    assert_eq!(
        Interval::new(&estimate(0.4, 0.3, 0.5)).signed().text_with_unit("ms"),
        "+0.40\u{a0}ms (0.30–0.50)"
    );
    assert_eq!(Interval::new(&estimate(-0.4, -0.5, -0.3)).signed().text(), "−0.40 (−0.50 to −0.30)");
}

#[test]
fn times_of_one_table_share_a_unit() {
    let unit = TimeUnit::for_times([80.0, 2340.0, f64::NAN]);
    assert_eq!(unit, TimeUnit::Milliseconds);
    assert_eq!(unit.time(2340.0), "2.34\u{a0}ms");
    assert_eq!(TimeUnit::for_times([80.0, 999.0]), TimeUnit::Microseconds);
    assert_eq!(TimeUnit::for_times([]), TimeUnit::Milliseconds);
    assert_eq!(TimeUnit::for_times([12e6]), TimeUnit::Seconds);
}

#[test]
fn number_stays_on_line_with_its_unit() {
    assert_eq!(
        unbroken("adds 0.38 ms (0.35–0.41) to 4 of 5 at 1000 requests/s, 10 %."),
        "adds 0.38\u{a0}ms (0.35–0.41) to 4 of 5 at 1000\u{a0}requests/s, 10\u{a0}%."
    );
    assert_eq!(unbroken(" 5 "), " 5 ");
}

#[test]
fn counts_sizes_and_fractions_are_formatted() {
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
