//! Names and values of compared figures as text.

use crate::format::{self, ABSENT, counted};
use results::{Clock, Estimate, InconclusiveReason, Metric, Modes, Unit};
use statistics::words;

/// Name of a figure.
pub(crate) fn label(metric: Metric) -> String {
    let name = match metric {
        metric if metric.clock() == Some(Clock::ResponseTime) => metric.spoiled_by().name(),
        metric if metric.clock() == Some(Clock::ServiceTime) => {
            return format!("{} of service times", metric.spoiled_by().name());
        }
        metric if metric.clock().is_some_and(Clock::is_of_streams) => {
            let name = metric.spoiled_by().name();
            return match metric.clock() {
                Some(Clock::FirstByte) => format!("first byte {name}"),
                Some(Clock::FirstEvent) => format!("first event {name}"),
                _ => format!("between events {name}"),
            };
        }
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
pub(crate) fn value(metric: Metric, estimate: Option<Estimate>) -> String {
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

/// The two modes of a figure: `about 0.38 ms in 7 runs and 0.45 ms in 5`.
pub(crate) fn modes(metric: Metric, modes: Modes) -> String {
    let mean = |mean: f64| value(metric, Some(Estimate::single(mean)));
    format!(
        "about {} in {} and {} in {}",
        mean(modes.lower),
        counted(modes.lower_runs as u64, "run", "runs"),
        mean(modes.upper),
        modes.upper_runs
    )
}

/// Change by a ratio: `+6.2 % (4.1 to 8.4)`.
pub(crate) fn change(ratio: Option<Estimate>) -> String {
    ratio.map_or_else(
        || ABSENT.to_owned(),
        |ratio| words::signed(&ratio.map(|ratio| ratio - 1.0), words::change),
    )
}

/// A fraction such as `5 %` or `0.5 %`.
pub(crate) fn percent(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Reason for which a figure is inconclusive.
pub(super) fn reason(reason: InconclusiveReason) -> &'static str {
    match reason {
        InconclusiveReason::MachineDrifted => "the machine drifted",
        InconclusiveReason::NotDecided => "not decided",
        InconclusiveReason::TooFewTrials => "too few trials",
        InconclusiveReason::TooFewRequests => "an arm has too few requests",
        InconclusiveReason::RunVariationUnknown => "run to run variation unknown",
        InconclusiveReason::TooFewRuns => "too few runs in the history",
        InconclusiveReason::Bimodal => "the history is bimodal",
    }
}
