//! Causes for the end of a connection or its stream.

use rustls::{AlertDescription, CertificateError};
use std::io;

/// Kinds of endings, as in results.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub(crate) enum EndingKind {
    /// Nothing listens there, or there is no route to it.
    Refused,
    /// Connection, handshake or settings timed out.
    ConnectTimeout,
    /// The connection was closed or reset without a message.
    Lost,
    /// No bytes arrived, and no response to a ping.
    Silent,
    /// TLS failed for another reason than an expired certificate.
    Tls,
    /// The server's certificate has expired, or the server reports that the client's has.
    CertificateExpired,
    /// The certificate authority did not sign a certificate.
    CertificateRefused,
    /// The server closes the connection, as istiod does after 30 minutes.
    GoAway,
    /// The stream ended with gRPC status 0.
    StreamEnded,
    /// The stream ended with another gRPC status.
    Status(u8),
    /// The stream was reset.
    StreamReset,
    /// The response is not a gRPC response.
    HttpStatus,
    /// HTTP/2's rules were broken.
    Http2Violation,
    /// The server sends PING or SETTINGS frames without end, or reads nothing of what they and its responses cause.
    Http2Flood,
    /// gRPC's framing was broken.
    GrpcViolation,
    /// The session ended it because of a violation that it reported.
    Broken,
}

/// gRPC status codes in their order (`grpc/doc/statuscodes.md`).
const STATUS_KINDS: [&str; 17] = [
    "stream-ended",
    "grpc-cancelled",
    "grpc-unknown",
    "grpc-invalid-argument",
    "grpc-deadline-exceeded",
    "grpc-not-found",
    "grpc-already-exists",
    "grpc-permission-denied",
    "grpc-resource-exhausted",
    "grpc-failed-precondition",
    "grpc-aborted",
    "grpc-out-of-range",
    "grpc-unimplemented",
    "grpc-internal",
    "grpc-unavailable",
    "grpc-data-loss",
    "grpc-unauthenticated",
];

impl EndingKind {
    /// Name of the kind in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Refused => "connection-refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::Lost => "connection-lost",
            Self::Silent => "ping-timeout",
            Self::Tls => "tls-failed",
            Self::CertificateExpired => "certificate-expired",
            Self::CertificateRefused => "certificate-refused",
            Self::GoAway => "goaway",
            Self::StreamEnded => "stream-ended",
            Self::Status(code) => STATUS_KINDS.get(usize::from(code)).copied().unwrap_or("grpc-unknown"),
            Self::StreamReset => "stream-reset",
            Self::HttpStatus => "http-status",
            Self::Http2Violation => "http2-violation",
            Self::Http2Flood => "http2-flood",
            Self::GrpcViolation => "grpc-violation",
            Self::Broken => "broken",
        }
    }
}

/// An ending with a description of its cause.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    pub(crate) kind: EndingKind,
    pub(crate) detail: String,
}

impl Ending {
    pub(crate) fn new(kind: EndingKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Ending for an error of an open connection.
    pub(crate) fn for_io(error: &io::Error) -> Self {
        Self::new(EndingKind::Lost, error.to_string())
    }

    /// Ending for an error while connecting.
    pub(crate) fn for_connect(error: &io::Error) -> Self {
        let kind = if error.kind() == io::ErrorKind::TimedOut {
            EndingKind::ConnectTimeout
        } else {
            EndingKind::Refused
        };
        Self::new(kind, error.to_string())
    }

    pub(crate) fn for_tls(error: &rustls::Error) -> Self {
        let expired = matches!(
            error,
            rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            ) | rustls::Error::AlertReceived(AlertDescription::CertificateExpired)
        );
        let kind = if expired { EndingKind::CertificateExpired } else { EndingKind::Tls };
        Self::new(kind, error.to_string())
    }

    /// Ending for the gRPC status of a stream.
    pub(crate) fn for_status(code: u8, message: &str) -> Self {
        if code == 0 {
            return Self::new(EndingKind::StreamEnded, "gRPC status 0");
        }
        Self::new(EndingKind::Status(code), format!("gRPC status {code}: {message}"))
    }
}
