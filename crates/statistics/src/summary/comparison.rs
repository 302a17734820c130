//! One mode against another with the same factors and load.
//!
//! Trials of one repeat were run near each other in time and are compared with each other; where too few repeats have both,
//! the groups are compared as they are. Times are compared by their difference, throughput and CPU by their ratio.

use super::estimates::resolution_us;
use super::totals::Sum;
use crate::interval;
use crate::trials::{TrialsByCell, is_valid};
use experiment::Mode;
use experiment::schema::{
    AddedLatency, Conditions, Estimate, HistogramSummary, ModeComparison, Role, TrialRecord,
};
use std::collections::BTreeMap;

/// Every mode against every earlier one that leads to the same server, under all conditions.
pub(super) fn comparisons(
    conditions: &[Conditions<'_>],
    modes: &[Mode],
    trials: &TrialsByCell<'_>,
) -> Vec<ModeComparison> {
    let pairs = || {
        let later = modes.iter().enumerate();
        later.flat_map(|(index, mode)| modes[..index].iter().map(move |than| (*mode, *than)))
    };
    let comparable =
        |at| pairs().filter(|(mode, than)| mode.compares_with(*than)).map(move |pair| (at, pair));
    conditions
        .iter()
        .flat_map(|at| comparable(*at))
        .filter_map(|(at, (mode, than))| {
            Some(ModeComparison {
                factors: at.factors.clone(),
                load: at.load.clone(),
                response_time_us: response_time(mode, than, at, trials)?,
                throughput: if at.load.rate.is_none() { throughput(mode, than, at, trials) } else { None },
                proxy_cpu_per_request: proxy_cpu(mode, than, at, trials),
                mode,
                than,
            })
        })
        .collect()
}

/// What a mode adds to the response time of another; absent where one of them has no valid trial.
pub(super) fn response_time(
    mode: Mode,
    than: Mode,
    at: Conditions<'_>,
    trials: &TrialsByCell<'_>,
) -> Option<AddedLatency> {
    let difference = |read: fn(&HistogramSummary) -> Option<f64>| {
        let read = |trial: &TrialRecord| read(&trial.result.as_ref()?.response_time_us);
        let sides = Sides::new(mode, than, at, trials, read);
        sides.difference(|values| resolution_us(values.iter().copied().fold(0.0, f64::max)) * 2.0)
    };
    let added = AddedLatency {
        p50: difference(|histogram| histogram.p50),
        p90: difference(|histogram| histogram.p90),
        p99: difference(|histogram| histogram.p99),
    };
    [added.p50, added.p90, added.p99].iter().any(Option::is_some).then_some(added)
}

fn throughput(mode: Mode, than: Mode, at: Conditions<'_>, trials: &TrialsByCell<'_>) -> Option<Estimate> {
    let read = |trial: &TrialRecord| Some(trial.result.as_ref()?.rate.completed);
    Sides::new(mode, than, at, trials, read).change()
}

fn proxy_cpu(mode: Mode, than: Mode, at: Conditions<'_>, trials: &TrialsByCell<'_>) -> Option<Estimate> {
    // Past the sidecar it idles: a multiple of next to nothing says nothing.
    than.floor().and(mode.floor())?;
    let read = |trial: &TrialRecord| Sum::of(Role::Proxy, trial)?.cpu_cores_per_1000_rps();
    Sides::new(mode, than, at, trials, read).change()
}

/// A figure of the valid trials of two modes, by repeat.
struct Sides {
    with: BTreeMap<usize, f64>,
    without: BTreeMap<usize, f64>,
}

impl Sides {
    fn new(
        mode: Mode,
        than: Mode,
        at: Conditions<'_>,
        trials: &TrialsByCell<'_>,
        read: impl Fn(&TrialRecord) -> Option<f64>,
    ) -> Self {
        let by_repeat = |mode: Mode| {
            let of_cell = trials.of(at.cell(mode)).iter().filter(|trial| is_valid(trial));
            of_cell.filter_map(|trial| Some((trial.repeat, read(trial)?))).collect()
        };
        Self { with: by_repeat(mode), without: by_repeat(than) }
    }

    /// The difference of the means; `resolution` tells from all values the least difference that can be measured.
    fn difference(&self, resolution: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
        let all: Vec<f64> = self.with.values().chain(self.without.values()).copied().collect();
        interval::difference(&self.with, &self.without, resolution(&all))
    }

    /// The change of the one against the other as a fraction: the difference of the logarithms, made a ratio again. Absent
    /// where a value is not above zero: nothing is a fraction of nothing.
    fn change(&self) -> Option<Estimate> {
        let logarithms = |side: &BTreeMap<usize, f64>| -> Option<BTreeMap<usize, f64>> {
            let logarithm = |(repeat, value): (&usize, &f64)| (*value > 0.0).then(|| (*repeat, value.ln()));
            side.iter().map(logarithm).collect()
        };
        let sides = Self { with: logarithms(&self.with)?, without: logarithms(&self.without)? };
        Some(sides.difference(|_| 0.0)?.map(f64::exp_m1))
    }
}
