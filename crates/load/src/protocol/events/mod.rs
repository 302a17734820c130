//! Server-sent events in the content of a response (WHATWG HTML, 9.2): where each ends, and whether it carries content.
//!
//! [`EventScanner`] takes content split at any positions. An event ends with its blank line; the arrival of that line is
//! the time of the event. Comments, events without data, and events that only control a stream of tokens (`content`) are
//! skipped, so that the first event is the first token.

mod content;

use crate::error::ErrorKind;
use content::Kind;

/// Maximum size of a line, and of the data of an event, that is kept to see what it carries. Longer data is content.
const MAX_KEPT_BYTES: usize = 16 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Counts the events with content in a stream. Keeps at most one event, up to a bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventScanner {
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// The line has more than is kept.
    is_line_cut: bool,
    /// Data of the current event: each line ends with a line feed.
    data: Vec<u8>,
    /// The data has more than is kept.
    is_data_cut: bool,
    /// The last byte was a carriage return: a line feed after it belongs to it.
    after_return: bool,
    /// A line was read: no byte order mark follows.
    begun: bool,
    /// Frames of a model's tokens were seen, and not yet the frame that ends their stream.
    awaits_end: bool,
}

impl EventScanner {
    /// Resets the state for a new stream.
    pub(crate) fn begin(&mut self) {
        let (mut line, mut data) = (std::mem::take(&mut self.line), std::mem::take(&mut self.data));
        line.clear();
        data.clear();
        *self = Self { line, data, ..Self::default() };
    }

    /// Consumes content. Returns how many events with content end in it.
    pub(crate) fn receive(&mut self, content: &[u8]) -> u32 {
        let (mut rest, mut events) = (content, 0);
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.keep(rest);
                break;
            };
            self.after_return = rest[end] == b'\r';
            events += u32::from(self.line_ended(&rest[..end]));
            rest = &rest[end + 1..];
        }
        events
    }

    /// The stream has ended. `is_framed`: the response says so, rather than the end of the connection. Fails if it was cut:
    /// an event is incomplete, or a stream of tokens without a frame lacks its end.
    pub(crate) fn ended(&mut self, is_framed: bool) -> Result<(), ErrorKind> {
        if !self.line.is_empty() {
            self.line_ended(b"");
        }
        match self.kind() {
            Kind::Done => Ok(()),
            Kind::Empty if self.awaits_end && !is_framed => Err(ErrorKind::Closed),
            Kind::Empty => Ok(()),
            Kind::Content | Kind::Control => Err(ErrorKind::EventCut),
        }
    }

    fn keep(&mut self, part: &[u8]) {
        let step = part.len().min(MAX_KEPT_BYTES - self.line.len());
        self.line.extend_from_slice(&part[..step]);
        self.is_line_cut |= step < part.len();
    }

    /// A line is complete with these bytes. Returns true if it ends an event with content.
    fn line_ended(&mut self, last_part: &[u8]) -> bool {
        if self.line.is_empty() && last_part.len() <= MAX_KEPT_BYTES {
            return self.read_line(last_part, false);
        }
        self.keep(last_part);
        let mut line = std::mem::take(&mut self.line);
        let is_event = self.read_line(&line, self.is_line_cut);
        line.clear();
        (self.line, self.is_line_cut) = (line, false);
        is_event
    }

    fn read_line(&mut self, line: &[u8], is_cut: bool) -> bool {
        let line = if self.begun { line } else { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) };
        self.begun = true;
        if line.is_empty() {
            return self.dispatch();
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[][..],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return false,
        };
        if is_cut || self.data.len() + value.len() >= MAX_KEPT_BYTES {
            self.is_data_cut = true;
        } else {
            self.data.extend_from_slice(value);
            self.data.push(b'\n');
        }
        false
    }

    /// The current event is complete. Returns true if it carries content.
    fn dispatch(&mut self) -> bool {
        let kind = self.kind();
        self.data.clear();
        self.is_data_cut = false;
        kind == Kind::Content
    }

    /// The data of the current event by kind.
    fn kind(&mut self) -> Kind {
        if self.is_data_cut {
            return Kind::Content;
        }
        let data = self.data.strip_suffix(b"\n").unwrap_or_default();
        let (kind, awaits_end) = content::kind(data);
        self.awaits_end = awaits_end.unwrap_or(self.awaits_end);
        kind
    }
}

#[cfg(test)]
mod tests;
