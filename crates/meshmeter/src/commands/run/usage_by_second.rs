//! CPU and memory of the components by second of a window, for those who watch the run.

use experiment::environment::deploy::Deployment;
use experiment::environment::{Clock, ComponentSnapshot, Snapshot};
use results::{ComponentSecond, ComponentsSecond};
use std::collections::HashMap;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);
/// The time from one reading to the next is at least this many times what the reading took, which keeps all readings below 2 % of
/// a core, however many components there are.
const INTERVALS_PER_READING: u32 = 50;

pub(super) struct UsageBySecond {
    opened_at: Duration,
    due_at: Duration,
    /// Time and CPU time of each component at its last reading.
    last: HashMap<String, (Duration, Duration)>,
}

impl UsageBySecond {
    /// For a window that opened at `opened_at` with this snapshot.
    pub(super) fn new(opened: &Snapshot, opened_at: Duration) -> Self {
        let last = opened.components.iter().map(|one| (one.name.clone(), (one.at, one.cpu.total)));
        Self { opened_at, due_at: opened_at + INTERVAL, last: last.collect() }
    }

    /// Reads the usage since the last reading, if the next one is due and there is any.
    pub(super) fn read(
        &mut self,
        deployment: &mut dyn Deployment,
        clock: &dyn Clock,
    ) -> Option<ComponentsSecond> {
        let begun_at = clock.now();
        if begun_at < self.due_at {
            return None;
        }
        let read = deployment.read_usage();
        let took = clock.now().saturating_sub(begun_at);
        self.due_at = (self.due_at + INTERVAL).max(begun_at + INTERVALS_PER_READING * took);
        let components: Vec<ComponentSecond> =
            read.into_iter().filter_map(|one| self.since_last(one)).collect();
        let t_s = begun_at.saturating_sub(self.opened_at).as_secs_f64();
        (!components.is_empty()).then_some(ComponentsSecond { t_s, components })
    }

    /// `None` at the first reading of a component that started within the window.
    fn since_last(&mut self, now: ComponentSnapshot) -> Option<ComponentSecond> {
        let memory_bytes = now.memory.bytes();
        let last = self.last.insert(now.name.clone(), (now.at, now.cpu.total));
        let (at, cpu) = last.filter(|(at, _)| *at < now.at)?;
        let cpu_cores = now.cpu.total.saturating_sub(cpu).as_secs_f64() / (now.at - at).as_secs_f64();
        Some(ComponentSecond { name: now.name, cpu_cores, memory_bytes })
    }
}
