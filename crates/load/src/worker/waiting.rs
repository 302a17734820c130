//! Waiting until something is due or the network has events.

use super::{END_GRACE, Timeline, Worker};
use crate::clock::{Clock, Nanos};
use crate::network::Network;
use crate::pacing::Wait;
use crate::protocol::Codec;
use crate::usage::thread_cpu;
use std::io;
use std::time::Duration;

impl<C: Codec, N: Network> Worker<'_, C, N> {
    /// Sleeps or spins until something is due, or until the network has events.
    pub(super) fn wait(&mut self, clock: &Clock) -> io::Result<()> {
        let now = clock.now();
        // More than a turn sends: what was sent goes out.
        if self.pools.has_ready() {
            return self.spin(now, clock);
        }
        let Timeline { window_start, end, timeout, .. } = self.timeline;
        let mut limit = self.next_upkeep;
        for edge in [window_start, end, end + END_GRACE, end + timeout] {
            if edge > now {
                limit = limit.min(edge);
            }
        }
        let next_due = self.next_due().filter(|due| *due < limit);
        let sendable = next_due.filter(|_| self.takes_requests());
        match self.pacer.wait_for(sendable, limit, self.in_flight > 0, now) {
            Wait::Sleep(until) => self.sleep(until, next_due, sendable.is_some(), clock),
            Wait::Spin(until) => self.spin(until, clock),
        }
    }

    fn sleep(
        &mut self,
        until: Nanos,
        next_due: Option<Nanos>,
        sendable: bool,
        clock: &Clock,
    ) -> io::Result<()> {
        let measured_from = self.pacer.measures_sleep().then(thread_cpu);
        let began = clock.now();
        let time = until.saturating_sub(began);
        let has_read_all = self.network.has_read_all();
        let sleeps_through =
            sendable && self.opening == 0 && self.reads_late.is_some_and(|late| time <= late);
        let timer_ended_it = if sleeps_through {
            self.network.sleep_through(Duration::from_nanos(time))?;
            true
        } else {
            !self.network.wait(Duration::from_nanos(time))?
        };
        let woken = clock.now();
        self.slept = (has_read_all && !timer_ended_it).then_some((began, woken));
        if sendable && timer_ended_it {
            let cost = measured_from.map(|from| thread_cpu().saturating_sub(from).as_nanos() as Nanos);
            self.pacer.slept(until, woken, cost);
        }
        if let Some(due) = next_due.filter(|due| !sendable && *due < woken.min(until)) {
            self.backlogs.connections_are_busy(0, due);
        }
        self.backlogs.all_stalled(until, woken);
        Ok(())
    }

    fn spin(&mut self, until: Nanos, clock: &Clock) -> io::Result<()> {
        let since = clock.now();
        let mut now = since;
        // Once also if more is due already: what was sent may go out with it, and responses may have come.
        loop {
            let has_news = self.network.wait(Duration::ZERO)?;
            let before = now;
            now = clock.now();
            self.pacer.looked_again_after(now - before);
            self.backlogs.all_stalled(before, now);
            if has_news {
                break;
            }
            self.polled_at = now;
            if now >= until {
                break;
            }
        }
        self.pacer.spun(now - since);
        Ok(())
    }
}
