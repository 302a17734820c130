//! The unidirectional streams of a connection (RFC 9114, section 6.2): what this side says on its control stream, and what a peer may
//! say on its own.
//!
//! A peer opens a control stream, which begins with its settings, and may open the two streams of QPACK, on which there is little to say
//! without a dynamic table. Streams of other kinds are refused unread.

use crate::frame::{self, FrameReader, Piece, kind};
use crate::{ErrorCode, varint};
use http2::Answers;

/// Maximum size of settings and of other frames of a control stream, bytes.
const MAX_FRAME_BYTES: usize = 4096;
/// Limit on the size of a field section that is announced to the peer: the sum of names, values and 32 bytes for each field.
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
/// Settings of HTTP/2 that must not be sent.
const HTTP2_SETTINGS: [u64; 4] = [0x2, 0x3, 0x4, 0x5];
/// Types of unidirectional streams.
const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;

/// Appends the beginning of a control stream: its type and settings. `max_fields_bytes`: see RFC 9114, section 4.2.2.
pub fn begin(max_fields_bytes: u64, out: &mut Vec<u8>) {
    varint::encode(CONTROL, out);
    let mut settings = Vec::new();
    varint::encode(MAX_FIELD_SECTION_SIZE, &mut settings);
    varint::encode(max_fields_bytes, &mut settings);
    frame::push(kind::SETTINGS, &settings, out);
}

/// Appends a GOAWAY frame for a control stream. `id`: that of the first request that this side does not process.
pub fn push_goaway(id: u64, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    varint::encode(id, &mut payload);
    frame::push(kind::GOAWAY, &payload, out);
}

/// What a peer said that concerns requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Control {
    /// Its settings.
    Settings,
    /// It processes no request from this identifier on.
    GoAway(u64),
    /// The stream is of a kind unknown here: it should be stopped.
    Refuse,
}

/// The unidirectional streams of a peer.
#[derive(Debug)]
pub struct PeerStreams {
    /// This side is the server.
    of_client: bool,
    streams: Vec<Stream>,
    has_settings: bool,
    /// Smallest identifier of a GOAWAY.
    last_goaway: u64,
    /// Frames and streams without use.
    useless: Answers,
}

#[derive(Debug)]
struct Stream {
    id: u64,
    is: Is,
}

#[derive(Debug)]
enum Is {
    /// Its type has not arrived whole.
    Unknown(Vec<u8>),
    Control(FrameReader),
    Encoder,
    /// The flag: within an integer.
    Decoder(bool),
    /// Stopped; what still comes is discarded.
    Refused,
}

impl Is {
    fn is_same_as(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl PeerStreams {
    /// None yet. `of_client`: the peer is a client.
    #[must_use]
    pub fn new(of_client: bool) -> Self {
        Self {
            of_client,
            streams: Vec::new(),
            has_settings: false,
            last_goaway: varint::MAX,
            useless: Answers::default(),
        }
    }

    /// Something useful happened on the connection: see [`Answers`].
    pub fn account(&mut self) {
        self.useless.account();
    }

    /// Counts a frame or stream without use.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub fn count_useless(&mut self) -> Result<(), ErrorCode> {
        self.useless.count().map_err(|_| ErrorCode::ExcessiveLoad)
    }

    /// Takes bytes of a stream, all of them, and tells each thing said by `tell`.
    ///
    /// # Errors
    /// Returns the code of the connection error if the peer breaks a rule.
    pub fn receive(
        &mut self,
        id: u64,
        mut bytes: &[u8],
        tell: &mut impl FnMut(Control),
    ) -> Result<(), ErrorCode> {
        let place = match self.streams.iter().position(|stream| stream.id == id) {
            Some(place) => place,
            None => {
                self.count_useless()?;
                self.streams.push(Stream { id, is: Is::Unknown(Vec::new()) });
                self.streams.len() - 1
            }
        };
        if let Is::Unknown(start) = &mut self.streams[place].is {
            let before = start.len();
            start.extend_from_slice(&bytes[..bytes.len().min(varint::MAX_BYTES - before)]);
            let Some((kind, length)) = varint::decode(start) else { return Ok(()) };
            bytes = &bytes[length - before..];
            let is = self.of_kind(kind)?;
            if matches!(is, Is::Refused) {
                tell(Control::Refuse);
            } else if self.streams.iter().any(|stream| stream.is.is_same_as(&is)) {
                return Err(ErrorCode::StreamCreation);
            }
            self.streams[place].is = is;
        }
        match &mut self.streams[place].is {
            Is::Control(reader) => {
                let mut reader = std::mem::take(reader);
                let outcome = self.control(&mut reader, bytes, tell);
                self.streams[place].is = Is::Control(reader);
                outcome
            }
            Is::Encoder => encoder(bytes),
            Is::Decoder(within) => decoder(within, bytes),
            Is::Unknown(_) | Is::Refused => Ok(()),
        }
    }

    fn of_kind(&self, kind: u64) -> Result<Is, ErrorCode> {
        match kind {
            CONTROL => Ok(Is::Control(FrameReader::default())),
            ENCODER => Ok(Is::Encoder),
            DECODER => Ok(Is::Decoder(false)),
            PUSH if self.of_client => Err(ErrorCode::StreamCreation),
            // This side has allowed no push.
            PUSH => Err(ErrorCode::Id),
            _ => Ok(Is::Refused),
        }
    }

    /// A stream has ended, or was reset.
    ///
    /// # Errors
    /// Returns an error if the connection cannot do without it.
    pub fn ended(&mut self, id: u64) -> Result<(), ErrorCode> {
        let Some(place) = self.streams.iter().position(|stream| stream.id == id) else {
            return self.count_useless();
        };
        match self.streams.swap_remove(place).is {
            Is::Control(_) | Is::Encoder | Is::Decoder(_) => Err(ErrorCode::ClosedCriticalStream),
            Is::Unknown(_) | Is::Refused => Ok(()),
        }
    }

    fn control(
        &mut self,
        reader: &mut FrameReader,
        bytes: &[u8],
        tell: &mut impl FnMut(Control),
    ) -> Result<(), ErrorCode> {
        let mut taken = 0;
        loop {
            let (step, piece) = reader.next(&bytes[taken..], MAX_FRAME_BYTES)?;
            taken += step;
            let Some(piece) = piece else { return Ok(()) };
            let is_settings = matches!(piece, Piece::Frame(kind::SETTINGS, _));
            if !self.has_settings && !is_settings {
                return Err(ErrorCode::MissingSettings);
            }
            match piece {
                Piece::Frame(kind::SETTINGS, _) if self.has_settings => {
                    return Err(ErrorCode::FrameUnexpected);
                }
                Piece::Frame(kind::SETTINGS, payload) => {
                    check_settings(payload)?;
                    self.has_settings = true;
                    tell(Control::Settings);
                }
                Piece::Frame(kind::GOAWAY, payload) => {
                    let id = whole_integer(payload)?;
                    // Of a server it names a request of this client; of a client a push, of which there are none.
                    if id > self.last_goaway || (!self.of_client && id % 4 != 0) {
                        return Err(ErrorCode::Id);
                    }
                    self.count_useless()?;
                    self.last_goaway = id;
                    tell(Control::GoAway(id));
                }
                Piece::Frame(kind::MAX_PUSH_ID, payload) if self.of_client => {
                    whole_integer(payload)?;
                    self.count_useless()?;
                }
                // No push has an identifier.
                Piece::Frame(kind::CANCEL_PUSH, _) => return Err(ErrorCode::Id),
                Piece::Frame(..) | Piece::DataHead | Piece::Data(_) => {
                    return Err(ErrorCode::FrameUnexpected);
                }
                Piece::Unknown(_) => self.count_useless()?,
            }
        }
    }
}

/// Settings are pairs of integers. Those of a dynamic table may be ignored: this side uses none.
fn check_settings(mut payload: &[u8]) -> Result<(), ErrorCode> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let (name, of_name) = varint::decode(payload).ok_or(ErrorCode::Frame)?;
        let (_, of_value) = varint::decode(&payload[of_name..]).ok_or(ErrorCode::Frame)?;
        if HTTP2_SETTINGS.contains(&name) || seen.contains(&name) {
            return Err(ErrorCode::Settings);
        }
        // Beyond a few, they are unknown ones, which may repeat.
        if seen.len() < 64 {
            seen.push(name);
        }
        payload = &payload[of_name + of_value..];
    }
    Ok(())
}

/// The integer that is all of a payload.
fn whole_integer(payload: &[u8]) -> Result<u64, ErrorCode> {
    varint::decode(payload)
        .filter(|(_, length)| *length == payload.len())
        .map(|(value, _)| value)
        .ok_or(ErrorCode::Frame)
}

/// Instructions of the peer's encoder: only a capacity of 0 is possible.
fn encoder(bytes: &[u8]) -> Result<(), ErrorCode> {
    if bytes.iter().all(|byte| *byte == 0x20) { Ok(()) } else { Err(ErrorCode::EncoderStream) }
}

/// Instructions of the peer's decoder: only the cancellation of a stream is possible, with its identifier.
fn decoder(within: &mut bool, bytes: &[u8]) -> Result<(), ErrorCode> {
    for byte in bytes {
        *within = match (*within, byte) {
            (true, byte) => byte & 0x80 != 0,
            (false, 0x40..=0x7e) => false,
            (false, 0x7f) => true,
            (false, _) => return Err(ErrorCode::DecoderStream),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &[u8] = &[0, 4, 0];

    /// What a server says with these bytes on its streams 3, 7, …, each byte on its own.
    fn hear(streams: &[&[u8]]) -> Result<Vec<Control>, ErrorCode> {
        let (mut peer, mut said) = (PeerStreams::new(false), Vec::new());
        for (index, stream) in streams.iter().enumerate() {
            for byte in *stream {
                peer.receive(4 * index as u64 + 3, &[*byte], &mut |control| said.push(control))?;
            }
        }
        Ok(said)
    }

    #[test]
    fn own_control_stream_is_understood() {
        let mut stream = Vec::new();
        begin(65_536, &mut stream);
        push_goaway(8, &mut stream);
        push_goaway(4, &mut stream);
        assert_eq!(
            hear(&[&stream, &[2, 0x20], &[3, 0x44, 0x7f, 0x80, 0x01]]),
            Ok(vec![Control::Settings, Control::GoAway(8), Control::GoAway(4)])
        );
    }

    #[test]
    fn unknown_streams_and_frames_are_ignored() {
        let grease = [&[0x40, 0x21][..], b"anything"].concat();
        let control = [SETTINGS, &[0x21, 3, 1, 2, 3]].concat();
        assert_eq!(hear(&[&grease, &control]), Ok(vec![Control::Refuse, Control::Settings]));
    }

    #[test]
    fn violations_have_their_codes() {
        for (streams, code, named) in [
            (&[&[0, 7, 1, 0][..]][..], ErrorCode::MissingSettings, "no settings first"),
            (&[&[0, 0x21, 0]], ErrorCode::MissingSettings, "nor an unknown frame"),
            (&[&[0, 4, 0, 4, 0]], ErrorCode::FrameUnexpected, "settings twice"),
            (&[&[0, 4, 2, 2, 0]], ErrorCode::Settings, "a setting of HTTP/2"),
            (&[&[0, 4, 4, 6, 0, 6, 0]], ErrorCode::Settings, "a setting twice"),
            (&[&[0, 4, 1, 6]], ErrorCode::Frame, "a setting without a value"),
            (&[&[0, 4, 0x60, 0]], ErrorCode::ExcessiveLoad, "settings beyond the limit"),
            (&[&[0, 4, 0, 0, 1]], ErrorCode::FrameUnexpected, "content"),
            (&[&[0, 4, 0, 1, 0]], ErrorCode::FrameUnexpected, "fields"),
            (&[&[0, 4, 0, 6, 0]], ErrorCode::FrameUnexpected, "a PING of HTTP/2"),
            (&[&[0, 4, 0, 13, 1, 0]], ErrorCode::FrameUnexpected, "a server's limit of pushes"),
            (&[&[0, 4, 0, 3, 1, 0]], ErrorCode::Id, "a push that cannot be cancelled"),
            (&[&[0, 4, 0, 7, 1, 4, 7, 1, 8]], ErrorCode::Id, "GOAWAY that takes back"),
            (&[&[0, 4, 0, 7, 1, 3]], ErrorCode::Id, "GOAWAY for no request"),
            (&[&[0, 4, 0, 7, 2, 4, 4]], ErrorCode::Frame, "GOAWAY that is too long"),
            (&[SETTINGS, SETTINGS], ErrorCode::StreamCreation, "two control streams"),
            (&[&[1, 0]], ErrorCode::Id, "a push stream"),
            (&[&[2, 0x3f, 0x01]], ErrorCode::EncoderStream, "a capacity"),
            (&[&[2, 0xc0]], ErrorCode::EncoderStream, "an insertion"),
            (&[&[3, 0x80]], ErrorCode::DecoderStream, "an acknowledged section"),
            (&[&[3, 0x01]], ErrorCode::DecoderStream, "an insert count"),
        ] {
            assert_eq!(hear(streams), Err(code), "{named}");
        }
    }

    #[test]
    fn critical_streams_must_not_end() {
        for start in [&[0][..], SETTINGS, &[2], &[3]] {
            let mut peer = PeerStreams::new(true);
            peer.receive(2, start, &mut |_| ()).unwrap();
            assert_eq!(peer.ended(2), Err(ErrorCode::ClosedCriticalStream), "{start:?}");
        }
        let mut peer = PeerStreams::new(true);
        peer.receive(2, &[0x21, 1], &mut |_| ()).unwrap();
        assert_eq!(peer.ended(2), Ok(()));
    }

    #[test]
    fn useless_streams_and_frames_come_to_an_end() {
        let mut peer = PeerStreams::new(true);
        let opened = (0..)
            .map(|index| 4 * index + 2)
            .take_while(|id| peer.receive(*id, &[0x21], &mut |_| ()).and_then(|()| peer.ended(*id)).is_ok());
        assert_eq!(opened.count(), http2::MAX_ANSWERS as usize);
        let mut peer = PeerStreams::new(true);
        let frames = [SETTINGS, &[0x21, 0].repeat(2 * http2::MAX_ANSWERS as usize)].concat();
        assert_eq!(peer.receive(2, &frames, &mut |_| ()), Err(ErrorCode::ExcessiveLoad));
    }
}
