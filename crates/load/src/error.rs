//! Kinds of failures of requests and connections, and errors that end a run before it starts.

use crate::network::TlsFailure;
use rustix::io::Errno;
use std::io;

/// Why a request failed or a connection could not be opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(usize)]
pub enum ErrorKind {
    /// Connection refused: nothing listens at the address.
    ConnectRefused,
    /// The connection attempt was not answered in time.
    ConnectTimeout,
    /// No route to the network or host.
    ConnectUnreachable,
    /// The connection could not be opened, for another reason.
    ConnectFailed,
    /// No local port is left for another connection.
    PortsExhausted,
    /// The limit on open files is reached.
    FilesExhausted,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection before the response was complete.
    Closed,
    /// No complete response within the timeout.
    Timeout,
    /// The response is not HTTP.
    MalformedResponse,
    /// The response head exceeds the limit.
    HeadTooLarge,
    /// The peer speaks TLS on a plaintext connection.
    TlsResponse,
    /// Unsolicited bytes after the end of a response. The response before them counts as completed.
    SurplusBytes,
    /// The run was interrupted before the response was complete.
    Interrupted,
    /// Another network error.
    Network,
    /// The peer does not speak TLS, or aborted the handshake without an alert.
    TlsHandshake,
    /// The TLS handshake did not complete in time.
    HandshakeTimeout,
    /// The peer ended the session with an alert.
    TlsAlert,
    /// The peer violated the TLS protocol after the handshake.
    TlsProtocol,
    /// The server's certificate is expired or not valid yet.
    CertificateExpired,
    /// The server's certificate is for another name.
    CertificateName,
    /// No trusted authority has signed the server's certificate.
    CertificateUntrusted,
    /// The server's certificate is invalid for another reason.
    CertificateInvalid,
    /// The peer rejected the client's certificate, or the lack of one.
    ClientCertificate,
    /// The reply over raw TCP or TLS differs from the expected bytes.
    WrongReply,
    /// The peer does not respond like an HTTP/2 server.
    NotHttp2,
    /// The peer did not select the protocol offered in ALPN.
    AlpnRefused,
    /// The connection is open, but the peer did not send its HTTP/2 SETTINGS in time.
    SettingsTimeout,
    /// The peer violated the HTTP/2 protocol.
    Http2Protocol,
    /// A frame of the peer has an invalid length.
    Http2FrameSize,
    /// The peer sent more than its flow-control window, or opened a window beyond the limit.
    Http2FlowControl,
    /// The peer's header fields cannot be decompressed.
    Http2Compression,
    /// The peer keeps requesting replies (PING, SETTINGS) without completing any response.
    Http2Flood,
    /// The peer reset the stream of this request (RST_STREAM).
    StreamReset,
    /// The peer refused the stream without processing the request (REFUSED_STREAM).
    StreamRefused,
    /// The peer closed the connection (GOAWAY) before it responded to this request.
    GoneAway,
    /// A gRPC call got an HTTP status other than 200.
    GrpcHttpStatus,
    /// A gRPC call got a response with another content type.
    GrpcContentType,
    /// The response to a gRPC call ended without a `grpc-status`.
    GrpcStatusMissing,
    /// A message is compressed, but no encoding is announced.
    GrpcCompressed,
    /// The response ended inside a message.
    GrpcMessageCut,
    /// A method with a single response message returned none or several, with status OK.
    GrpcMessageCount,
}

impl ErrorKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; 42] = [
        Self::ConnectRefused,
        Self::ConnectTimeout,
        Self::ConnectUnreachable,
        Self::ConnectFailed,
        Self::PortsExhausted,
        Self::FilesExhausted,
        Self::Reset,
        Self::Closed,
        Self::Timeout,
        Self::MalformedResponse,
        Self::HeadTooLarge,
        Self::TlsResponse,
        Self::SurplusBytes,
        Self::Interrupted,
        Self::Network,
        Self::TlsHandshake,
        Self::HandshakeTimeout,
        Self::TlsAlert,
        Self::TlsProtocol,
        Self::CertificateExpired,
        Self::CertificateName,
        Self::CertificateUntrusted,
        Self::CertificateInvalid,
        Self::ClientCertificate,
        Self::WrongReply,
        Self::NotHttp2,
        Self::AlpnRefused,
        Self::SettingsTimeout,
        Self::Http2Protocol,
        Self::Http2FrameSize,
        Self::Http2FlowControl,
        Self::Http2Compression,
        Self::Http2Flood,
        Self::StreamReset,
        Self::StreamRefused,
        Self::GoneAway,
        Self::GrpcHttpStatus,
        Self::GrpcContentType,
        Self::GrpcStatusMissing,
        Self::GrpcCompressed,
        Self::GrpcMessageCut,
        Self::GrpcMessageCount,
    ];

    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect-refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::ConnectUnreachable => "connect-unreachable",
            Self::ConnectFailed => "connect-failed",
            Self::PortsExhausted => "ports-exhausted",
            Self::FilesExhausted => "files-exhausted",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Timeout => "timeout",
            Self::MalformedResponse => "malformed-response",
            Self::HeadTooLarge => "head-too-large",
            Self::TlsResponse => "tls-response",
            Self::SurplusBytes => "surplus-bytes",
            Self::Interrupted => "interrupted",
            Self::Network => "network",
            Self::TlsHandshake => "tls-handshake",
            Self::HandshakeTimeout => "handshake-timeout",
            Self::TlsAlert => "tls-alert",
            Self::TlsProtocol => "tls-protocol",
            Self::CertificateExpired => "certificate-expired",
            Self::CertificateName => "certificate-name",
            Self::CertificateUntrusted => "certificate-untrusted",
            Self::CertificateInvalid => "certificate-invalid",
            Self::ClientCertificate => "client-certificate",
            Self::WrongReply => "wrong-reply",
            Self::NotHttp2 => "not-http2",
            Self::AlpnRefused => "alpn-refused",
            Self::SettingsTimeout => "settings-timeout",
            Self::Http2Protocol => "http2-protocol",
            Self::Http2FrameSize => "http2-frame-size",
            Self::Http2FlowControl => "http2-flow-control",
            Self::Http2Compression => "http2-compression",
            Self::Http2Flood => "http2-flood",
            Self::StreamReset => "stream-reset",
            Self::StreamRefused => "stream-refused",
            Self::GoneAway => "goaway",
            Self::GrpcHttpStatus => "grpc-http-status",
            Self::GrpcContentType => "grpc-content-type",
            Self::GrpcStatusMissing => "grpc-status-missing",
            Self::GrpcCompressed => "grpc-compressed",
            Self::GrpcMessageCut => "grpc-message-cut",
            Self::GrpcMessageCount => "grpc-message-count",
        }
    }

    /// Description for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connection refused: nothing listens there",
            Self::ConnectTimeout => "no answer to the connection attempt within the timeout",
            Self::ConnectUnreachable => "no route to that address",
            Self::ConnectFailed => "the connection could not be opened",
            Self::PortsExhausted => "no local port is left for another connection",
            Self::FilesExhausted => "the limit on open files is reached",
            Self::Reset => "the peer reset the connection",
            Self::Closed => "the peer closed the connection before the response was whole",
            Self::Timeout => "no whole response within the timeout",
            Self::MalformedResponse => "what came back is not an HTTP response",
            Self::HeadTooLarge => "the head of the response is beyond 256 KiB",
            Self::TlsResponse => "the peer speaks TLS on what was to be a plain connection",
            Self::SurplusBytes => "bytes followed a response that nobody asked for",
            Self::Interrupted => "the run was interrupted before the response was whole",
            Self::Network => "the network failed in another way",
            Self::TlsHandshake => "the peer does not speak TLS, or broke off the handshake",
            Self::HandshakeTimeout => "the TLS handshake was not complete within the timeout",
            Self::TlsAlert => "the peer ended the TLS session with an alert",
            Self::TlsProtocol => "the peer broke the rules of TLS after the handshake",
            Self::CertificateExpired => "the server's certificate is expired or not valid yet",
            Self::CertificateName => "the server's certificate is for another name",
            Self::CertificateUntrusted => "the server's certificate is not signed by a trusted authority",
            Self::CertificateInvalid => "the server's certificate cannot be accepted",
            Self::ClientCertificate => "the peer refused the client's certificate, or wants one",
            Self::WrongReply => "the reply has other bytes than byte i = i mod 251",
            Self::NotHttp2 => "the peer does not answer as an HTTP/2 server does",
            Self::AlpnRefused => "the peer did not choose the HTTP version that it was offered (ALPN)",
            Self::SettingsTimeout => "the peer did not announce its HTTP/2 settings within the timeout",
            Self::Http2Protocol => "the peer broke the rules of HTTP/2 (PROTOCOL_ERROR or STREAM_CLOSED)",
            Self::Http2FrameSize => {
                "a frame of the peer has a length that it may not have (FRAME_SIZE_ERROR)"
            }
            Self::Http2FlowControl => {
                "the peer sent more than it had room for, or gave more room than there can be (FLOW_CONTROL_ERROR)"
            }
            Self::Http2Compression => "header fields of the peer cannot be decompressed (COMPRESSION_ERROR)",
            Self::Http2Flood => {
                "the peer asks for answers without end, or reads none of them (ENHANCE_YOUR_CALM)"
            }
            Self::StreamReset => "the peer gave up the request (RST_STREAM)",
            Self::StreamRefused => "the peer refused the request unseen (REFUSED_STREAM)",
            Self::GoneAway => "the peer ended the connection (GOAWAY) before it answered the request",
            Self::GrpcHttpStatus => "a gRPC call was answered with an HTTP status other than 200",
            Self::GrpcContentType => "a gRPC call was answered with content that is not application/grpc",
            Self::GrpcStatusMissing => "the response to a gRPC call ended without a grpc-status",
            Self::GrpcCompressed => "a gRPC message is compressed, and nothing says how",
            Self::GrpcMessageCut => "the response to a gRPC call ended within a message",
            Self::GrpcMessageCount => {
                "a gRPC method that answers with one message answered with none or several"
            }
        }
    }

    /// What to do about it, if there is a remedy.
    #[must_use]
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Self::ConnectRefused => Some("is the server running, and is the port right?"),
            Self::ConnectUnreachable | Self::ConnectTimeout => {
                Some("check the address, the routes and any firewall")
            }
            Self::TlsResponse => Some("the port wants TLS: use https://, or the server's plain HTTP port"),
            Self::TlsHandshake => Some("does the port speak TLS 1.2 or 1.3? plain HTTP is http://"),
            Self::HandshakeTimeout => {
                Some("does the port speak TLS? else the server is too slow for --timeout")
            }
            Self::TlsAlert => Some(
                "the server's log says why: a name that it does not serve (--sni), no client certificate (--cert)?",
            ),
            Self::CertificateExpired => {
                Some("renew it, check the clock, or do not verify it with --insecure")
            }
            Self::CertificateName => {
                Some("say with --sni which name it has, or do not verify it with --insecure")
            }
            Self::CertificateUntrusted => {
                Some("name its authority with --cacert, or do not verify it with --insecure")
            }
            Self::CertificateInvalid => {
                Some("see it with `openssl x509`, or do not verify it with --insecure")
            }
            Self::ClientCertificate => {
                Some("give a certificate that the server trusts with --cert and --key")
            }
            Self::FilesExhausted => Some("use fewer --connections, or raise the limit with `ulimit -n`"),
            Self::PortsExhausted => {
                Some("keep connections alive, use fewer, or widen net.ipv4.ip_local_port_range")
            }
            Self::WrongReply => Some("a server of another kind? --no-reply-check takes any bytes"),
            Self::MalformedResponse => Some("does an HTTP server of this version listen on that port?"),
            Self::NotHttp2 | Self::SettingsTimeout => Some(
                "does the port speak HTTP/2 (a plain one: by prior knowledge)? HTTP/1.1 is without --http 2",
            ),
            Self::AlpnRefused => Some("use another --http version, or have the server offer this one"),
            Self::GrpcHttpStatus | Self::GrpcContentType => {
                Some("does a gRPC server answer there, or a proxy before it that could not reach it?")
            }
            Self::StreamReset => Some("the log of the server, or of a proxy before it, says why"),
            Self::StreamRefused => {
                Some("it takes fewer requests at once than it announced: use fewer --streams")
            }
            _ => None,
        }
    }

    /// True if the failure happens while a connection is being opened.
    pub(crate) fn is_of_connecting(self) -> bool {
        matches!(
            self,
            Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectUnreachable
                | Self::ConnectFailed
                | Self::PortsExhausted
                | Self::FilesExhausted
                | Self::TlsHandshake
                | Self::HandshakeTimeout
                | Self::TlsAlert
                | Self::CertificateExpired
                | Self::CertificateName
                | Self::CertificateUntrusted
                | Self::CertificateInvalid
                | Self::ClientCertificate
                | Self::NotHttp2
                | Self::AlpnRefused
                | Self::SettingsTimeout
        )
    }

    /// Classifies an error that occurred while a connection was opened.
    pub(crate) fn of_connect(error: &io::Error) -> Self {
        if let Some(kind) = TlsFailure::kind_of(error) {
            return kind;
        }
        match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED) => Self::ConnectRefused,
            Some(Errno::TIMEDOUT) => Self::ConnectTimeout,
            Some(Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN) => Self::ConnectUnreachable,
            Some(Errno::ADDRNOTAVAIL) => Self::PortsExhausted,
            Some(Errno::MFILE | Errno::NFILE) => Self::FilesExhausted,
            _ => Self::ConnectFailed,
        }
    }

    /// Classifies an error on an open connection.
    pub(crate) fn of_transfer(error: &io::Error) -> Self {
        if let Some(kind) = TlsFailure::kind_of(error) {
            return kind;
        }
        match Errno::from_io_error(error) {
            Some(Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED) => Self::Reset,
            Some(Errno::TIMEDOUT) => Self::Timeout,
            _ => Self::Network,
        }
    }
}

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A worker thread could not be started.
    #[error("start a worker thread")]
    Thread(#[source] io::Error),
    /// A kernel call that the event loop needs failed.
    #[error("set up the event loop")]
    EventLoop(#[source] io::Error),
    /// The agreed start is past, by this much.
    #[error("start at the agreed instant: with its warm-up the run should have started {0:.1?} ago")]
    StartMissed(std::time::Duration),
    /// io_uring was requested explicitly, and the kernel does not let this process use it.
    #[error("use io_uring")]
    IoUring(#[source] io::Error),
}

impl LoadError {
    /// What to do about it, if there is a remedy.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        let Self::IoUring(error) = self else { return None };
        Some(match Errno::from_io_error(error) {
            Some(Errno::INVAL) => {
                "it needs Linux 6.1 or later; --network auto takes epoll where io_uring is missing"
            }
            Some(Errno::NOMEM) => {
                "more memory must be lockable: raise `ulimit -l`, or let --network auto take epoll"
            }
            _ => {
                "containers often forbid it (seccomp), and so can the sysctl kernel.io_uring_disabled: allow it, or let \
                 --network auto take epoll"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_at_index_of_their_discriminant() {
        for (index, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{}", kind.name());
        }
    }
}
