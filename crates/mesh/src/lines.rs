//! Lines that a process writes, whatever their bytes and their length.

use std::io::{self, BufRead};

/// Maximum size of a line. The rest of a longer one is dropped.
pub const MAX_LINE_BYTES: usize = 256 << 10;

/// Passes on each line until the output ends or cannot be read. Bytes that are not UTF-8 are replaced.
pub fn each_line(mut output: impl BufRead, mut take: impl FnMut(String)) {
    let mut line = Vec::new();
    while read_line(&mut output, &mut line).is_ok_and(|is_line| is_line) {
        take(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned());
    }
}

/// Replaces `line` by the next one. Returns false at the end.
fn read_line(output: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut has_begun = false;
    loop {
        let bytes = match output.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if bytes.is_empty() {
            return Ok(has_begun);
        }
        has_begun = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(MAX_LINE_BYTES - line.len())]);
        let used = end.map_or(bytes.len(), |end| end + 1);
        output.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines(output: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        each_line(BufReader::with_capacity(5, output), |line| lines.push(line));
        lines
    }

    #[test]
    fn lines_of_any_bytes_are_passed_on() {
        assert_eq!(lines(b"one\r\n\n\xff\xfetwo\nlast"), ["one", "", "\u{fffd}\u{fffd}two", "last"]);
        assert_eq!(lines(b""), [""; 0]);
    }

    #[test]
    fn long_lines_are_cut() {
        let output = [&vec![b'x'; 3 * MAX_LINE_BYTES][..], b"\nnext\n"].concat();
        let lines = lines(&output);
        assert_eq!((lines[0].len(), lines[1].as_str(), lines.len()), (MAX_LINE_BYTES, "next", 2));
    }
}
