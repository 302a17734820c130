//! Causes for the end of a connection or its stream.

use rustls::{AlertDescription, CertificateError};
use std::io;

/// Kinds of endings, as results name them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub(crate) enum EndingKind {
    /// Nothing listens, or no route leads there.
    Refused,
    /// No connection, handshake or settings in time.
    ConnectTimeout,
    /// The connection was closed or reset without a word.
    Lost,
    /// No byte and no answer to a ping.
    Silent,
    /// TLS failed otherwise than by a certificate that has expired.
    Tls,
    /// The server's certificate has expired, or the server says so of ours.
    CertificateExpired,
    /// The certificate authority signed no certificate.
    CertificateRefused,
    /// The server ends the connection, as istiod does after 30 minutes.
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
    /// gRPC's framing was broken.
    GrpcViolation,
    /// The session ended it for a violation that it reported.
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
    /// The word in results.
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
            Self::GrpcViolation => "grpc-violation",
            Self::Broken => "broken",
        }
    }
}

/// An ending with its cause in words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    pub(crate) kind: EndingKind,
    pub(crate) detail: String,
}

impl Ending {
    pub(crate) fn new(kind: EndingKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// For an error of a connection that was open.
    pub(crate) fn for_io(error: &io::Error) -> Self {
        Self::new(EndingKind::Lost, error.to_string())
    }

    /// For an error while connecting.
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

    /// For the status that a stream ended with.
    pub(crate) fn for_status(code: u8, message: &str) -> Self {
        if code == 0 {
            return Self::new(EndingKind::StreamEnded, "gRPC status 0");
        }
        Self::new(EndingKind::Status(code), format!("gRPC status {code}: {message}"))
    }
}
