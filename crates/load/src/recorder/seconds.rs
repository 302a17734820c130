//! The seconds of one worker: the current one, and those finished that are handed over.

use super::Recorder;
use crate::clock::{Nanos, SECOND};
use crate::second::SecondCounts;
use std::mem;

impl Recorder {
    /// The schedule starts: earlier events belong to no second, and earlier errors lie before the window.
    pub(crate) fn start_seconds(&mut self) {
        self.errors.start();
        self.finished.clear();
        self.second.clear();
        self.second.index = 0;
    }

    /// Finishes the current second if another one has begun. What comes after the window is in no second of it, even if the
    /// window ends within one.
    pub(super) fn enter_second(&mut self, now: Nanos) {
        let index = now.saturating_sub(self.window_start) / SECOND;
        let of_window = self.window_end.saturating_sub(self.window_start).div_ceil(SECOND);
        let is_after = now > self.window_end;
        self.begin_second(if is_after {
            index.max(of_window)
        } else {
            index.min(of_window.saturating_sub(1))
        });
    }

    fn begin_second(&mut self, index: u64) {
        if index > self.second.index {
            let mut next =
                self.spare.take().unwrap_or_else(|| SecondCounts::new(index, self.second.detail.is_some()));
            next.index = index;
            let begin = self.window_start + self.second.index * SECOND;
            self.second.length = self.window_end.saturating_sub(begin).min(SECOND);
            self.finished.push(mem::replace(&mut self.second, next));
        }
    }

    /// Returns the seconds that are finished at `now`. `connections_open`: at this time.
    pub(crate) fn take_seconds(&mut self, now: Nanos, connections_open: usize) -> Vec<SecondCounts> {
        self.enter_second(now);
        self.take_finished(connections_open)
    }

    fn take_finished(&mut self, connections_open: usize) -> Vec<SecondCounts> {
        if let Some(last) = self.finished.last_mut() {
            last.connections_open = connections_open;
        }
        mem::take(&mut self.finished)
    }

    /// Returns the last second, too: nothing more will be recorded.
    pub(crate) fn take_last_seconds(&mut self, connections_open: usize) -> Vec<SecondCounts> {
        self.begin_second(self.second.index + 1);
        self.take_finished(connections_open)
    }

    /// Takes back a second that was handed out, cleared, to reuse its memory.
    pub(crate) fn reuse(&mut self, second: SecondCounts) {
        self.spare = Some(second);
    }
}
