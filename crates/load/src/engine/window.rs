//! The edges of the measured window: process CPU and wall clock at each.

use super::start::WallClock;
use crate::clock::{Clock, Nanos};
use crate::usage::ProcessCpu;
use jiff::{SignedDuration, Timestamp};

/// The edges of the window that have been passed.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) opened: Option<Edge>,
    pub(super) closed: Option<Edge>,
}

/// Readings at one edge of the window.
#[derive(Debug)]
pub(super) struct Edge {
    cpu: ProcessCpu,
    wall: WallClock,
}

impl Edge {
    pub(super) fn now(clock: &Clock) -> Self {
        Self { cpu: ProcessCpu::now(), wall: WallClock::read(clock) }
    }
}

impl Window {
    fn edges(&self) -> Option<(&Edge, &Edge)> {
        self.opened.as_ref().zip(self.closed.as_ref())
    }

    pub(super) fn used(&self) -> ProcessCpu {
        self.edges().map_or_else(ProcessCpu::default, |(opened, closed)| closed.cpu.since(&opened.cpu))
    }

    /// Wall-clock time at which the window opened; `None` until then.
    pub(super) fn started_at(&self, window_start: Nanos) -> Option<Timestamp> {
        self.opened.as_ref().map(|edge| edge.wall.time_of(window_start))
    }

    pub(super) fn clock_moved(&self) -> SignedDuration {
        self.edges().map_or(SignedDuration::ZERO, |(opened, closed)| opened.wall.moved_until(&closed.wall))
    }
}
