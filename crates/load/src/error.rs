//! What can go wrong with a request or a connection, by kind, and what ends a run before it starts.

use crate::network::TlsFailure;
use rustix::io::Errno;
use std::io;

/// Why a request failed or a connection could not be opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(usize)]
pub enum ErrorKind {
    /// Nothing listens there.
    ConnectRefused,
    /// No answer to the connection attempt in time.
    ConnectTimeout,
    /// No route to the network or host.
    ConnectUnreachable,
    /// The connection could not be opened for another reason.
    ConnectFailed,
    /// No local port is left for another connection.
    PortsExhausted,
    /// The limit on open files is reached.
    FilesExhausted,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection before the response was whole.
    Closed,
    /// No whole response within the timeout.
    Timeout,
    /// What came back is not HTTP.
    MalformedResponse,
    /// A response head beyond the bound.
    HeadTooLarge,
    /// The peer speaks TLS on what was to be a plain connection.
    TlsResponse,
    /// Bytes after the end of a response that nobody asked for. The response before them counts as completed.
    SurplusBytes,
    /// The run was interrupted before the response was whole.
    Interrupted,
    /// Another error of the network.
    Network,
    /// The peer does not speak TLS, or broke the handshake off without a word.
    TlsHandshake,
    /// The TLS handshake was not complete in time.
    HandshakeTimeout,
    /// The peer ended the session with an alert.
    TlsAlert,
    /// The peer broke the rules of TLS after the handshake.
    TlsProtocol,
    /// The server's certificate is expired or not valid yet.
    CertificateExpired,
    /// The server's certificate is for another name.
    CertificateName,
    /// No trusted authority has signed the server's certificate.
    CertificateUntrusted,
    /// The server's certificate cannot be accepted for another reason.
    CertificateInvalid,
    /// The peer refused the client's certificate, or that there was none.
    ClientCertificate,
    /// The reply over raw TCP or TLS has other bytes than it should.
    WrongReply,
}

impl ErrorKind {
    /// Every kind, in the order of their discriminants.
    pub const ALL: [Self; 25] = [
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
    ];

    /// The name in results.
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
        }
    }

    /// What it means, for people.
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
            Self::MalformedResponse => "what came back is not an HTTP/1.1 response",
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
        }
    }

    /// What to do about it, where that can be said.
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
            Self::MalformedResponse => Some("does an HTTP/1.1 server listen on that port?"),
            _ => None,
        }
    }

    /// Whether it befalls a connection that is being opened.
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
        )
    }

    /// The kind of an error while a connection is opened.
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

    /// The kind of an error on an open connection.
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
    /// The kernel refused something that the engine's loop needs.
    #[error("set up the event loop")]
    EventLoop(#[source] io::Error),
    /// The agreed start is past, by so much.
    #[error("start at the agreed instant: with its warm-up the run should have started {0:.1?} ago")]
    StartMissed(std::time::Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_the_index_of_their_discriminant() {
        for (index, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{}", kind.name());
        }
    }
}
