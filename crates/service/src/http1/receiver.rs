//! Splits the bytes of a connection into requests, however they arrive: no I/O. A request is whatever its
//! connection makes of its head.

use super::request::Request;
use crate::settings::Answer;
use ::http1::{Body, Framing, Rejection, parse_request};

/// Parser state of a connection.
#[derive(Debug, Default)]
pub(crate) enum Receiver<R> {
    #[default]
    Head,
    Body {
        request: R,
        body: Body,
    },
}

/// Result of a step.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<R> {
    /// More bytes are needed.
    More,
    /// The client expects `100 Continue`.
    Continue,
    /// A request is complete.
    Request(R),
}

/// A request whose body is being received.
pub(crate) trait TakeContent {
    /// Takes a piece of the body; discards it unless the request needs it.
    fn take_content(&mut self, _content: &[u8]) {}
}

impl Receiver<Request> {
    /// Bytes of memory held for a request.
    pub(crate) fn held_bytes(&self) -> usize {
        if let Self::Body { request, .. } = self { request.reply.held_bytes() } else { 0 }
    }

    /// [`Self::advance_with`] for a request that is answered by these settings.
    pub(crate) fn advance(
        &mut self,
        input: &[u8],
        defaults: &Answer,
    ) -> (usize, Result<Step<Request>, Rejection>) {
        self.advance_with(input, |parsed, framing| Request::new(parsed, framing, defaults))
    }
}

impl<R: TakeContent> Receiver<R> {
    /// True if a head was read and its body is incomplete.
    pub(crate) fn is_within_request(&self) -> bool {
        matches!(self, Self::Body { .. })
    }

    /// Runs one step and returns how many bytes of `input` it used. The rest must be passed again, with more
    /// appended after [`Step::More`]. After a rejection nothing more can be read.
    pub(crate) fn advance_with(
        &mut self,
        input: &[u8],
        understand: impl FnOnce(&httparse::Request<'_, '_>, &Framing) -> R,
    ) -> (usize, Result<Step<R>, Rejection>) {
        let mut used = 0;
        if !self.is_within_request() {
            let parsed = parse_request(input, |parsed, framing| (understand(parsed, &framing), framing));
            let (request, framing) = match parsed {
                Ok(None) => return (0, Ok(Step::More)),
                Ok(Some((length, head))) => {
                    used = length;
                    head
                }
                Err(rejection) => return (0, Err(rejection)),
            };
            if framing.body.is_done() {
                return (used, Ok(Step::Request(request)));
            }
            *self = Self::Body { request, body: framing.body };
            if framing.expects_continue {
                return (used, Ok(Step::Continue));
            }
        }
        match self.read_body(&input[used..]) {
            Ok((length, step)) => (used + length, Ok(step)),
            Err(rejection) => (used, Err(rejection)),
        }
    }

    fn read_body(&mut self, input: &[u8]) -> Result<(usize, Step<R>), Rejection> {
        let Self::Body { request, body } = self else { return Ok((0, Step::More)) };
        let length = body.read(input, |content| request.take_content(content))?;
        if !body.is_done() {
            return Ok((length, Step::More));
        }
        match std::mem::take(self) {
            Self::Body { request, .. } => Ok((length, Step::Request(request))),
            Self::Head => Ok((length, Step::More)),
        }
    }
}

/// Reads `input` as requests, and checks that how they arrive does not matter. The first byte is the length of pieces. For
/// fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_requests(input: &[u8]) {
    let Some((piece, bytes)) = input.split_first() else { return };
    let whole = steps([bytes]);
    assert_eq!(whole, steps(bytes.chunks(usize::from(*piece) + 1)));
}

/// All steps for a stream of bytes that arrives in these pieces.
fn steps<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Result<Step<Request>, Rejection>> {
    let (mut receiver, mut held, mut steps) = (Receiver::default(), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let (used, step) = receiver.advance(&held, &Answer::default());
            assert!(used <= held.len());
            held.drain(..used);
            match step {
                Ok(Step::More) => break,
                Ok(step) => steps.push(Ok(step)),
                Err(rejection) => {
                    steps.push(Err(rejection));
                    return steps;
                }
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;
    use proptest::prelude::*;

    fn status_of(input: &str) -> Option<u16> {
        match steps([input.as_bytes()]).into_iter().next()? {
            Ok(Step::Request(Request { reply: Reply::Filler(answer), .. })) => Some(answer.status),
            Ok(Step::Request(Request { reply: Reply::Refused { status, .. }, .. })) => Some(status),
            Err(rejection) => Some(rejection.status),
            _ => None,
        }
    }

    #[test]
    fn every_target_form_is_answered() {
        for (target, status) in [
            ("/", 200),
            ("/any/path?status=404", 404),
            ("http://somewhere:80/?status=404", 404),
            ("http://somewhere?status=404", 404),
            ("/?status=404#status=405", 404),
            ("*", 200),
            ("/?delay=5", 400),
        ] {
            assert_eq!(
                status_of(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")),
                Some(status),
                "{target}"
            );
        }
        for target in [COUNTERS, "http://a/meshmeter/counters", "/meshmeter/counters?x"] {
            let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            let counters = matches!(
                steps([input.as_bytes()])[..],
                [Ok(Step::Request(Request { reply: Reply::Counters, .. }))]
            );
            assert!(counters, "{target}");
        }
        assert_eq!(status_of("GET /x/meshmeter/counters HTTP/1.1\r\nHost: a\r\n\r\n"), Some(200));
    }

    const COUNTERS: &str = crate::reply::COUNTERS_PATH;

    #[test]
    fn malformed_requests_are_rejected() {
        let big = format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "y".repeat(70_000));
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(200));
        for (input, status) in [
            ("\x16\x03\x01\x02\x00\x01\x00", 400),
            ("hello\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
            ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", 417),
            ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 405),
            (&big, 431),
            (&many, 431),
            ("GET / HTTP/1.0\r\n\r\n", 200),
        ] {
            assert_eq!(status_of(input), Some(status), "{:?}", &input[..input.len().min(80)]);
        }
    }

    #[test]
    fn connection_stays_open_if_both_sides_want_it() {
        for (version, connection, stays) in [
            ("1.1", "", true),
            ("1.1", "Connection: close\r\n", false),
            ("1.1", "Connection: Upgrade, CLOSE\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
        ] {
            let input = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
            let steps = steps([input.as_bytes()]);
            let [Ok(Step::Request(request))] = &steps[..] else { panic!("{input}: {steps:?}") };
            assert_eq!(request.keep_alive, stays, "{input}");
        }
    }

    /// Streams of requests, most of them well-formed.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let request = prop_oneof![
            Just("GET /?size=10 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
            Just("\r\nHEAD / HTTP/1.1\nHost: a\nConnection: close\n\n".to_owned()),
            Just("GET /?delay=x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
            Just("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}".to_owned()),
            Just("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nabcde".to_owned()),
            Just("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nt: u\r\n\r\n".to_owned()),
            Just("GET / HTTP/1.1\r\nHost: a\r\nbad name: x\r\n\r\n".to_owned()),
            Just("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
            "[ -~\r\n]{0,40}",
        ];
        proptest::collection::vec(request, 1..5).prop_map(|requests| requests.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn splits_do_not_matter(stream in stream(), cuts in proptest::collection::vec(0_usize..300, 0..6)) {
            let whole = steps([&stream[..]]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            prop_assert_eq!(&steps(cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]])), &whole);
            prop_assert_eq!(&steps(stream.chunks(1)), &whole);
        }

        #[test]
        fn input_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            steps([&bytes[..]]);
        }
    }
}
