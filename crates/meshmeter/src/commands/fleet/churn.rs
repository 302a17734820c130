//! Churn: pods are replaced at a rate, whether or not the last change has arrived.

use super::changes::{CHURN, Changing};
use experiment::settings::fleet::ChangeKind;
use fleet::ChangeId;
use population::changes::ChurnSchedule;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Allowance for the last changes of the observation, which may be a little late.
const LATE_ALLOWANCE: Duration = Duration::from_secs(1);
/// Failures are alike, so only this many are shown.
const MAX_SHOWN_FAILURES: usize = 3;
/// Seed for the times at which pods are replaced.
const SEED: u64 = 1;

/// Makes changes until the observation ends, then waits up to `settle` until the last ones have arrived.
pub(super) fn run(changing: &Changing<'_>) {
    let settings = changing.runner.settings;
    let begun = Instant::now();
    let (mut open, mut failures) = (Vec::<ChangeId>::new(), 0);
    let schedule = ChurnSchedule::new(settings.churn, settings.pods, SEED).into_iter().flatten();
    for due in schedule.take_while(|due| *due < settings.duration) {
        if !waited_until(changing, begun + due) {
            return;
        }
        // If the API cannot keep up there are fewer changes, not a longer observation.
        if begun.elapsed() > settings.duration + LATE_ALLOWANCE {
            let late = format!("the API did not follow: what was due from {due:.1?} on was not written");
            changing.failed(CHURN, late);
            break;
        }
        match changing.write(ChangeKind::PodRestarted, CHURN) {
            Ok(changes) => open.extend(changes),
            Err(failure) => {
                failures += 1;
                if failures <= MAX_SHOWN_FAILURES {
                    changing.failed(CHURN, failure);
                }
            }
        }
    }
    if !waited_until(changing, begun + settings.duration) {
        return;
    }
    let deadline = Instant::now() + settings.settle;
    for change in open {
        while !changing.fleet.wait(change, deadline.min(Instant::now() + POLL_INTERVAL)).is_complete() {
            if changing.runner.is_stopped() || Instant::now() >= deadline {
                return;
            }
        }
    }
}

/// Waits until `until`. Returns false if the run is stopped before.
fn waited_until(changing: &Changing<'_>, until: Instant) -> bool {
    loop {
        if changing.runner.is_stopped() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
}
