//! Progress of a fleet on standard error: a live line on a terminal, plain lines otherwise, events for a
//! program.

use super::live::LiveFleet;
use crate::cli::ProgressStyle;
use crate::output::tell;
use indicatif::{ProgressBar, ProgressStyle as BarStyle};
use results::{ExportRecord, FleetProgress, FleetResult, FleetSecond};
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two lines of one phase.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);
const EVENT_INTERVAL: Duration = Duration::from_millis(250);
const LIVE_INTERVAL: Duration = Duration::from_millis(50);

pub struct FleetReporter {
    style: Style,
    /// Phase that was reported last, and when.
    last: Mutex<Option<(Phase, Instant)>>,
    live: Mutex<Option<LiveFleet>>,
}

/// A step of the run, and the number of the change.
type Phase = (&'static str, usize);

enum Style {
    Live(ProgressBar),
    Plain,
    Json,
    Off,
}

impl FleetReporter {
    pub fn new(style: ProgressStyle, live: Option<LiveFleet>) -> Self {
        let style = match style {
            ProgressStyle::Auto if std::io::stderr().is_terminal() => {
                let template = BarStyle::with_template("{spinner} {msg}").expect("the template is constant");
                Style::Live(ProgressBar::no_length().with_style(template))
            }
            ProgressStyle::Auto | ProgressStyle::Plain => Style::Plain,
            ProgressStyle::Json => Style::Json,
            ProgressStyle::Off => Style::Off,
        };
        Self { style, last: Mutex::new(None), live: Mutex::new(live) }
    }

    pub fn report(&self, event: &FleetProgress) {
        if let Some(live) = &*self.live.lock().unwrap_or_else(PoisonError::into_inner) {
            live.add(event);
        }
        let interval = match &self.style {
            Style::Off => return,
            Style::Json => EVENT_INTERVAL,
            Style::Live(_) => LIVE_INTERVAL,
            Style::Plain => PLAIN_INTERVAL,
        };
        let step = step(event);
        if step.as_ref().is_some_and(|(phase, is_last)| !self.is_due(*phase, *is_last, interval)) {
            return;
        }
        match (&self.style, text(event)) {
            (Style::Json, _) => tell!("{}", serde_json::to_string(event).expect("events have string keys")),
            (Style::Live(bar), Some(text)) => {
                bar.set_message(text);
                bar.tick();
            }
            (Style::Plain, Some(text)) => tell!("{text}"),
            _ => {}
        }
    }

    /// Removes the live line, and ends the live metrics with the result.
    pub fn finish(&self, result: Option<&FleetResult>) -> Vec<ExportRecord> {
        if let Style::Live(bar) = &self.style {
            bar.finish_and_clear();
        }
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        live.map(|live| live.finish(result)).unwrap_or_default()
    }

    fn is_due(&self, phase: Phase, is_last: bool, interval: Duration) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = is_last || last.is_none_or(|(known, at)| known != phase || at.elapsed() >= interval);
        if is_due {
            *last = Some((phase, Instant::now()));
        }
        is_due
    }
}

/// Phase of a frequent event, and whether this is its last one; `None` for events that are always reported.
fn step(event: &FleetProgress) -> Option<(Phase, bool)> {
    match event {
        FleetProgress::Writing { written, of } => Some((("writing", 0), written == of)),
        FleetProgress::Connecting { complete, of, .. } => Some((("connecting", 0), complete == of)),
        FleetProgress::Change { number, reached, expected, .. } => {
            Some((("change", *number), reached == expected))
        }
        _ => None,
    }
}

/// The event as a line for people.
fn text(event: &FleetProgress) -> Option<String> {
    match event {
        FleetProgress::Writing { written, of } => {
            Some(format!("writing the mesh: {written} of {of} requests"))
        }
        FleetProgress::Connecting { connected, complete, of } => {
            Some(format!("connecting: {connected} of {of} proxies connected, {complete} complete"))
        }
        FleetProgress::Change { kind, number, reached, expected } => {
            Some(format!("change {number}, {kind}: has reached {reached} of {expected} proxies"))
        }
        FleetProgress::Ask(_) => Some("waiting for the environment".to_owned()),
        FleetProgress::Removing => Some("removing the mesh".to_owned()),
        FleetProgress::WindowOpened | FleetProgress::Second(_) | FleetProgress::WindowClosed => None,
    }
}

/// Reports each second of a fleet once it has passed.
pub struct Seconds {
    last: fleet::FleetStatus,
}

impl Seconds {
    pub fn new() -> Self {
        Self { last: fleet::FleetStatus::default() }
    }

    pub fn report(&mut self, now: fleet::FleetStatus, reporter: &FleetReporter) {
        let start_s = self.last.seconds.floor();
        if now.seconds < start_s + 1.0 {
            return;
        }
        let second = FleetSecond {
            t_s: start_s,
            connected: now.connected,
            complete: now.complete,
            pushes: now.pushes.saturating_sub(self.last.pushes),
            bytes: now.bytes.saturating_sub(self.last.bytes),
        };
        reporter.report(&FleetProgress::Second(second));
        self.last = now;
    }
}
