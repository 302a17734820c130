//! Frames (RFC 6455, 5): read from bytes split at any positions, and written.

/// Maximum size of the content of a message: as that of bodies of requests.
pub const MAX_MESSAGE_BYTES: u64 = 64 << 20;
/// Maximum size of the content of a control frame (RFC 6455, 5.5).
const MAX_CONTROL_BYTES: u64 = 125;
/// Maximum size of a frame's header: two bytes, a length of eight, a mask.
const MAX_HEADER_BYTES: usize = 14;
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Opcode {
    /// A further part of a message.
    Continuation = 0,
    /// A message of text, or its first part.
    Text = 1,
    /// A message of bytes, or its first part.
    Binary = 2,
    /// The last frame of its sender.
    Close = 8,
    /// To be answered with a pong of the same content.
    Ping = 9,
    /// Answer to a ping, or unasked.
    Pong = 10,
}

impl Opcode {
    fn read(byte: u8) -> Option<Self> {
        use Opcode::{Binary, Close, Continuation, Ping, Pong, Text};
        [Continuation, Text, Binary, Close, Ping, Pong].into_iter().find(|opcode| *opcode as u8 == byte & 0xf)
    }

    fn is_control(self) -> bool {
        self as u8 >= Self::Close as u8
    }
}

/// Side that sends the frames that are read: those of clients are masked, those of servers are not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    /// A client.
    Client,
    /// A server.
    Server,
}

/// Frames that the reader cannot accept.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Fault {
    /// They break the rules of the protocol.
    #[error("the frames break the rules of WebSocket")]
    Protocol,
    /// A message is larger than the reader allows.
    #[error("the message is too large")]
    TooLarge,
}

impl Fault {
    /// The code with which to close the connection (RFC 6455, 7.4.1).
    #[must_use]
    pub fn close_code(self) -> u16 {
        match self {
            Self::Protocol => 1002,
            Self::TooLarge => 1009,
        }
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Received {
    /// More bytes are needed; all are consumed.
    More,
    /// A message is complete.
    Message {
        /// [`Opcode::Text`] or [`Opcode::Binary`].
        opcode: Opcode,
        /// Size of its content, bytes.
        content_bytes: u64,
        /// Its size on the connection, bytes, with the headers of its frames.
        frame_bytes: u64,
    },
    /// A ping, whose content is [`FrameReader::control`].
    Ping,
    /// A pong.
    Pong,
    /// The sender's last frame, with its code if it has one.
    Close(Option<u16>),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    is_last: bool,
    mask: Option<[u8; 4]>,
    length: u64,
    left: u64,
}

/// A message of which a frame has begun.
#[derive(Clone, Copy, Debug)]
struct Message {
    opcode: Opcode,
    content_bytes: u64,
    frame_bytes: u64,
}

/// Splits the bytes of a connection into frames. Keeps no content but that of control frames.
#[derive(Debug)]
pub struct FrameReader {
    sender: Sender,
    max_message_bytes: u64,
    header: [u8; MAX_HEADER_BYTES],
    header_bytes: usize,
    /// The frame whose content is being read.
    frame: Option<Frame>,
    message: Option<Message>,
    control: Vec<u8>,
}

impl FrameReader {
    /// A reader of what this side sends.
    #[must_use]
    pub fn new(sender: Sender, max_message_bytes: u64) -> Self {
        Self {
            sender,
            max_message_bytes,
            header: [0; MAX_HEADER_BYTES],
            header_bytes: 0,
            frame: None,
            message: None,
            control: Vec::new(),
        }
    }

    /// Content of the control frame that was read last.
    #[must_use]
    pub fn control(&self) -> &[u8] {
        &self.control
    }

    /// True if a part of a message was read.
    #[must_use]
    pub fn is_within_message(&self) -> bool {
        self.message.is_some() || self.header_bytes > 0
    }

    /// Consumes bytes up to the end of a message or control frame; returns how many. The content of messages is appended to `content`,
    /// unmasked, if it is wanted.
    ///
    /// # Errors
    /// Returns an error if the frames are invalid or a message is too large: nothing more can be read.
    pub fn read(
        &mut self,
        bytes: &[u8],
        mut content: Option<&mut Vec<u8>>,
    ) -> Result<(usize, Received), Fault> {
        let mut at = 0;
        loop {
            let mut frame = match self.frame.take() {
                Some(frame) => frame,
                None => {
                    let (taken, frame) = self.read_header(&bytes[at..])?;
                    at += taken;
                    let Some(frame) = frame else { return Ok((at, Received::More)) };
                    frame
                }
            };
            let length = bytes.len() - at;
            let length = usize::try_from(frame.left).map_or(length, |left| left.min(length));
            let into =
                if frame.opcode.is_control() { Some(&mut self.control) } else { content.as_deref_mut() };
            if let Some(into) = into {
                let start = into.len();
                into.extend_from_slice(&bytes[at..at + length]);
                if let Some(mask) = frame.mask {
                    apply_mask(&mut into[start..], mask, frame.length - frame.left);
                }
            }
            at += length;
            frame.left -= length as u64;
            if frame.left > 0 {
                self.frame = Some(frame);
                return Ok((at, Received::More));
            }
            if let Some(received) = self.ended(frame)? {
                return Ok((at, received));
            }
        }
    }

    /// Consumes bytes of a header; also returns the frame once it is complete.
    fn read_header(&mut self, bytes: &[u8]) -> Result<(usize, Option<Frame>), Fault> {
        let mut taken = 0;
        loop {
            let needed = header_bytes(&self.header[..self.header_bytes]);
            let length = (needed - self.header_bytes).min(bytes.len() - taken);
            self.header[self.header_bytes..][..length].copy_from_slice(&bytes[taken..taken + length]);
            self.header_bytes += length;
            taken += length;
            if self.header_bytes < needed {
                return Ok((taken, None));
            }
            if header_bytes(&self.header[..self.header_bytes]) == needed {
                return Ok((taken, Some(self.begin()?)));
            }
        }
    }

    /// Begins the frame whose header is complete.
    fn begin(&mut self) -> Result<Frame, Fault> {
        let header_bytes = std::mem::take(&mut self.header_bytes);
        let header = &self.header[..header_bytes];
        let opcode = Opcode::read(header[0]).filter(|_| header[0] & RESERVED == 0).ok_or(Fault::Protocol)?;
        let is_masked = header[1] & MASKED != 0;
        let is_last = header[0] & FIN != 0;
        let (lengths, mask) = header[2..].split_at(header_bytes - 2 - if is_masked { 4 } else { 0 });
        let mask = mask.try_into().ok();
        // A length has the fewest bytes that it needs (5.2).
        let (length, least) = match *lengths {
            [] => (u64::from(header[1] & !MASKED), 0),
            [high, low] => (u64::from(u16::from_be_bytes([high, low])), 126),
            _ => (u64::from_be_bytes(lengths.try_into().map_err(|_| Fault::Protocol)?), 1 << 16),
        };
        if length < least || length >> 63 != 0 || is_masked != (self.sender == Sender::Client) {
            return Err(Fault::Protocol);
        }
        if opcode.is_control() {
            self.control.clear();
            if !is_last || length > MAX_CONTROL_BYTES {
                return Err(Fault::Protocol);
            }
        } else {
            // A message goes on if one was begun, and only then.
            if self.message.is_some() != (opcode == Opcode::Continuation) {
                return Err(Fault::Protocol);
            }
            let begun = Message { opcode, content_bytes: 0, frame_bytes: 0 };
            let message = self.message.get_or_insert(begun);
            message.content_bytes = message.content_bytes.saturating_add(length);
            message.frame_bytes =
                message.frame_bytes.saturating_add(length).saturating_add(header_bytes as u64);
            if message.content_bytes > self.max_message_bytes {
                return Err(Fault::TooLarge);
            }
        }
        Ok(Frame { opcode, is_last, mask, length, left: length })
    }

    /// A frame is complete. Returns what it completes.
    fn ended(&mut self, frame: Frame) -> Result<Option<Received>, Fault> {
        Ok(match frame.opcode {
            Opcode::Ping => Some(Received::Ping),
            Opcode::Pong => Some(Received::Pong),
            Opcode::Close => Some(Received::Close(close_code(&self.control)?)),
            _ if !frame.is_last => None,
            _ => self.message.take().map(|Message { opcode, content_bytes, frame_bytes }| {
                Received::Message { opcode, content_bytes, frame_bytes }
            }),
        })
    }
}

/// Size of the header that begins with these bytes, as far as they show.
fn header_bytes(begun: &[u8]) -> usize {
    let Some(second) = begun.get(1) else { return 2 };
    let length = match second & !MASKED {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length + if second & MASKED != 0 { 4 } else { 0 }
}

/// The code of a close frame with this content (7.4): one that a peer may send.
fn close_code(content: &[u8]) -> Result<Option<u16>, Fault> {
    match content {
        [] => Ok(None),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            let is_known = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
            if is_known && std::str::from_utf8(reason).is_ok() {
                Ok(Some(code))
            } else {
                Err(Fault::Protocol)
            }
        }
        [_] => Err(Fault::Protocol),
    }
}

/// Masks or unmasks bytes that are this far from the beginning of their frame's content.
pub fn apply_mask(bytes: &mut [u8], mut mask: [u8; 4], offset: u64) {
    mask.rotate_left((offset % 4) as usize);
    let mut words = bytes.chunks_exact_mut(4);
    for word in &mut words {
        word.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
    words.into_remainder().iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}

/// Appends the header of the only frame of a message, or of a control frame, with content of this length.
pub fn write_header(out: &mut Vec<u8>, opcode: Opcode, length: u64, mask: Option<[u8; 4]>) {
    let masked = if mask.is_some() { MASKED } else { 0 };
    out.push(FIN | opcode as u8);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ 0..126), _) => out.push(masked | length),
        (_, Ok(length)) => {
            out.push(masked | 126);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.push(masked | 127);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    out.extend_from_slice(mask.as_ref().map_or(&[][..], |mask| mask));
}

/// Appends a frame that is a whole message, or a control frame.
pub fn write_frame(out: &mut Vec<u8>, opcode: Opcode, content: &[u8], mask: Option<[u8; 4]>) {
    write_header(out, opcode, content.len() as u64, mask);
    let start = out.len();
    out.extend_from_slice(content);
    if let Some(mask) = mask {
        apply_mask(&mut out[start..], mask, 0);
    }
}

/// Appends the frame that closes the connection, with this code if there is one.
pub fn write_close(out: &mut Vec<u8>, code: Option<u16>, mask: Option<[u8; 4]>) {
    let code = code.map(u16::to_be_bytes);
    write_frame(out, Opcode::Close, code.as_ref().map_or(&[][..], |code| code), mask);
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
