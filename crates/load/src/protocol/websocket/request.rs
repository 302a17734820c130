//! A message, and the request that opens its connection.

use crate::protocol::http1::Http1Request;
use crate::target::{Body, Request, Values};
use ::http1::websocket::{Opcode, apply_mask, write_frame, write_header};
use http::header::{CONNECTION, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Method};

/// What a request is over WebSocket.
pub(crate) struct WebSocketRequest {
    /// Head of the request that opens the connection, without its key.
    opening: Vec<u8>,
    opcode: Opcode,
    message: Body,
}

impl WebSocketRequest {
    pub(crate) fn new(request: &Request) -> Self {
        let fields = [(CONNECTION, "Upgrade"), (UPGRADE, "websocket"), (SEC_WEBSOCKET_VERSION, "13")];
        let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)).into());
        let opening = Request {
            method: Method::GET,
            headers: request.headers.iter().cloned().chain(fields).collect(),
            body: Body::default(),
            ..request.clone()
        };
        let mut head = Vec::new();
        Http1Request::new(&opening).write(Values::default(), &mut head);
        // The blank line comes after the key.
        head.truncate(head.len() - "\r\n".len());
        let is_text = match &request.body {
            Body::Constant(bytes) => std::str::from_utf8(bytes).is_ok(),
            Body::Varying(_) => true,
        };
        Self {
            opening: head,
            opcode: if is_text { Opcode::Text } else { Opcode::Binary },
            message: request.body.clone(),
        }
    }

    /// A message of a byte, for checks of what answers it.
    pub(super) fn for_check() -> Self {
        Self { opening: Vec::new(), opcode: Opcode::Text, message: b"x".as_slice().into() }
    }

    /// True if there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.message.is_empty()
    }

    pub(super) fn write_opening(&self, key: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.opening);
        for part in ["Sec-WebSocket-Key: ", key, "\r\n\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    pub(super) fn write_message(&self, values: Values<'_>, mask: [u8; 4], out: &mut Vec<u8>) {
        match &self.message {
            Body::Constant(bytes) => write_frame(out, self.opcode, bytes, Some(mask)),
            Body::Varying(text) => {
                write_header(out, self.opcode, text.length(values) as u64, Some(mask));
                let start = out.len();
                text.write_with(values, out);
                apply_mask(&mut out[start..], mask, 0);
            }
        }
    }
}
