//! Ends of QUIC connections, as the events and error kinds under which they are counted.

use crate::error::ErrorKind;
use crate::network::tls::of_alert;
use crate::network::{Event, TlsFailure};
use http3::ErrorCode;
use http3::quic::quinn_proto::{ConnectionError, TransportErrorCode};
use rustix::io::Errno;
use rustls::AlertDescription;
use std::io;

/// Codes of the transport that carry an alert of TLS in their low byte (RFC 9001, section 4.8).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;

/// The event of a connection that has ended for this reason. `is_open`: its handshake was complete.
pub(super) fn event(reason: &ConnectionError, is_open: bool) -> Event {
    let kind = match reason {
        ConnectionError::VersionMismatch => ErrorKind::QuicVersion,
        ConnectionError::TransportError(_) => ErrorKind::QuicProtocol,
        ConnectionError::ConnectionClosed(close) => match u64::from(close.error_code) {
            code if ALERTS.contains(&code) => of_alert(AlertDescription::from(code as u8)),
            _ if close.error_code == TransportErrorCode::CONNECTION_REFUSED => ErrorKind::ConnectRefused,
            _ if close.error_code == TransportErrorCode::NO_ERROR && is_open => return Event::Ended,
            _ => ErrorKind::QuicClosed,
        },
        ConnectionError::ApplicationClosed(close) => {
            if close.error_code.into_inner() == ErrorCode::None as u64 && is_open {
                return Event::Ended;
            }
            ErrorKind::QuicClosed
        }
        ConnectionError::Reset => return failed(Errno::CONNRESET.into(), is_open),
        ConnectionError::TimedOut => return failed(Errno::TIMEDOUT.into(), is_open),
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => ErrorKind::Network,
    };
    failed(TlsFailure(kind).into(), is_open)
}

fn failed(error: io::Error, is_open: bool) -> Event {
    if is_open { Event::Failed(error) } else { Event::OpenFailed(error) }
}
