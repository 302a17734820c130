//! Progress of a load on standard error: a live line on a terminal, plain lines otherwise, events for a
//! program.

use crate::cli::ProgressStyle;
use crate::output::tell;
use indicatif::{ProgressBar, ProgressStyle as BarStyle};
use load::{LoadSpec, Observer, Progress, ScheduleSpec, Second};
use results::{LatencyHistogram, LoadEvent, SecondDetail, SeriesPoint};
use std::io::IsTerminal as _;

/// Plain lines come every second at first, then at this interval.
const PLAIN_INTERVAL_S: u64 = 10;

/// Shows the progress of one run of the generator.
pub struct LoadProgress {
    style: Style,
    /// `None` if a number of requests ends the window rather than time.
    duration_s: Option<f64>,
    failed: u64,
    /// True if events have all details of each second.
    with_detail: bool,
}

enum Style {
    Bar(ProgressBar),
    Plain,
    Json,
    Off,
}

impl LoadProgress {
    /// Progress of one run.
    pub fn new(style: ProgressStyle, spec: &LoadSpec) -> Self {
        let duration_s = match spec.schedule {
            ScheduleSpec::Closed { requests: Some(_), .. } => None,
            _ => Some(spec.duration.as_secs_f64()),
        };
        let style = match style {
            ProgressStyle::Auto if std::io::stderr().is_terminal() => Style::Bar(bar(duration_s)),
            ProgressStyle::Auto | ProgressStyle::Plain => Style::Plain,
            ProgressStyle::Json => Style::Json,
            ProgressStyle::Off => Style::Off,
        };
        Self { style, duration_s, failed: 0, with_detail: false }
    }

    /// Sets whether events have all details of each second.
    pub fn with_detail(self, with_detail: bool) -> Self {
        Self { with_detail, ..self }
    }

    /// Removes the live line.
    pub fn finish(&self) {
        if let Style::Bar(bar) = &self.style {
            bar.finish_and_clear();
        }
    }

    fn tell(&mut self, text: &str) {
        match &self.style {
            Style::Bar(bar) => bar.set_message(text.to_owned()),
            Style::Plain => tell!("{text}"),
            Style::Json | Style::Off => {}
        }
    }

    fn second(&mut self, point: &SeriesPoint) {
        self.failed += point.failed;
        let elapsed_s = point.t_s as u64 + 1;
        if let Style::Bar(bar) = &self.style {
            bar.set_position(elapsed_s);
        } else if elapsed_s > PLAIN_INTERVAL_S && !elapsed_s.is_multiple_of(PLAIN_INTERVAL_S) {
            return;
        }
        let text = format!("{}  {} failed", second_text(point), self.failed);
        match self.style {
            Style::Plain => {
                let of = self.duration_s.map_or_else(String::new, |duration_s| format!("/{duration_s:.0}"));
                self.tell(&format!("{elapsed_s:>4}{of} s  {text}"));
            }
            _ => self.tell(&text),
        }
    }
}

impl Observer for LoadProgress {
    fn progress(&mut self, progress: Progress<'_>) {
        if let Style::Json = self.style {
            tell_event(&event(progress));
            if let Progress::Second(second) = progress
                && self.with_detail
            {
                tell_event(&LoadEvent::SecondDetail(Box::new(detail(second))));
            }
            return;
        }
        match progress {
            Progress::Waiting => self.tell("waiting for the agreed start"),
            Progress::Connecting => self.tell("connecting"),
            Progress::Ready => self.tell("ready: waiting for the agreed start"),
            Progress::WarmingUp => self.tell("warming up"),
            Progress::WindowOpened => self.tell("measuring"),
            Progress::Second(second) => self.second(&second.point),
            // An error says why it ends.
            Progress::StartMissed | Progress::WindowClosed => {}
        }
    }
}

fn tell_event(event: &LoadEvent) {
    tell!("{}", serde_json::to_string(event).expect("events have string keys"));
}

fn detail(second: &Second) -> SecondDetail {
    let encoded =
        |histogram: Option<&LatencyHistogram>| histogram.map(LatencyHistogram::encode).unwrap_or_default();
    SecondDetail {
        sent: second.point.sent,
        completed: second.point.completed,
        failed: second.point.failed,
        due: second.due,
        errors: second.errors.iter().map(|(kind, count)| (kind.name().to_owned(), *count)).collect(),
        statuses: second.statuses.iter().map(|(code, count)| (code.to_string(), *count)).collect(),
        bytes_sent: second.bytes_sent,
        bytes_received: second.bytes_received,
        connections_open: second.connections_open,
        response_time_us: encoded(Some(&second.response_time)),
        service_time_us: encoded(second.detail.as_ref().map(|detail| &detail.service_time)),
        schedule_lag_us: encoded(second.detail.as_ref().map(|detail| &detail.schedule_lag)),
    }
}

fn event(progress: Progress<'_>) -> LoadEvent {
    match progress {
        Progress::Waiting => LoadEvent::Waiting,
        Progress::Connecting => LoadEvent::Connecting,
        Progress::Ready => LoadEvent::Ready,
        Progress::StartMissed => LoadEvent::StartMissed,
        Progress::WarmingUp => LoadEvent::WarmingUp,
        Progress::WindowOpened => LoadEvent::WindowOpened,
        Progress::Second(second) => LoadEvent::Second(second.point),
        Progress::WindowClosed => LoadEvent::WindowClosed,
    }
}

/// `998/s  p50 0.214 ms  p99 0.803 ms`.
fn second_text(point: &SeriesPoint) -> String {
    let time = |us: Option<f64>| {
        us.map_or_else(|| report::format::above(None), |us| format!("{:.3} ms", us / 1000.0))
    };
    format!("{}/s  p50 {}  p99 {}", point.completed, time(point.p50_us), time(point.p99_us))
}

fn bar(duration_s: Option<f64>) -> ProgressBar {
    let Some(duration_s) = duration_s else {
        let style = BarStyle::with_template("{spinner} {pos} s  {msg}").expect("the template is constant");
        return ProgressBar::no_length().with_style(style);
    };
    let style = BarStyle::with_template("{bar:20} {pos}/{len} s  {msg}").expect("the template is constant");
    ProgressBar::new(duration_s.ceil() as u64).with_style(style)
}
