//! Responses that are streams of events (`text/event-stream`), on a schedule of their own: event k is due at a time that no
//! earlier one moves, however late it was sent. No I/O.

use crate::draw;
use crate::settings::EventSettings;
use experiment::topology::distribution::Distribution;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use std::time::Duration;

/// Text of events; it has no line break, which would end the line of data.
const TEXT: &[u8] = b"0123456789abcdef";

/// The bytes of a stream: before, for each, and after the events of its schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Frames {
    /// Sent with the head of the response.
    pub opening: Vec<u8>,
    pub event: Vec<u8>,
    /// Sent with the last event.
    pub closing: Vec<u8>,
}

impl Frames {
    /// Events of filler.
    pub(crate) fn filler(bytes: u64) -> Self {
        Self { event: event(&filler(bytes)), ..Self::default() }
    }

    /// Their size.
    pub(crate) fn bytes(&self) -> usize {
        self.opening.len() + self.event.len() + self.closing.len()
    }
}

/// This many bytes of text in one line.
pub(crate) fn filler(bytes: u64) -> Vec<u8> {
    TEXT.iter().copied().cycle().take(usize::try_from(bytes).unwrap_or(0)).collect()
}

/// An event with a line of data.
pub(crate) fn event(data: &[u8]) -> Vec<u8> {
    [b"data: ", data, b"\n\n"].concat()
}

/// The events of a response that are not sent.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    left: u64,
    /// Due time of the next one, nanoseconds since the start of the server.
    due_ns: u64,
    gap: Distribution,
    random: SmallRng,
}

impl Schedule {
    /// The events of a stream that begins at this time.
    pub(crate) fn new(settings: &EventSettings, begins_ns: u64, random: &mut SmallRng) -> Self {
        let mut random = SmallRng::from_rng(random);
        let due_ns = begins_ns.saturating_add(draw_ns(&settings.first, &mut random));
        Self { left: settings.count, due_ns, gap: settings.gap, random }
    }

    /// Due time of the next event; `None` after the last.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (self.left > 0).then_some(self.due_ns)
    }

    /// Takes the next event. Returns true if it was the last.
    pub(crate) fn take(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.due_ns = self.due_ns.saturating_add(draw_ns(&self.gap, &mut self.random));
        self.left == 0
    }
}

impl EventSettings {
    /// Time from the beginning to the last event.
    pub(crate) fn duration(&self, random: &mut SmallRng) -> Duration {
        let mut schedule = Schedule::new(self, 0, random);
        let mut last_ns = 0;
        while let Some(due_ns) = schedule.next_ns() {
            last_ns = due_ns;
            schedule.take();
        }
        Duration::from_nanos(last_ns)
    }
}

fn draw_ns(seconds: &Distribution, random: &mut SmallRng) -> u64 {
    u64::try_from(draw::time(seconds, random).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_due_on_an_absolute_schedule() {
        let settings = EventSettings {
            count: 3,
            first: Distribution::Fixed(0.05),
            gap: Distribution::Fixed(0.01),
            ..EventSettings::default()
        };
        let mut random = SmallRng::seed_from_u64(1);
        let mut schedule = Schedule::new(&settings, 7_000_000, &mut random);
        let due: Vec<_> = std::iter::from_fn(|| {
            let due_ns = schedule.next_ns()?;
            Some((due_ns / 1_000_000, schedule.take()))
        })
        .collect();
        assert_eq!(due, [(57, false), (67, false), (77, true)]);
        assert_eq!(settings.duration(&mut random), Duration::from_millis(70));
    }

    #[test]
    fn exponential_gaps_have_their_mean() {
        let gap = Distribution::Exponential { mean: 0.01 };
        let settings = EventSettings { count: 20_000, gap, ..EventSettings::default() };
        let whole_s = settings.duration(&mut SmallRng::seed_from_u64(1)).as_secs_f64();
        assert!((whole_s / 200.0 - 1.0).abs() < 0.03, "{whole_s} s");
    }

    #[test]
    fn event_is_one_line_of_data() {
        assert_eq!(Frames::filler(18).event, b"data: 0123456789abcdef01\n\n");
        assert_eq!(Frames::filler(0).event, b"data: \n\n");
    }
}
