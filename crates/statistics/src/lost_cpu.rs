//! Effect on response times of CPU time that others took.
//!
//! The experiment keeps a share u of all CPUs busy, others take a share s of them. Work that others delay is made
//! up for while the experiment would have been idle, so `a = s / (1 − u)`, the share of its idle time that others
//! took, says how much was delayed: at half load a fifth of all CPUs is two fifths. Two extremes bound a quantile:
//!
//! - **Many short turns** slow each request alike: a queue whose capacity shrinks by s is slower by 1 / (1 − a).
//! - **Few long turns** delay a share a of the time, with the queue that they leave behind, and nothing else: a
//!   quantile without them is at least the one that a share a lower ranks.
//!
//! In a closed loop nothing queues behind a turn but the clients: there a is s. The tests simulate it.

use results::{Figure, Figures, HistogramSummary, LatencyHistogram, LoadResult, MachineUsage};

/// The median may have been moved by this share of its value, by CPU time that others took or a generator's lateness …
pub const MOVED_SHARE_P50: f64 = 0.15;
/// … and a higher percentile by this one.
pub const MOVED_SHARE: f64 = 0.25;

/// Maximum share of the CPU time left by the experiment that processes outside of it used.
const MAX_OTHER_PROCESSES_SHARE: f64 = 0.10;

/// CPU that programs outside the experiment took in a window: the reason and the figures that it spoils; `None` if it is
/// negligible.
#[must_use]
pub fn other_processes(machine: &MachineUsage, result: Option<&LoadResult>) -> Option<(String, Figures)> {
    let others = LostCpu::new(machine.other_processes_cores, machine, result);
    let top = machine.top_other_processes.iter();
    let names: Vec<String> =
        top.map(|process| format!("{} {:.2}", process.name, process.cpu_cores)).collect();
    let cores = machine.other_processes_cores;
    let reason = format!("other-processes: others took {cores:.2} cores ({})", names.join(", "));
    let times = result.map(|result| &result.response_time_us);
    (others.share() > MAX_OTHER_PROCESSES_SHARE).then(|| (reason, others.spoiled(times)))
}

/// CPU time of a window that others took, as a share of what the experiment left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostCpu {
    share: f64,
}

impl LostCpu {
    /// `lost_cores` of a machine, beside the load of `result`. The generator's spinning does not count as work: whatever is
    /// due interrupts it.
    #[must_use]
    pub fn new(lost_cores: f64, machine: &MachineUsage, result: Option<&LoadResult>) -> Self {
        let cpus = (machine.cpus as f64).max(1.0);
        let lost = lost_cores / cpus;
        let is_closed_loop = result.is_some_and(|result| result.rate.offered.is_none());
        let pacing = result.and_then(|result| Some((result.threads, result.generator.pacing?)));
        let spinning = pacing.map_or(0.0, |(threads, pacing)| threads as f64 * pacing.spinning_fraction);
        let used = ((machine.busy_cores - machine.other_processes_cores - spinning) / cpus).max(0.0);
        let left = if is_closed_loop { 1.0 } else { 1.0 - used };
        Self { share: if lost < left { lost / left } else { 1.0 } }
    }

    /// Share of the CPU time left by the experiment, 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        self.share
    }

    /// Figures that it can have moved by more than is negligible.
    #[must_use]
    pub fn spoiled(self, times: Option<&HistogramSummary>) -> Figures {
        let histogram = times.and_then(|times| {
            Some((
                LatencyHistogram::decode(&times.histogram).ok().filter(|all| all.count() > 0)?,
                times.censored,
            ))
        });
        let is_spoiled = |figure: &Figure| {
            let Some(quantile) = figure.quantile() else { return true };
            let moved = histogram
                .as_ref()
                .map_or(self.slowdown(), |(all, censored)| self.moved(quantile, all, *censored));
            let allowed = if *figure == Figure::P50 { MOVED_SHARE_P50 } else { MOVED_SHARE };
            1.0 - quantile < self.share || moved > allowed
        };
        let times: Figures = Figures::times().iter().filter(is_spoiled).collect();
        times.with(Figure::Throughput)
    }

    /// Maximum growth of a quantile, as a share of its value without the loss.
    fn moved(self, quantile: f64, times: &LatencyHistogram, censored: u64) -> f64 {
        let at = |quantile: f64| times.percentile_with(100.0 * quantile, censored);
        let (Some(value), Some(lower)) = (at(quantile), at(quantile * (1.0 - self.share))) else {
            return 0.0;
        };
        if lower > 0.0 { self.slowdown().max(value / lower - 1.0) } else { f64::INFINITY }
    }

    /// Slowdown by short turns.
    fn slowdown(self) -> f64 {
        self.share / (1.0 - self.share)
    }
}

#[cfg(test)]
mod tests;
