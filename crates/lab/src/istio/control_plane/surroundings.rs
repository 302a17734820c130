//! The other services of a mesh, written and taken away: as many as the next trial asks for.
//!
//! Only what differs is written, since each Service costs the API two objects and milliseconds of CPU for each, however
//! many are written at once. A trial begins once istiod has taken all of it up, so that none of that work falls into the
//! trial's window. Nothing here is bounded in time as a whole: what is bounded is how long nothing goes on.

use super::{ControlPlane, istiod};
use crate::istio::api::Api;
use crate::istio::control_plane::namespace;
use crate::istio::objects::surroundings::{NAMESPACE, references, services};
use crate::wait::{Progress, wait_with_progress};
use experiment::environment::{EnvironmentError, ProgressSink};
use experiment::mesh_settings::Surroundings;
use std::ops::Range;
use std::time::Duration;

/// How long istiod may take up nothing more while it still lacks something. It does so in milliseconds, or as soon as it has
/// made what it pushes to its proxies, which takes seconds in a large mesh.
const NEXT_WITHIN: Duration = Duration::from_secs(120);

/// Where istiod counts what it has taken up.
const STATISTICS: &str = "/metrics";

/// What there is of other services.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Those that are there as a whole.
    surroundings: Surroundings,
    /// After a change that failed: of Services whose number is under this nobody knows whether they are there, and as what.
    doubtful: usize,
}

/// Service numbers and addresses of each.
#[derive(Debug, Eq, PartialEq)]
struct Change {
    /// To be deleted.
    deleted: Range<usize>,
    /// To be written, whether they are there or not.
    written: Range<usize>,
}

impl Written {
    fn change_to(&self, wanted: Surroundings) -> Change {
        let there = self.surroundings.services.max(self.doubtful);
        let is_kept = self.doubtful == 0 && self.surroundings.endpoints == wanted.endpoints;
        let kept = if is_kept { self.surroundings.services.min(wanted.services) } else { 0 };
        Change { deleted: wanted.services..there.max(wanted.services), written: kept..wanted.services }
    }
}

impl ControlPlane {
    /// Makes the other services those that are wanted.
    ///
    /// # Errors
    /// Where the API refuses an object, or nothing goes on for too long.
    pub(super) fn surround(
        &self,
        written: &mut Written,
        wanted: Surroundings,
        progress: &ProgressSink,
    ) -> Result<(), EnvironmentError> {
        if written.surroundings == wanted && written.doubtful == 0 {
            return Ok(());
        }
        let Change { deleted, written: numbers } = written.change_to(wanted);
        let before = self.taken_up()?;
        written.doubtful = deleted.end.max(numbers.end);
        delete(self.api(), deleted.clone(), progress)?;
        write(self.api(), numbers.clone(), wanted.endpoints, progress)?;
        self.wait_until_taken_up(before, deleted.len() + numbers.len(), progress)?;
        *written = Written { surroundings: wanted, doubtful: 0 };
        Ok(())
    }

    /// Waits until istiod has taken up the changes of so many Services and of their addresses.
    fn wait_until_taken_up(
        &self,
        before: Option<TakenUp>,
        changes: usize,
        progress: &ProgressSink,
    ) -> Result<(), EnvironmentError> {
        let mut last = 0;
        let what = "istiod has taken up the other services";
        let waited = wait_with_progress(what, NEXT_WITHIN, || {
            self.api().check_goes_on()?;
            // One that does not count what it takes up is not waited for: a trial sees to its own objects.
            let Some(now) = self.taken_up()? else { return Ok(Progress::Done(())) };
            let done = now.since(before.unwrap_or_default());
            if done >= changes as u64 {
                return Ok(Progress::Done(()));
            }
            progress.report(&format!("istiod has taken up {done} of {changes} other services"));
            last = done;
            Ok(Progress::At(done))
        });
        waited.map_err(|error| match error.hint {
            None => error.with_hint(format!("the last look: {last} of {changes}")),
            Some(_) => error,
        })
    }

    /// What istiod says that it has taken up so far; absent where it does not say.
    fn taken_up(&self) -> Result<Option<TakenUp>, EnvironmentError> {
        let istiod = self.pod().admin(istiod::NAME, istiod::DEBUG_PORT);
        let text = istiod
            .ask_long(STATISTICS)
            .map_err(|error| EnvironmentError::new("look at what istiod has taken up", error))?;
        Ok(TakenUp::read(&String::from_utf8_lossy(&text)))
    }
}

fn delete(api: &Api, numbers: Range<usize>, progress: &ProgressSink) -> Result<(), EnvironmentError> {
    let services = numbers.len();
    api.delete_many(&references(numbers), &|objects| {
        progress.report(&format!("removed {} of {services} other services", objects / 2));
    })
}

fn write(
    api: &Api,
    numbers: Range<usize>,
    endpoints_each: usize,
    progress: &ProgressSink,
) -> Result<(), EnvironmentError> {
    let count = numbers.len();
    if count > 0 {
        // It stays when they go: to delete a namespace takes a controller.
        api.create(&[namespace(NAMESPACE, &[])], &|_| ())?;
    }
    api.create(&services(numbers, endpoints_each), &|objects| {
        progress.report(&format!("wrote {} of {count} other services", objects / 2));
    })
}

/// Changes of Services and of their addresses that istiod has handled since it started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct TakenUp {
    services: u64,
    endpoints: u64,
}

impl TakenUp {
    /// Reads istiod's statistics: lines such as `pilot_k8s_reg_events{event="add",type="Services"} 12`.
    fn read(statistics: &str) -> Option<Self> {
        let mut found = None;
        for line in statistics.lines() {
            let Some((labels, count)) =
                line.strip_prefix("pilot_k8s_reg_events{").and_then(|line| line.split_once("} "))
            else {
                continue;
            };
            let taken_up: &mut Self = found.get_or_insert_default();
            let of = |kind: &str| labels.contains(&format!("type=\"{kind}\""));
            let count = count.trim().parse::<f64>().unwrap_or(0.0) as u64;
            if of("Services") {
                taken_up.services += count;
            } else if of("EndpointSlice") {
                taken_up.endpoints += count;
            }
        }
        found
    }

    /// The Services of which all is taken up since then.
    fn since(self, before: Self) -> u64 {
        let services = self.services.saturating_sub(before.services);
        services.min(self.endpoints.saturating_sub(before.endpoints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(there: (usize, usize), doubtful: usize, wanted: (usize, usize)) -> Change {
        let of = |(services, endpoints)| Surroundings { services, endpoints };
        Written { surroundings: of(there), doubtful }.change_to(of(wanted))
    }

    #[test]
    fn only_what_differs_is_written() {
        assert_eq!(change((0, 1), 0, (3, 1)), Change { deleted: 3..3, written: 0..3 });
        assert_eq!(change((2, 1), 0, (3, 1)), Change { deleted: 3..3, written: 2..3 });
        assert_eq!(change((3, 1), 0, (2, 1)), Change { deleted: 2..3, written: 2..2 });
        assert_eq!(change((3, 1), 0, (0, 1)), Change { deleted: 0..3, written: 0..0 });
    }

    #[test]
    fn other_addresses_and_what_a_failure_left_are_written_anew() {
        assert_eq!(change((3, 1), 0, (2, 4)), Change { deleted: 2..3, written: 0..2 });
        assert_eq!(change((3, 1), 5, (3, 1)), Change { deleted: 3..5, written: 0..3 });
        assert_eq!(change((0, 1), 9, (0, 1)), Change { deleted: 0..9, written: 0..0 });
    }

    #[test]
    fn a_service_is_taken_up_with_its_addresses() {
        let read = |services: u64, endpoints: u64| {
            let line = |event, kind, count| {
                format!("pilot_k8s_reg_events{{event=\"{event}\",type=\"{kind}\"}} {count}\n")
            };
            let text = line("add", "Services", services)
                + &line("delete", "Services", 1)
                + &line("add", "EndpointSlice", endpoints)
                + &line("add", "Pods", 90)
                + "pilot_services 7\n";
            TakenUp::read(&text).unwrap()
        };
        assert_eq!(read(20, 30).since(read(10, 10)), 10);
        assert_eq!(read(20, 12).since(read(10, 10)), 2);
        assert_eq!(TakenUp::read("pilot_services 7\n"), None);
        assert_eq!(
            TakenUp::read("pilot_k8s_reg_events{event=\"add\",type=\"Services\"} 1.5e+04\n"),
            Some(TakenUp { services: 15_000, endpoints: 0 })
        );
    }
}
