//! Folds the text of `perf script`: samples with the same stack become a line, `frame;frame;frame` from the outermost to the
//! innermost frame, with their number.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

/// Frames of a stack that are kept, the innermost ones.
const MAX_FRAMES: usize = 128;
/// Distinct stacks of a process that are kept.
const MAX_STACKS: usize = 100_000;
/// Maximum length of a frame, characters. Names of C++ templates may have kilobytes.
const MAX_FRAME_LENGTH: usize = 300;
/// Maximum length of a line, bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Stacks by process. The outermost frame is the thread's name.
pub(crate) type Folded = BTreeMap<i32, BTreeMap<String, u64>>;

/// Reads the output of `perf script -F comm,pid,ip,sym,dso`: a line with a thread and its process, a line per frame from the
/// innermost, and an empty line. Lines of other forms are left out.
///
/// # Errors
/// Returns an error if the text cannot be read, has more than `max_bytes`, or has a line of more than 1 MiB.
pub(crate) fn fold(mut text: impl BufRead, max_bytes: u64) -> io::Result<Folded> {
    let too_long = |what: &str, bytes: u64| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{what} is longer than {bytes} bytes"))
    };
    let mut bytes_left = max_bytes;
    let mut folded = Folded::new();
    let mut sample: Option<(i32, String)> = None;
    let mut frames = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = text.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)? as u64;
        if read > MAX_LINE_BYTES {
            return Err(too_long("a line", MAX_LINE_BYTES));
        }
        bytes_left = bytes_left.checked_sub(read).ok_or_else(|| too_long("the output", max_bytes))?;
        let is_end = read == 0;
        let text = String::from_utf8_lossy(&line);
        match text.trim() {
            "" => {
                if let Some((process, thread)) = sample.take() {
                    add(&mut folded, process, &thread, &frames);
                }
                frames.clear();
                if is_end {
                    return Ok(folded);
                }
            }
            frame if text.starts_with([' ', '\t']) && sample.is_some() => {
                if frames.len() < MAX_FRAMES {
                    frames.push(name(frame));
                }
            }
            header => sample = sample_of(header),
        }
    }
}

/// Process and name of a thread; the name may contain spaces.
fn sample_of(header: &str) -> Option<(i32, String)> {
    let (thread, process) = header.rsplit_once(char::is_whitespace)?;
    Some((process.parse().ok()?, plain(thread.trim())))
}

/// `7f12 symbol+0x10 (/path/of/the/program)`: the symbol, or without one `[program]`.
fn name(frame: &str) -> String {
    let frame = frame.replace(" (deleted))", ")");
    let rest = frame.split_once(' ').map_or("", |(_, rest)| rest);
    let (symbol, object) = match rest.rsplit_once(" (") {
        Some((symbol, object)) => (symbol, object.trim_end_matches(')')),
        None => (rest, ""),
    };
    if !symbol.is_empty() && symbol != "[unknown]" {
        return plain(symbol);
    }
    let object = object.rsplit('/').next().unwrap_or_default().trim_matches(['[', ']']);
    format!("[{}]", plain(if object.is_empty() { "unknown" } else { object }))
}

/// Without what separates frames and lines.
fn plain(text: &str) -> String {
    let letter = |letter: char| match letter {
        ';' => ':',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    text.chars().take(MAX_FRAME_LENGTH).map(letter).collect()
}

fn add(folded: &mut Folded, process: i32, thread: &str, frames: &[String]) {
    let mut stack = thread.to_owned();
    let mut last = "";
    for frame in frames.iter().rev() {
        // Consecutive frames of a program without symbols say the same.
        if !(frame.starts_with('[') && frame == last) {
            stack.push(';');
            stack.push_str(frame);
        }
        last = frame;
    }
    let stacks = folded.entry(process).or_default();
    if stacks.len() < MAX_STACKS || stacks.contains_key(&stack) {
        *stacks.entry(stack).or_default() += 1;
    }
}

/// Folds a text and checks that each sample counts once, and that lines and frames can be told apart. For fuzzing.
///
/// # Panics
/// Panics if that does not hold.
pub fn check_perf_script(input: &[u8]) {
    // Nothing else fails on a slice than a line beyond the limit.
    let Ok(folded) = fold(input, u64::MAX) else { return };
    let samples: u64 = folded.values().flat_map(BTreeMap::values).sum();
    let text = String::from_utf8_lossy(input);
    assert!(samples as usize <= text.lines().filter(|line| !line.trim().is_empty()).count());
    for stack in folded.values().flat_map(BTreeMap::keys) {
        assert!(!stack.contains(char::is_control) && stack.split(';').count() <= MAX_FRAMES + 1, "{stack:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Recorded with perf 6.1: a Python program with frames of the kernel, an Envoy without symbols, a Go program.
    const RECORDED: &str = include_str!("../../../../fuzz/corpus/perf_script/recorded");

    #[test]
    fn recorded_samples_become_stacks_from_the_outermost_frame() {
        let folded = fold(RECORDED.as_bytes(), RECORDED.len() as u64).unwrap();
        let text: Vec<String> = folded
            .iter()
            .flat_map(|(process, stacks)| {
                stacks.iter().map(move |(stack, count)| format!("{process} {stack} {count}"))
            })
            .collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn endless_output_and_endless_line_are_errors() {
        let error =
            |byte, max_bytes| fold(BufReader::new(io::repeat(byte)), max_bytes).unwrap_err().to_string();
        assert_eq!(error(b'\n', 1000), "the output is longer than 1000 bytes");
        assert_eq!(error(b'x', u64::MAX), format!("a line is longer than {MAX_LINE_BYTES} bytes"));
    }
}
