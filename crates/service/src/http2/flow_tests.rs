//! Connections in turns, with a client that does not read, or does not send.

use super::*;
use crate::counters::Tally;
use crate::settings::Settings;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Maximum flow-control window.
const MAX_WINDOW: u32 = (1 << 31) - 1;

/// A connection and its client, whose windows have no limit.
struct Wired {
    client: UnixStream,
    server: Http2,
    shared: Shared,
    next_stream: u32,
    /// Read from the server, and not looked at.
    read: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl Wired {
    fn new() -> Self {
        let (server, mut client) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        client.set_nonblocking(true).unwrap();
        let settings = Settings::new("127.0.0.1:0".parse().unwrap());
        let tallies: Arc<[Arc<Tally>]> = [Arc::default()].into();
        let mut shared = Shared::new(&settings, 0, &tallies, Instant::now(), None);
        let server = Http2::new(Transport::new(server.into(), None), Vec::new(), &mut shared);
        let stream_window = [&[0, 4][..], &MAX_WINDOW.to_be_bytes()].concat();
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let window = frame(WINDOW_UPDATE, 0, 0, &(MAX_WINDOW - 65_535).to_be_bytes());
        client.write_all(&[preface, frame(SETTINGS, 0, 0, &stream_window), window].concat()).unwrap();
        Self { client, server, shared, next_stream: 1, read: Vec::new() }
    }

    /// Begins a request; returns its stream.
    fn ask(&mut self, is_post: bool, path: &str) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        // Fields of the static table, and two with a value of their own (RFC 7541, 6.1 and 6.2.2).
        let method = if is_post { 0x83 } else { 0x82 };
        let length = u8::try_from(path.len()).unwrap();
        let fields = [&[method, 0x86, 0x01, 1, b'a', 0x04, length][..], path.as_bytes()].concat();
        let flags = END_HEADERS | if is_post { 0 } else { END_STREAM };
        self.client.write_all(&frame(HEADERS, flags, stream, &fields)).unwrap();
        stream
    }

    /// Runs turns until the server waits for the client or for a later time.
    fn settle(&mut self) {
        self.server.has_input(false);
        loop {
            match self.server.turn(&mut self.shared) {
                Turn::Again => {}
                Turn::WaitUntil(due_ns) if due_ns <= self.shared.now_ns() => {}
                Turn::Wait | Turn::WaitUntil(_) => return,
                Turn::Close => panic!("the connection is over"),
            }
        }
    }

    /// Frames that the client has received since the last call: kind, stream and content of each.
    fn frames(&mut self) -> Vec<(u8, u32, Vec<u8>)> {
        let end = self.client.read_to_end(&mut self.read).expect_err("the connection is open");
        assert_eq!(end.kind(), ErrorKind::WouldBlock);
        let mut frames = Vec::new();
        while let Some((head, rest)) = self.read.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = rest.get(..length) else { break };
            frames.push((
                head[3],
                u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
                payload.to_vec(),
            ));
            self.read.drain(..9 + length);
        }
        frames
    }
}

/// One of these tests at a time: the memory of one is measured, and another takes 64 MiB.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of this process, bytes.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * rustix::param::page_size()
}

#[test]
fn streams_that_are_not_read_take_little_memory() {
    const STREAMS: usize = 200;
    let _turn = alone();
    let mut wired = Wired::new();
    wired.settle();
    let before = resident_bytes();
    (0..STREAMS).for_each(|_| _ = wired.ask(false, "/?events=1000000&event-bytes=8"));
    wired.settle();
    let taken = resident_bytes().saturating_sub(before);
    // Tests of other modules take some, too.
    assert!(taken < STREAMS * 256 * 1024, "{taken} bytes");
    let held = context::MAX_HELD_BYTES - wired.shared.http2.free_bytes.load(Relaxed);
    assert_eq!(held, STREAMS * "data: 01234567\n\n".len());
    // A client that reads gets all of them.
    let mut events = 0;
    while events < 10_000 {
        let frames = wired.frames();
        assert!(!frames.is_empty(), "{events} events came");
        events += frames.iter().filter(|(kind, ..)| *kind == DATA).count();
        wired.settle();
    }
}

#[test]
fn head_of_a_stream_does_not_wait_for_events() {
    let mut wired = Wired::new();
    wired.settle();
    wired.frames();
    wired.ask(false, "/?events=1000000");
    wired.server.has_input(false);
    let mut kinds = Vec::new();
    while !kinds.contains(&HEADERS) {
        wired.server.turn(&mut wired.shared);
        kinds.extend(wired.frames().iter().map(|(kind, ..)| *kind));
    }
    assert!(!kinds.contains(&DATA), "{kinds:?}");
    wired.settle();
    assert!(wired.frames().iter().any(|(kind, ..)| *kind == DATA));
}

#[test]
fn bodies_of_chat_completions_are_bounded_together() {
    const PART: usize = 16 * 1024;
    let _turn = alone();
    let mut wired = Wired::new();
    // The server's windows are smaller until its settings are acknowledged.
    wired.client.write_all(&frame(SETTINGS, 1, 0, b"")).unwrap();
    wired.settle();
    let refused = "too many unfinished requests and unsent answers";
    // 16 of 4 MiB are the maximum.
    for number in 0..17 {
        let stream = wired.ask(true, "/v1/chat/completions");
        for part in 1..=256 {
            wired.client.write_all(&frame(DATA, 0, stream, &[b' '; PART])).unwrap();
            if part % 8 == 0 {
                wired.settle();
                wired.frames();
            }
        }
        if number == 16 {
            wired.client.write_all(&frame(DATA, END_STREAM, stream, b"")).unwrap();
            wired.settle();
            let is_refused = |(kind, of, content): &(u8, u32, Vec<u8>)| {
                (*kind, *of) == (DATA, stream) && String::from_utf8_lossy(content).contains(refused)
            };
            assert!(wired.frames().iter().any(is_refused));
        }
    }
}
