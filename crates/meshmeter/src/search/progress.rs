//! Progress of a search on standard error: one line per probe, with a live line below on a terminal, or
//! events for a program.

use crate::cli::ProgressStyle;
use crate::output::tell;
use indicatif::{ProgressBar, ProgressStyle as BarStyle};
use load::{Observer, Progress};
use report::format;
use results::{ProbeRecord, SearchEvent};
use statistics::search::Phase;
use std::io::IsTerminal as _;
use std::time::Duration;

/// Shows the progress of a search. As an observer it shows the current probe.
pub struct SearchProgress {
    style: Style,
}

enum Style {
    Live(ProgressBar),
    Plain,
    Json,
    Off,
}

impl SearchProgress {
    /// Progress of one search.
    pub fn new(style: ProgressStyle) -> Self {
        let style = match style {
            ProgressStyle::Auto if std::io::stderr().is_terminal() => Style::Live(ProgressBar::hidden()),
            ProgressStyle::Auto | ProgressStyle::Plain => Style::Plain,
            ProgressStyle::Json => Style::Json,
            ProgressStyle::Off => Style::Off,
        };
        Self { style }
    }

    /// Announces a probe.
    pub fn started(&mut self, probe: usize, phase: Phase, rate: Option<f64>, window: Duration) {
        match &mut self.style {
            Style::Live(bar) => {
                let style = BarStyle::with_template("{prefix}  {bar:20} {pos}/{len} s  {msg}");
                *bar = ProgressBar::new(window.as_secs_f64().ceil() as u64)
                    .with_style(style.expect("the template is constant"))
                    .with_prefix(title(probe, phase.name(), rate));
            }
            Style::Json => event(&SearchEvent::ProbeStarted {
                probe,
                phase: phase.name().to_owned(),
                rate,
                duration_s: window.as_secs_f64(),
            }),
            Style::Plain | Style::Off => {}
        }
    }

    /// Reports a completed probe.
    pub fn ended(&mut self, probe: usize, record: &ProbeRecord) {
        match &self.style {
            Style::Live(bar) => {
                bar.finish_and_clear();
                tell!("{}", probe_text(probe, record));
            }
            Style::Plain => tell!("{}", probe_text(probe, record)),
            Style::Json => event(&SearchEvent::ProbeEnded {
                probe,
                outcome: record.outcome.clone(),
                reason: record.reason.clone(),
                bounds: record.result.objective.clone().unwrap_or_default().bounds,
                completed_rate: record.result.rate.completed,
            }),
            Style::Off => {}
        }
    }
}

impl Observer for SearchProgress {
    fn progress(&mut self, progress: Progress<'_>) {
        let Progress::Second(second) = progress else { return };
        match &self.style {
            Style::Live(bar) => {
                bar.set_position(second.point.t_s as u64 + 1);
                bar.set_message(format!("p99 {}", format::time_or_above(second.point.p99_us, None)));
            }
            Style::Json => event(&SearchEvent::Second(second.point)),
            Style::Plain | Style::Off => {}
        }
    }
}

/// ` 5  bisection       1234/s`.
fn title(probe: usize, phase: &str, rate: Option<f64>) -> String {
    let rate = rate.map_or_else(|| "closed loop".to_owned(), |rate| format!("{rate}/s"));
    format!("{probe:>3}  {phase:<12} {rate:>11}")
}

fn probe_text(probe: usize, record: &ProbeRecord) -> String {
    let title = title(probe, &record.phase, record.rate);
    let Some(outcome) = &record.outcome else {
        let reason = if record.reason.is_empty() { "" } else { &record.reason };
        return format!("{title}  {:.0}/s completed  {reason}", record.result.rate.completed)
            .trim_end()
            .to_owned();
    };
    let result = &record.result;
    let p99 = format::time_or_above(result.response_time_us.p99, result.censored_above_us);
    let because = if record.reason.is_empty() { String::new() } else { format!(": {}", record.reason) };
    format!("{title}  p99 {p99:>9}  {outcome}{because}")
}

fn event(event: &SearchEvent) {
    tell!("{}", serde_json::to_string(event).expect("events have string keys and finite numbers"));
}
