//! How long the API and workers were unresponsive in a trial. Workers carry on meanwhile, but counters are
//! read late and pods are not watched: beyond a limit the trial proves nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Limit for a worker, which responds within a second even on busy machines.
const MAX_UNRESPONSIVE: Duration = Duration::from_secs(3);
/// Limit for the API, from a failed request to the next successful one: events of pods may be missed
/// meanwhile.
const MAX_API_UNRESPONSIVE: Duration = Duration::from_secs(1);
pub(super) const API: &str = "the Kubernetes API";

/// The longest unresponsive period of each component in a trial. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct UnresponsivePeriods(Arc<Mutex<BTreeMap<String, Duration>>>);

impl UnresponsivePeriods {
    pub fn note(&self, component: &str, silence: Duration) {
        let mut longest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = longest.entry(component.to_owned()).or_default();
        *longest = silence.max(*longest);
    }

    /// Why the trial proves nothing; empty if every period was short.
    pub fn reasons(&self) -> Vec<String> {
        let longest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = |component: &str| if component == API { MAX_API_UNRESPONSIVE } else { MAX_UNRESPONSIVE };
        let long = longest.iter().filter(|(component, silence)| **silence > bound(component));
        let reason = |(component, silence): (&String, &Duration)| {
            format!(
                "{component} did not answer for {:.1} s: nobody watched the trial meanwhile",
                silence.as_secs_f64()
            )
        };
        long.map(reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_longest_silence_above_limit_is_reason() {
        let unresponsive_periods = UnresponsivePeriods::default();
        unresponsive_periods.note("worker a", Duration::from_secs(2));
        unresponsive_periods.note(API, Duration::from_millis(900));
        assert!(unresponsive_periods.reasons().is_empty());
        for seconds in [4, 6, 5] {
            unresponsive_periods.clone().note("worker b", Duration::from_secs(seconds));
        }
        assert_eq!(
            unresponsive_periods.reasons(),
            ["worker b did not answer for 6.0 s: nobody watched the trial meanwhile"]
        );
        unresponsive_periods.note(API, Duration::from_millis(1100));
        assert_eq!(unresponsive_periods.reasons().len(), 2);
    }
}
