//! Lines of a process, kept in its pod until a client has read them. Memory is bounded by dropping the oldest
//! details; other lines, such as the events of a generator, are never dropped.

use std::collections::VecDeque;

/// Maximum size of the details kept.
const MAX_DETAIL_BYTES: usize = 16 << 20;
/// Size from which a batch gets no further line: clients limit the size of a response.
const BATCH_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    kept: VecDeque<Line>,
    /// Number of lines so far, dropped ones included.
    count: usize,
    detail_bytes: usize,
}

#[derive(Debug)]
struct Line {
    number: usize,
    text: String,
    is_detail: bool,
}

/// Lines from a given number on.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Batch {
    pub lines: Vec<String>,
    /// Number from which to continue.
    pub next: usize,
    /// True if no lines follow so far.
    pub is_last: bool,
}

impl Line {
    fn detail_bytes(&self) -> usize {
        if self.is_detail { size_of::<Self>() + self.text.len() } else { 0 }
    }
}

impl Lines {
    pub fn push(&mut self, text: String, is_detail: bool) {
        let line = Line { number: self.count, text, is_detail };
        self.count += 1;
        self.detail_bytes += line.detail_bytes();
        self.kept.push_back(line);
        while self.detail_bytes > MAX_DETAIL_BYTES {
            let oldest = self.kept.iter().position(|line| line.is_detail);
            let Some(dropped) = oldest.and_then(|place| self.kept.remove(place)) else { return };
            self.detail_bytes -= dropped.detail_bytes();
        }
    }

    /// Forgets the lines before this number, which the only client has read.
    pub fn forget_before(&mut self, number: usize) {
        while let Some(read) = self.kept.pop_front_if(|line| line.number < number) {
            self.detail_bytes -= read.detail_bytes();
        }
    }

    pub fn batch(&self, from: usize) -> Batch {
        let begin = self.kept.partition_point(|line| line.number < from);
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for line in self.kept.range(begin..) {
            if bytes >= BATCH_BYTES {
                return Batch { lines, next: line.number, is_last: false };
            }
            bytes += line.text.len();
            lines.push(line.text.clone());
        }
        Batch { lines, next: self.count, is_last: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers and texts of all lines, read as a client reads them.
    fn read(lines: &Lines) -> Vec<String> {
        let (mut read, mut from) = (Vec::new(), 0);
        loop {
            let Batch { lines, next, is_last } = lines.batch(from);
            read.extend(lines);
            from = next;
            if is_last {
                return read;
            }
        }
    }

    #[test]
    fn events_outlive_any_number_of_details() {
        let mut lines = Lines::default();
        lines.push("opened".to_owned(), false);
        for number in 0..300_000 {
            lines.push(format!("second {number} {}", "x".repeat(100)), true);
        }
        lines.push("closed".to_owned(), false);
        let read = read(&lines);
        assert_eq!([read[0].as_str(), read[read.len() - 1].as_str()], ["opened", "closed"]);
        assert!(read[read.len() - 2].starts_with("second 299999 "), "the newest details are kept");
        let bytes: usize = read.iter().map(String::len).sum();
        assert!((MAX_DETAIL_BYTES / 2..=MAX_DETAIL_BYTES).contains(&bytes), "{bytes}");
    }

    #[test]
    fn batches_are_bounded_and_continue_where_they_ended() {
        let mut lines = Lines::default();
        (0..5).for_each(|number| lines.push(format!("{number}{}", "x".repeat(BATCH_BYTES / 2)), false));
        let first = lines.batch(0);
        assert_eq!((first.lines.len(), first.next, first.is_last), (2, 2, false));
        assert_eq!(read(&lines).len(), 5);
        assert_eq!(lines.batch(5), Batch { lines: vec![], next: 5, is_last: true });
    }

    #[test]
    fn read_lines_are_forgotten() {
        let mut lines = Lines::default();
        ["a", "b", "c"].iter().for_each(|line| lines.push((*line).to_owned(), true));
        lines.forget_before(2);
        assert_eq!(lines.batch(0), Batch { lines: vec!["c".to_owned()], next: 3, is_last: true });
        lines.forget_before(3);
        assert_eq!((lines.kept.len(), lines.detail_bytes), (0, 0));
    }
}
