//! Trials of generated runs whose generator kept up.

use crate::generated_run::finished;
use experiment::PlannedTrial;
use results::{
    ComponentUsage, HistogramSummary, LoadResult, Rates, RequestCounts, Role, TrialRecord, Verdict,
};

pub fn times([p50, p90, p99]: [f64; 3], count: f64) -> HistogramSummary {
    HistogramSummary {
        count: count as u64,
        mean: Some(p50),
        p50: Some(p50),
        p90: Some(p90),
        p99: Some(p99),
        max: Some(p99 * 1.5),
        ..HistogramSummary::default()
    }
}

pub fn proxy(name: &str, cores: f64) -> ComponentUsage {
    ComponentUsage {
        cpu_user_s: 10.0 * cores,
        memory_resident_bytes: 70_000_000,
        memory_working_set_bytes: Some(50_000_000),
        ..ComponentUsage::new(name, Role::Proxy, 10.0)
    }
}

pub fn record(
    planned: &PlannedTrial,
    verdict: &Verdict,
    times: HistogramSummary,
    rate: Rates,
    components: Vec<ComponentUsage>,
) -> TrialRecord {
    let sent = (rate.sent * 10.0) as u64;
    let result = LoadResult {
        duration_s: 10.0,
        rate,
        requests: RequestCounts { scheduled: sent, sent, completed: sent, ..RequestCounts::default() },
        response_time_us: times,
        verdict: Verdict::usable(),
        ..LoadResult::default()
    };
    TrialRecord { result: Some(result), components, ..finished(planned, verdict) }
}
