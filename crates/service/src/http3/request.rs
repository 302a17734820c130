//! The requests of a connection while they arrive.

use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Uri};
use http2::hpack::FieldReader;
use http3::frame::{FrameReader, Piece, kind};
use http3::qpack::Decoder;
use http3::{ErrorCode, control};

/// Maximum size of a field section that is accepted, bytes.
pub(super) const MAX_HEADERS_BYTES: usize = 64 * 1024;
/// Fields of a request that make a difference here, all others are skipped.
const EXPECT: &[u8] = b"expect";

/// A request that is arriving.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    reader: FrameReader,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Stage {
    #[default]
    Head,
    Content,
    /// After trailers.
    Over,
    /// It cannot be read; what still comes is discarded.
    Refused,
}

/// What has arrived of a request.
pub(super) enum Part<'b> {
    Head(Box<Parts>),
    Content(&'b [u8]),
}

/// Why a request cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refusal {
    /// It is malformed; the connection goes on.
    Request,
    /// The connection cannot go on.
    Connection(ErrorCode),
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self::Connection(code)
    }
}

impl Arriving {
    /// Takes bytes of the request, all of them, and tells each part.
    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        decoder: &mut Decoder,
        peer: &mut control::PeerStreams,
        tell: &mut impl FnMut(Part<'_>),
    ) -> Result<(), Refusal> {
        if self.stage == Stage::Refused {
            return Ok(());
        }
        let mut taken = 0;
        loop {
            let (step, piece) = self.reader.next(&bytes[taken..], MAX_HEADERS_BYTES)?;
            taken += step;
            match piece {
                None => return Ok(()),
                Some(Piece::DataHead) if self.stage == Stage::Content => peer.count_useless()?,
                Some(Piece::Data(content)) => {
                    peer.account();
                    tell(Part::Content(content));
                }
                Some(Piece::Frame(kind::HEADERS, section)) => {
                    peer.account();
                    let mut fields = Fields::default();
                    decoder.decode(section, &mut fields).map_err(|_| ErrorCode::Decompression)?;
                    self.stage = match self.stage {
                        Stage::Head => {
                            self.stage = Stage::Refused;
                            tell(Part::Head(Box::new(fields.into_head().ok_or(Refusal::Request)?)));
                            Stage::Content
                        }
                        Stage::Content => Stage::Over,
                        Stage::Over | Stage::Refused => return Err(ErrorCode::FrameUnexpected.into()),
                    };
                }
                Some(Piece::Frame(..) | Piece::DataHead) => return Err(ErrorCode::FrameUnexpected.into()),
                Some(Piece::Unknown(_)) => peer.count_useless()?,
            }
        }
    }

    /// The client has ended the stream. Fails if the request is not whole.
    pub(super) fn ended(&self) -> Result<(), Refusal> {
        match self.stage {
            Stage::Refused => Ok(()),
            _ if !self.reader.is_between_frames() => Err(ErrorCode::Frame.into()),
            Stage::Head => Err(Refusal::Request),
            Stage::Content | Stage::Over => Ok(()),
        }
    }
}

/// The fields of a head.
#[derive(Debug, Default)]
struct Fields {
    method: Option<Method>,
    scheme: bool,
    authority: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    expect: Option<HeaderValue>,
    in_regular: bool,
    malformed: bool,
}

impl FieldReader for Fields {
    fn wants(&mut self, name: &[u8]) -> bool {
        if name.first() == Some(&b':') {
            self.malformed |= self.in_regular;
            return true;
        }
        self.in_regular = true;
        self.malformed |= name.is_empty() || name.iter().any(u8::is_ascii_uppercase);
        name == EXPECT
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        let is_first = match name {
            b":method" => {
                let method = Method::from_bytes(value).ok();
                self.malformed |= method.is_none();
                std::mem::replace(&mut self.method, method).is_none()
            }
            b":scheme" => !std::mem::replace(&mut self.scheme, true),
            b":authority" => self.authority.replace(value.to_vec()).is_none(),
            b":path" => self.path.replace(value.to_vec()).is_none(),
            EXPECT => {
                self.expect = HeaderValue::from_bytes(value).ok();
                true
            }
            _ => false,
        };
        self.malformed |= !is_first;
    }
}

impl Fields {
    /// The head, if it is well-formed (RFC 9114, section 4.3.1).
    fn into_head(self) -> Option<Parts> {
        let method = self.method?;
        let is_connect = method == Method::CONNECT;
        let target = if is_connect { self.authority? } else { self.path? };
        if self.malformed || (!is_connect && !self.scheme) {
            return None;
        }
        let uri = Uri::try_from(target).ok()?;
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(value) = self.expect {
            request = request.header(HeaderName::from_static("expect"), value);
        }
        Some(request.body(()).ok()?.into_parts().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http3::{frame, qpack};

    fn read(fields: &[(&str, &str)]) -> Option<Parts> {
        let mut stream = Vec::new();
        frame::push_fields(&mut stream, |out| {
            qpack::begin(out);
            for (name, value) in fields {
                qpack::push(name.as_bytes(), value.as_bytes(), false, out);
            }
        });
        let (mut head, mut peer) = (None, control::PeerStreams::new(true));
        Arriving::default()
            .receive(&stream, &mut Decoder::default(), &mut peer, &mut |part| {
                if let Part::Head(parts) = part {
                    head = Some(*parts);
                }
            })
            .ok()?;
        head
    }

    #[test]
    fn heads_are_read_or_refused() {
        let usual = [(":method", "GET"), (":scheme", "https"), (":authority", "shop"), (":path", "/?size=5")];
        let head = read(&usual).unwrap();
        assert_eq!((head.method, head.uri.to_string()), (Method::GET, "/?size=5".to_owned()));
        assert_eq!(read(&[(":method", "CONNECT"), (":authority", "shop:443")]).unwrap().method, "CONNECT");
        for (left_out, named) in [(0, "method"), (1, "scheme"), (3, "path")] {
            let mut fields = usual.to_vec();
            fields.remove(left_out);
            assert!(read(&fields).is_none(), "without its {named}");
        }
        for (field, named) in [
            ((":method", "PUT"), "two methods"),
            ((":status", "200"), "a status"),
            (("Upper", "case"), "a name in upper case"),
        ] {
            assert!(read(&[&usual[..], &[field]].concat()).is_none(), "{named}");
        }
        assert!(
            read(&[usual[0], usual[1], ("host", "shop"), usual[3]]).is_none(),
            "pseudo-headers come first"
        );
    }
}
