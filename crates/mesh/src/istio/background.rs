//! Background services: created and deleted to match the next deployment.
//! Only differences are written: each Service costs the API two objects and milliseconds of CPU. A deployment
//! begins once istiod has processed all of them, so that this work stays out of measured windows.

use super::objects::background::{NAMESPACE, object_refs, services};
use crate::Result;
use crate::kubernetes::client::ApiClient;
use crate::kubernetes::workloads::namespace;
use crate::wait::{Progress, wait_with_progress, with_last_state};
use experiment::environment::ProgressSink;
use experiment::mesh_settings::BackgroundSettings;
use results::exposition::samples;
use std::ops::Range;
use std::time::Duration;

/// istiod processes changes within milliseconds, or after computing its next push: seconds in a large mesh.
const PROCESSED_TIMEOUT: Duration = Duration::from_secs(120);
pub const METRICS_PATH: &str = "/metrics";

#[derive(Debug, Default)]
pub struct BackgroundServices {
    /// Services numbered below this may exist.
    services: usize,
    /// Endpoints of each of them; absent after a failed change, which leaves any.
    endpoints: Option<usize>,
}

#[derive(Debug, Eq, PartialEq)]
struct Change {
    deleted: Range<usize>,
    /// Services to write, whether or not they exist.
    written: Range<usize>,
}

impl BackgroundServices {
    /// Changes the background services and waits until istiod has processed the change. `metrics` fetches
    /// istiod's metrics.
    pub fn change(
        &mut self,
        api: &ApiClient,
        metrics: &dyn Fn() -> Result<Vec<u8>>,
        wanted: BackgroundSettings,
        progress: &ProgressSink,
    ) -> Result<()> {
        let change = self.change_to(wanted);
        let events = self.events_of(&change);
        let Change { deleted, written } = change;
        let changes = deleted.len() + written.len();
        if changes == 0 {
            return Ok(());
        }
        let before = Processed::fetch(metrics)?.unwrap_or_default();
        *self = Self { services: deleted.end.max(written.end), endpoints: None };
        let report = |verb: &'static str, count: usize| {
            move |objects| progress.report(&format!("{verb} {} of {count} background services", objects / 2))
        };
        api.delete(&object_refs(deleted.clone()), &report("removed", deleted.len()))?;
        if !written.is_empty() {
            // The namespace stays when the services are deleted: deleting a namespace takes a controller.
            api.create(&[namespace(NAMESPACE, &[])], &|_| ())?;
        }
        api.create(&services(written.clone(), wanted.endpoints), &report("wrote", written.len()))?;
        wait_until_processed(api, metrics, before.and(events), changes, progress)?;
        *self = Self { services: wanted.services, endpoints: Some(wanted.endpoints) };
        Ok(())
    }

    fn change_to(&self, wanted: BackgroundSettings) -> Change {
        let is_kept = self.endpoints == Some(wanted.endpoints);
        let kept = if is_kept { self.services.min(wanted.services) } else { 0 };
        let deleted = wanted.services..self.services.max(wanted.services);
        Change { deleted, written: kept..wanted.services }
    }

    /// Events that a change causes for certain. A Service that is written again unchanged causes none, and
    /// after a failed change nobody knows what exists: istiod reads the objects of the deployment afterwards, in the
    /// order of their events.
    fn events_of(&self, change: &Change) -> Processed {
        let created = change.written.end.saturating_sub(self.services).min(change.written.len()) as u64;
        if self.endpoints.is_none() {
            return Processed { services: created, endpoints: created };
        }
        let deleted = change.deleted.len() as u64;
        Processed { services: deleted + created, endpoints: deleted + change.written.len() as u64 }
    }
}

fn wait_until_processed(
    api: &ApiClient,
    metrics: &dyn Fn() -> Result<Vec<u8>>,
    awaited: Processed,
    changes: usize,
    progress: &ProgressSink,
) -> Result<()> {
    let mut last = 0;
    let what = "istiod has processed the background services";
    let waited = wait_with_progress(what, PROCESSED_TIMEOUT, || {
        api.check_not_stopped()?;
        // Without these metrics, do not wait: a deployment waits for its own objects anyway.
        let Some(now) = Processed::fetch(metrics)? else { return Ok(Progress::Done(())) };
        let missing = now.missing(awaited);
        if missing == 0 {
            return Ok(Progress::Done(()));
        }
        let done = (changes as u64).saturating_sub(missing);
        progress.report(&format!("istiod has processed {done} of {changes} background services"));
        last = done;
        Ok(Progress::At(done))
    });
    waited.map_err(|error| with_last_state(error, &format!("{last} of {changes}")))
}

/// Service and EndpointSlice events that istiod has processed since it started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Processed {
    services: u64,
    endpoints: u64,
}

impl Processed {
    fn fetch(metrics: &dyn Fn() -> Result<Vec<u8>>) -> Result<Option<Self>> {
        Ok(Self::read(&String::from_utf8_lossy(&metrics()?)))
    }

    /// Reads istiod's metrics, such as `pilot_k8s_reg_events{event="add",type="Services"} 12`; absent if
    /// there are none.
    fn read(metrics: &str) -> Option<Self> {
        let mut found = None;
        for sample in samples(metrics).filter(|sample| sample.name == "pilot_k8s_reg_events") {
            let processed: &mut Self = found.get_or_insert_default();
            let count = sample.value as u64;
            match sample.label("type").as_deref() {
                Some("Services") => processed.services += count,
                Some("EndpointSlice") => processed.endpoints += count,
                _ => {}
            }
        }
        found
    }

    fn and(self, further: Self) -> Self {
        Self { services: self.services + further.services, endpoints: self.endpoints + further.endpoints }
    }

    /// Events of the kind of which more are missing.
    fn missing(self, awaited: Self) -> u64 {
        let services = awaited.services.saturating_sub(self.services);
        services.max(awaited.endpoints.saturating_sub(self.endpoints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(services: usize, endpoints: Option<usize>, wanted: (usize, usize)) -> Change {
        let wanted = BackgroundSettings { services: wanted.0, endpoints: wanted.1 };
        BackgroundServices { services, endpoints }.change_to(wanted)
    }

    #[test]
    fn change_writes_only_what_differs() {
        assert_eq!(change(0, None, (3, 1)), Change { deleted: 3..3, written: 0..3 });
        assert_eq!(change(2, Some(1), (3, 1)), Change { deleted: 3..3, written: 2..3 });
        assert_eq!(change(3, Some(1), (2, 1)), Change { deleted: 2..3, written: 2..2 });
        assert_eq!(change(3, Some(1), (0, 1)), Change { deleted: 0..3, written: 0..0 });
    }

    #[test]
    fn change_rewrites_different_addresses_and_leftovers_of_failures() {
        assert_eq!(change(3, Some(1), (2, 4)), Change { deleted: 2..3, written: 0..2 });
        assert_eq!(change(5, None, (3, 1)), Change { deleted: 3..5, written: 0..3 });
        assert_eq!(change(9, None, (0, 1)), Change { deleted: 0..9, written: 0..0 });
    }

    #[test]
    fn only_events_that_must_come_are_awaited() {
        let events = |services: usize, endpoints: Option<usize>, wanted: (usize, usize)| {
            let wanted = BackgroundSettings { services: wanted.0, endpoints: wanted.1 };
            let background = BackgroundServices { services, endpoints };
            let Processed { services, endpoints } = background.events_of(&background.change_to(wanted));
            (services, endpoints)
        };
        assert_eq!(events(0, None, (3, 1)), (3, 3));
        assert_eq!(events(2, Some(1), (3, 1)), (1, 1));
        assert_eq!(events(3, Some(1), (0, 1)), (3, 3));
        // Other addresses of services that stay.
        assert_eq!(events(3, Some(1), (3, 4)), (0, 3));
        assert_eq!(events(3, Some(1), (2, 4)), (1, 3));
        // After a failure.
        assert_eq!(events(5, None, (3, 1)), (0, 0));
        assert_eq!(events(5, None, (7, 1)), (2, 2));
    }

    #[test]
    fn processed_counts_services_with_their_addresses() {
        let read = |services: u64, endpoints: u64| {
            let line = |event, kind, count| {
                format!("pilot_k8s_reg_events{{event=\"{event}\",type=\"{kind}\"}} {count}\n")
            };
            let text = line("add", "Services", services)
                + &line("delete", "Services", 1)
                + &line("add", "EndpointSlice", endpoints)
                + &line("add", "Pods", 90)
                + "pilot_services 7\n";
            Processed::read(&text).unwrap()
        };
        let awaited = read(10, 10).and(Processed { services: 10, endpoints: 10 });
        assert_eq!(read(20, 30).missing(awaited), 0);
        assert_eq!(read(20, 12).missing(awaited), 8);
        assert_eq!(Processed::read("pilot_services 7\n"), None);
        assert_eq!(
            Processed::read("pilot_k8s_reg_events{event=\"add\",type=\"Services\"} 1.5e+04\n"),
            Some(Processed { services: 15_000, endpoints: 0 })
        );
    }
}
