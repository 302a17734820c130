//! Names and values of compared figures as text.

use crate::format::{self, ABSENT};
use results::{Estimate, InconclusiveReason, Metric, Unit};
use statistics::words;

/// Name of a figure.
pub(super) fn label(metric: Metric) -> String {
    let name = match metric {
        Metric::ResponseTimeP50Us => "p50",
        Metric::ResponseTimeP99Us => "p99",
        Metric::RateCompleted => "throughput",
        Metric::ProxiesCpuCoresPer1000Rps => "CPU of proxies per request",
        Metric::ProxiesMemoryAnonymousBytes => "memory of proxies (anonymous)",
        Metric::ProxiesConfigurationBytes => "configuration of proxies",
        Metric::ConvergenceP50Us => "convergence p50",
        Metric::ConvergenceP99Us => "convergence p99",
        Metric::FirstConfigurationLastUs => "first configuration of the last proxy",
        Metric::IstiodCpuS => "CPU of istiod",
        Metric::IstiodMemoryAnonymousBytes => "memory of istiod (anonymous)",
        Metric::BytesPerProxy => "bytes per proxy",
        other => other.key(),
    };
    name.to_owned()
}

/// Value of a figure without its interval.
pub(super) fn value(metric: Metric, estimate: Option<Estimate>) -> String {
    let Some(Estimate { estimate: value, .. }) = estimate else { return ABSENT.to_owned() };
    match metric.unit() {
        Unit::Microseconds => words::latency_value(value),
        Unit::CoresPer1000Rps => words::cpu_time_value(value),
        Unit::Memory | Unit::Size => words::size(value),
        Unit::PerSecond => format::rate(value),
        Unit::Cores => words::cores_value(value),
        Unit::CpuSeconds | Unit::Seconds => format::with_unit(&format::digits(value), "s"),
        Unit::Fraction => format::percent(value),
        Unit::Count => format::digits(value),
    }
}

/// Change by a ratio: `+6.2 % (4.1 to 8.4)`.
pub(super) fn change(ratio: Option<Estimate>) -> String {
    let Some(ratio) = ratio else { return ABSENT.to_owned() };
    let change = ratio.map(|ratio| ratio - 1.0);
    let ends = change.low.map_or(0.0, f64::abs).max(change.high.map_or(0.0, f64::abs));
    // Two digits of what may be far from zero are enough.
    let decimals = if ends.max(change.estimate.abs()) < 0.0995 { 1 } else { 0 };
    let number = |fraction: f64| signed(fraction * 100.0, decimals);
    let sign = if change.estimate > 0.0 { "+" } else { "" };
    match (change.low, change.high) {
        (Some(low), Some(high)) => {
            format!("{sign}{} % ({} to {})", number(change.estimate), number(low), number(high))
        }
        _ => format!("{sign}{} %", number(change.estimate)),
    }
}

/// A number with a true minus sign.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.chars().all(|letter| matches!(letter, '0' | '.'));
    if value < 0.0 && !is_zero { format!("−{text}") } else { text }
}

/// A fraction such as `5 %` or `0.5 %`.
pub(super) fn percent(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Why a figure is inconclusive.
pub(super) fn reason(reason: InconclusiveReason) -> &'static str {
    match reason {
        InconclusiveReason::MachineDrifted => "the machine drifted",
        InconclusiveReason::NotDecided => "not decided",
        InconclusiveReason::TooFewTrials => "too few trials",
    }
}
