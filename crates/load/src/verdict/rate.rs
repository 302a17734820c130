//! Whether the offered rate was achieved, and what kept it down where it was not.

use experiment::schema::{Figure, Figures, HistogramSummary, LoadResult, Verdict};

/// Completed requests under this share of the scheduled ones: the offered rate was not achieved.
const ACHIEVED_FRACTION: f64 = 0.99;
/// A target that half of the requests had to wait for so long, microseconds, was behind all the time.
const BEHIND_P50_US: f64 = 1000.0;
/// A worker thread on a CPU for more than this share of the window could not have sent more, nor could a process on so much of its
/// CPUs.
const BUSY_FRACTION: f64 = 0.95;
/// With more than this share of the possible requests under way on average, the connections were the limit.
const ALL_BUSY_FRACTION: f64 = 0.9;

/// A due request that was not sent in time is held against an open loop.
pub(super) fn judge(result: &LoadResult, cpus: f64, verdict: &mut Verdict) {
    let Some(offered) = result.rate.offered else { return };
    let requests = &result.requests;
    if requests.unsent as f64 > (1.0 - ACHIEVED_FRACTION) * requests.scheduled as f64 {
        verdict.saturated = true;
        let who = bound(result, cpus);
        let reason = format!(
            "saturated: {:.0}/s completed of {offered:.0}/s offered; {} due requests were never sent; {who}",
            result.rate.completed, requests.unsent
        );
        // How long requests wait depends on how long the run lasts. What a completed request costs does not.
        verdict.spoil(reason, Figures::times());
    } else if requests.late as f64 > (1.0 - ACHIEVED_FRACTION) * requests.scheduled as f64 {
        let late = format!("{} due requests were sent only after the end of the window", requests.late);
        // Behind in general, or at the end alone?
        let median = |lag: &HistogramSummary| lag.p50.unwrap_or_default();
        if median(&result.schedule_lag_us) - median(&result.generator_lag_us) > BEHIND_P50_US {
            verdict.saturated = true;
            let reason = format!("saturated: the target did not keep up with {offered:.0}/s; {late}");
            verdict.spoil(reason, Figures::times());
        } else {
            verdict.notes.push(format!("behind-at-end: {late}, since the target stalled there"));
        }
    }
}

/// A full generator in a closed loop is the limit of the throughput, whatever the target could do.
pub(super) fn judge_generator(result: &LoadResult, cpus: f64, verdict: &mut Verdict) {
    let Some(full) = full(result, cpus).filter(|_| result.rate.offered.is_none()) else { return };
    let reason = format!(
        "generator-full: {full} of the window: throughput and times are its own limit (more --threads on free cores, \
         or a larger quota, show the target's)"
    );
    verdict.spoil(reason, Figures::times().with(Figure::Throughput));
}

/// Names the busiest thread, or all the CPUs that the generator may use, if they were full. Spinning is no work.
fn full(result: &LoadResult, cpus: f64) -> Option<String> {
    let generator = &result.generator;
    let thread = generator.busiest_working_fraction();
    if thread > BUSY_FRACTION {
        let (threads, share) = (result.threads, thread * 100.0);
        return Some(format!("the generator's busiest thread of {threads} worked for {share:.0} %"));
    }
    let spinning = generator.pacing.map_or(0.0, |pacing| pacing.spinning_fraction) * result.threads as f64;
    let on_cpu = (generator.cpu_user_s + generator.cpu_system_s) / result.duration_s.max(f64::MIN_POSITIVE);
    let share = (on_cpu - spinning) / cpus.max(f64::MIN_POSITIVE);
    let are = match cpus {
        1.0 => "the one CPU".to_owned(),
        whole if whole.fract() == 0.0 => "all CPUs".to_owned(),
        quota => format!("the {quota:.2} CPUs"),
    };
    (share > BUSY_FRACTION)
        .then(|| format!("the generator worked on {are} that it may use for {:.0} %", share * 100.0))
}

/// What kept the rate down.
fn bound(result: &LoadResult, cpus: f64) -> String {
    if full(result, cpus).is_some() {
        return "the generator's CPU was full (more --threads on free cores may send more)".to_owned();
    }
    // Little's law: requests under way = rate × time of each.
    let service_time_us = result.service_time_us.mean.unwrap_or_default();
    let under_way = result.rate.completed * service_time_us / 1e6;
    let most = (result.connections * result.streams.max(1)) as f64;
    if under_way > ALL_BUSY_FRACTION * most {
        let places = match result.streams {
            0 | 1 => format!("{} connections", result.connections),
            streams => format!("{streams} streams of {} connections", result.connections),
        };
        return format!(
            "all {places} were busy: with {:.1} ms for each request they carry no more (more --connections \
             show whether the target can)",
            service_time_us / 1000.0
        );
    }
    "the target did not keep up on these connections".to_owned()
}
