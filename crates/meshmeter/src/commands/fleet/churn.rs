//! Churn: pods come and go at a rate, whether or not the last change has arrived.

use super::changes::Changing;
use super::conclude::CHURN;
use experiment::settings::fleet::ChangeKind;
use fleet::ChangeId;
use population::changes::ChurnSchedule;
use std::time::{Duration, Instant};

const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// For the last changes of the time of observation, which may be a little late.
const LATE_ALLOWANCE: Duration = Duration::from_secs(1);
/// Of the failures, which are alike.
const MAX_SHOWN_FAILURES: usize = 3;
/// Of the moments at which pods are replaced.
const SEED: u64 = 1;

/// Makes the changes until the time of observation is over, then waits until the last have arrived, or as long as they may.
pub(super) fn run(changing: &Changing<'_>) {
    let settings = changing.course.settings;
    let begun = Instant::now();
    let (mut open, mut failures) = (Vec::<ChangeId>::new(), 0);
    let schedule = ChurnSchedule::new(settings.churn, settings.pods, SEED).into_iter().flatten();
    for due in schedule.take_while(|due| *due < settings.duration) {
        if !waited_until(changing, begun + due) {
            return;
        }
        // An API that cannot follow makes fewer changes, not a longer observation.
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
        while !changing.fleet.wait(change, deadline.min(Instant::now() + LOOK_INTERVAL)).is_complete() {
            if changing.course.is_stopped() || Instant::now() >= deadline {
                return;
            }
        }
    }
}

/// True if the moment came before the end of the run.
fn waited_until(changing: &Changing<'_>, until: Instant) -> bool {
    loop {
        if changing.course.is_stopped() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_INTERVAL));
    }
}
