//! Server-sent events of an open page. A thread per page looks at the files once per interval, and sends what is new; it ends with
//! the page's connection.
//!
//! The id of a trial's event is the place behind it in `trials.jsonl`. A browser that has lost its connection names the last id,
//! and gets the trials behind it: none twice, none left out. Other parts replace what the page has.

use super::folder::Folder;
use hyper::body::{Body, Bytes, Frame};
use jiff::Timestamp;
use report::html::view::{Part, last_part, now_parts, rows};
use report::watched::{Position, WatchedRun};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, channel};

/// Events that wait for a slow page; its thread waits with them.
const MAX_WAITING: usize = 2;

/// The events of a page, as the body of a response.
pub(super) struct Events(Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Events {
    /// Sends the result of `next` once per interval, until it is `None` or the page is closed.
    pub(super) fn start(
        interval: Duration,
        mut next: impl FnMut() -> Option<String> + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = channel(MAX_WAITING);
        let send = move || {
            while !sender.is_closed() {
                let Some(text) = next() else { return };
                if !text.is_empty() && sender.blocking_send(text.into()).is_err() {
                    return;
                }
                thread::sleep(interval);
            }
        };
        thread::Builder::new().name("follow".to_owned()).spawn(send)?;
        Ok(Self(receiver))
    }
}

/// Parts that a page has.
#[derive(Default)]
pub(super) struct SentParts(BTreeMap<&'static str, String>);

impl SentParts {
    /// Events of the parts that have changed.
    pub(super) fn changes(&mut self, parts: impl IntoIterator<Item = Part>) -> String {
        let mut events = String::new();
        for Part { name, html } in parts {
            if self.0.get(name) != Some(&html) {
                add_event(&mut events, &format!("part-{name}"), None, &html);
                self.0.insert(name, html);
            }
        }
        events
    }
}

/// A run that a page follows.
pub(super) struct FollowedRun {
    run: WatchedRun,
    /// Place behind the last trial that the page has.
    seen: Position,
    sent: SentParts,
    /// Number of trials of which the page has the charts.
    drawn: Option<usize>,
    is_over: bool,
}

impl FollowedRun {
    /// For a page that has the trials before `seen`.
    pub(super) fn after(seen: Position) -> Self {
        Self { run: WatchedRun::default(), seen, sent: SentParts::default(), drawn: None, is_over: false }
    }

    /// Events since the last call. After a replacement of the run's files, the page must be loaded anew.
    pub(super) fn next(&mut self, folder: &io::Result<Folder>) -> Option<String> {
        if self.is_over {
            return None;
        }
        self.run.refresh(&|name| match folder {
            Ok(folder) => folder.file(name),
            Err(error) => Err(error.kind().into()),
        });
        let mut events = String::new();
        if self.run.position.replaces(self.seen) && self.run.position != Position::default() {
            self.is_over = true;
            add_event(&mut events, "reset", None, "");
            return Some(events);
        }
        for (position, row) in self.run.rows.iter().filter(|(position, _)| position.is_after(self.seen)) {
            add_event(&mut events, "trial", Some(*position), &rows(std::iter::once(row)));
        }
        self.seen = self.run.rows.back().map_or(self.seen, |(position, _)| *position);
        events += &self.sent.changes(now_parts(&self.run, Timestamp::now()));
        if self.drawn != Some(self.run.trials) {
            self.drawn = Some(self.run.trials);
            events += &self.sent.changes([last_part(&self.run)]);
        }
        Some(events)
    }
}

fn add_event(events: &mut String, name: &str, id: Option<Position>, html: &str) {
    let _ = writeln!(events, "event: {name}");
    if let Some(id) = id {
        let _ = writeln!(events, "id: {id}");
    }
    // A carriage return would end a line as well.
    for line in html.split(['\n', '\r']).filter(|line| !line.is_empty()) {
        let _ = writeln!(events, "data: {line}");
    }
    events.push_str(if html.is_empty() { "data:\n\n" } else { "\n" });
}
