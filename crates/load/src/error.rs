//! Kinds of failures of requests and connections, and errors that end a run before it starts.

use crate::network::TlsFailure;
use rustix::io::Errno;
use std::io;

/// Declares the kinds with their descriptions. A row: kind, name in results, description for people; `opening`
/// if the failure happens while a connection is being opened; what to do about it, if there is a remedy.
macro_rules! error_kinds {
    ($($(#[$remark:meta])* $kind:ident: $name:literal, $meaning:literal $(, $more:ident $(($hint:literal))?)*;)*) => {
        /// Why a request failed or a connection could not be opened.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(usize)]
        pub enum ErrorKind {
            $(#[doc = $meaning] $(#[$remark])* $kind,)*
        }

        impl ErrorKind {
            /// All kinds, in the order of their discriminants.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];
        }

        static DESCRIPTIONS: [Description; ErrorKind::ALL.len()] =
            [$(Description::new($name, $meaning)$(.$more($($hint)?))*),*];
    };
}

error_kinds! {
    ConnectRefused: "connect-refused",
        "connection refused: nothing listens there", opening,
        hint("is the server running, and is the port right?");
    ConnectTimeout: "connect-timeout",
        "no answer to the connection attempt within the timeout", opening,
        hint("check the address, the routes and any firewall");
    ConnectUnreachable: "connect-unreachable",
        "no route to that address", opening, hint("check the address, the routes and any firewall");
    ConnectFailed: "connect-failed", "the connection could not be opened", opening;
    SocketMissing: "socket-missing",
        "there is no such unix socket", opening, hint("has the server created it? it may have been removed since");
    PortsExhausted: "ports-exhausted",
        "no local port is left for another connection", opening,
        hint("keep connections alive, use fewer, give more local addresses (--source), or widen net.ipv4.ip_local_port_range");
    FilesExhausted: "files-exhausted",
        "the limit on open files is reached", opening,
        hint("use fewer --connections, or raise the limit with `ulimit -n`");
    Reset: "reset", "the peer reset the connection";
    Closed: "closed", "the peer closed the connection before the response was whole";
    Timeout: "timeout", "no whole response within the timeout";
    MalformedResponse: "malformed-response",
        "what came back is not an HTTP response",
        hint("does an HTTP server of this version listen on that port?");
    HeadTooLarge: "head-too-large", "the head of the response is beyond 256 KiB";
    TlsResponse: "tls-response",
        "the peer speaks TLS on what was to be a plain connection",
        hint("the port wants TLS: use https://, or the server's plain HTTP port");
    /// The response before them counts as completed.
    SurplusBytes: "surplus-bytes", "unrequested bytes came: after a response, or before any request";
    Interrupted: "interrupted", "the run was interrupted before the response was whole";
    Network: "network", "the network failed in another way";
    TlsHandshake: "tls-handshake",
        "the peer does not speak TLS, or broke off the handshake", opening,
        hint("does the port speak TLS 1.2 or 1.3? plain HTTP is http://");
    HandshakeTimeout: "handshake-timeout",
        "the TLS handshake was not complete within the timeout", opening,
        hint("does the port speak TLS? else the server is too slow for --timeout");
    TlsAlert: "tls-alert",
        "the peer ended the TLS session with an alert", opening,
        hint("the server's log says why: a name that it does not serve (--sni), no client certificate (--cert)?");
    TlsProtocol: "tls-protocol", "the peer broke the rules of TLS after the handshake";
    CertificateExpired: "certificate-expired",
        "the server's certificate is expired or not valid yet", opening,
        hint("renew it, check the clock, or do not verify it with --insecure");
    CertificateName: "certificate-name",
        "the server's certificate is for another name", opening,
        hint("say with --sni which name it has, or do not verify it with --insecure");
    CertificateUntrusted: "certificate-untrusted",
        "the server's certificate is not signed by a trusted authority", opening,
        hint("name its authority with --cacert, or do not verify it with --insecure");
    CertificateInvalid: "certificate-invalid",
        "the server's certificate cannot be accepted", opening,
        hint("see it with `openssl x509`, or do not verify it with --insecure");
    ClientCertificate: "client-certificate",
        "the peer refused the client's certificate, or wants one", opening,
        hint("give a certificate that the server trusts with --cert and --key");
    WrongReply: "wrong-reply",
        "the reply has other bytes than byte i = i mod 251",
        hint("a server of another kind? --no-reply-check takes any bytes");
    NotHttp2: "not-http2",
        "the peer does not answer as an HTTP/2 server does", opening,
        hint("does the port speak HTTP/2 (a plain one: by prior knowledge)? HTTP/1.1 is without --http 2");
    AlpnRefused: "alpn-refused",
        "the peer did not choose the HTTP version that it was offered (ALPN)", opening,
        hint("use another --http version, or have the server offer this one");
    SettingsTimeout: "settings-timeout",
        "the peer did not announce its HTTP/2 settings within the timeout", opening,
        hint("does the port speak HTTP/2 (a plain one: by prior knowledge)? HTTP/1.1 is without --http 2");
    UpgradeTimeout: "upgrade-timeout",
        "the server did not answer the request for a WebSocket within the timeout", opening,
        hint("does a WebSocket server answer there? plain HTTP is http://");
    UpgradeNotFound: "upgrade-not-found",
        "the server answered the request for a WebSocket with status 404", opening, hint("is the path right?");
    UpgradeDenied: "upgrade-denied",
        "the server answered the request for a WebSocket with status 401, 403 or 407", opening,
        hint("credentials and Origin are headers: --header");
    UpgradeRedirected: "upgrade-redirected",
        "the server answered the request for a WebSocket with a redirection", opening,
        hint("name the URL to which it leads: wss:// instead of ws://?");
    UpgradeUnavailable: "upgrade-unavailable",
        "the server answered the request for a WebSocket with a status of 500 or above", opening,
        hint("the log of the server, or of a proxy before it, says why");
    /// Such as a server that ignores the request for another protocol.
    UpgradeRefused: "upgrade-refused",
        "the server answered the request for a WebSocket with another status than 101", opening,
        hint("does a WebSocket server answer at that path, and does a proxy before it allow upgrades?");
    UpgradeInvalid: "upgrade-invalid",
        "the server accepted a WebSocket that was not asked for: another key, or an extension", opening;
    WebSocketProtocol: "websocket-protocol", "frames of the peer broke the rules of WebSocket";
    WebSocketMessageSize: "websocket-message-size", "a message of the peer is beyond 64 MiB";
    WebSocketFlood: "websocket-flood", "the peer sends pings and reads none of the answers";
    CloseNormal: "close-normal", "the peer closed the WebSocket (code 1000) before the answer was whole";
    CloseNoCode: "close-no-code", "the peer closed the WebSocket without a code before the answer was whole";
    CloseGoingAway: "close-going-away", "the peer closed the WebSocket (code 1001) before the answer was whole";
    CloseProtocol: "close-protocol", "the peer closed the WebSocket: it saw a violation of the protocol (code 1002)";
    CloseUnsupported: "close-unsupported",
        "the peer closed the WebSocket: it does not accept such messages (code 1003)",
        hint("a body in UTF-8 is sent as text, any other as binary");
    CloseInvalidData: "close-invalid-data",
        "the peer closed the WebSocket: the content of a message is not what it should be (code 1007)";
    ClosePolicy: "close-policy", "the peer closed the WebSocket: a message violates its policy (code 1008)";
    CloseTooLarge: "close-too-large", "the peer closed the WebSocket: a message is too large for it (code 1009)";
    CloseExtension: "close-extension",
        "the peer closed the WebSocket: it requires an extension (code 1010), of which there are none here";
    CloseInternal: "close-internal", "the peer closed the WebSocket for an error of its own (code 1011)";
    CloseRestart: "close-restart", "the peer closed the WebSocket to restart (code 1012)";
    CloseTryLater: "close-try-later", "the peer closed the WebSocket: it is overloaded (code 1013)";
    CloseGateway: "close-gateway", "a gateway closed the WebSocket: the server behind it failed (code 1014)";
    CloseApplication: "close-application", "the peer closed the WebSocket with a code of its application (3000 to 4999)";
    Http2Protocol: "http2-protocol", "the peer broke the rules of HTTP/2 (PROTOCOL_ERROR or STREAM_CLOSED)";
    Http2FrameSize: "http2-frame-size",
        "a frame of the peer has a length that it may not have (FRAME_SIZE_ERROR)";
    Http2FlowControl: "http2-flow-control",
        "the peer sent more than it had room for, or gave more room than there can be (FLOW_CONTROL_ERROR)";
    Http2Compression: "http2-compression",
        "header fields of the peer cannot be decompressed (COMPRESSION_ERROR)";
    Http2Flood: "http2-flood",
        "the peer requires responses without end, or reads none of them (ENHANCE_YOUR_CALM)";
    StreamReset: "stream-reset",
        "the peer gave up the request (RST_STREAM)",
        hint("the log of the server, or of a proxy before it, says why");
    StreamRefused: "stream-refused",
        "the peer refused the request unseen (REFUSED_STREAM)",
        hint("it takes fewer requests at once than it announced: use fewer --streams");
    GoneAway: "goaway", "the peer ended the connection (GOAWAY) before it answered the request";
    EventCut: "event-cut", "a stream of events ended within an event";
    CheckStatus: "check-status",
        "the response has a status that its kind of request does not expect",
        hint("`expect.status` in the traffic file says which statuses are right");
    CheckSize: "check-size",
        "the response is smaller or larger than its kind of request expects",
        hint("`expect` in the traffic file bounds the size, head included");
    CheckText: "check-text",
        "the body lacks a text that its kind of request expects",
        hint("`expect.text` in the traffic file; bodies are read to 1 MiB, and not decompressed");
    CheckJson: "check-json",
        "the body is not JSON with the values that its kind of request expects",
        hint("`expect.json` in the traffic file; bodies are read to 1 MiB, and not decompressed");
    ExtractFailed: "extract-failed",
        "the response lacks a value that its session takes from it",
        hint("`extract` in the traffic file; a value is a line of text of at most 16 KiB");
    DataEnded: "data-ended",
        "the data of the request have ended, so that it was not sent",
        hint("more data, or `at-end: again` in the traffic file, which begins again");
    GrpcHttpStatus: "grpc-http-status",
        "a gRPC call was answered with an HTTP status other than 200",
        hint("does a gRPC server answer there, or a proxy before it that could not reach it?");
    GrpcContentType: "grpc-content-type",
        "a gRPC call was answered with content that is not application/grpc",
        hint("does a gRPC server answer there, or a proxy before it that could not reach it?");
    GrpcStatusMissing: "grpc-status-missing", "the response to a gRPC call ended without a grpc-status";
    GrpcCompressed: "grpc-compressed", "a gRPC message is compressed, and nothing says how";
    GrpcMessageCut: "grpc-message-cut", "the response to a gRPC call ended within a message";
    /// Its status is OK.
    GrpcMessageCount: "grpc-message-count",
        "a gRPC method that answers with one message answered with none or several";
}

struct Description {
    name: &'static str,
    meaning: &'static str,
    while_opening: bool,
    hint: Option<&'static str>,
}

impl Description {
    const fn new(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, while_opening: false, hint: None }
    }

    const fn opening(self) -> Self {
        Self { while_opening: true, ..self }
    }

    const fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

impl ErrorKind {
    fn description(self) -> &'static Description {
        &DESCRIPTIONS[self as usize]
    }

    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Description for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.description().meaning
    }

    /// What to do about it, if there is a remedy.
    #[must_use]
    pub fn hint(self) -> Option<&'static str> {
        self.description().hint
    }

    /// True if the failure happens while a connection is being opened.
    pub(crate) fn is_of_connecting(self) -> bool {
        self.description().while_opening
    }

    /// Classifies an error that occurred while a connection was opened.
    pub(crate) fn of_connect(error: &io::Error) -> Self {
        if let Some(kind) = TlsFailure::kind_of(error) {
            return kind;
        }
        match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED) => Self::ConnectRefused,
            Some(Errno::TIMEDOUT) => Self::ConnectTimeout,
            Some(Errno::NOENT) => Self::SocketMissing,
            // A loopback source has no route to other machines.
            Some(Errno::INVAL) => Self::ConnectUnreachable,
            Some(Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN) => Self::ConnectUnreachable,
            Some(Errno::ADDRNOTAVAIL) => Self::PortsExhausted,
            Some(Errno::MFILE | Errno::NFILE) => Self::FilesExhausted,
            _ => Self::ConnectFailed,
        }
    }

    /// Classifies the status that answers a request for a WebSocket and agrees on none.
    pub(crate) fn of_upgrade(status: u16) -> Self {
        match status {
            101 => Self::UpgradeInvalid,
            300..=399 => Self::UpgradeRedirected,
            401 | 403 | 407 => Self::UpgradeDenied,
            404 => Self::UpgradeNotFound,
            500.. => Self::UpgradeUnavailable,
            _ => Self::UpgradeRefused,
        }
    }

    /// Classifies the code with which a peer closes a WebSocket.
    pub(crate) fn of_close(code: Option<u16>) -> Self {
        match code {
            None => Self::CloseNoCode,
            Some(1000) => Self::CloseNormal,
            Some(1001) => Self::CloseGoingAway,
            Some(1002) => Self::CloseProtocol,
            Some(1003) => Self::CloseUnsupported,
            Some(1007) => Self::CloseInvalidData,
            Some(1008) => Self::ClosePolicy,
            Some(1009) => Self::CloseTooLarge,
            Some(1010) => Self::CloseExtension,
            Some(1011) => Self::CloseInternal,
            Some(1012) => Self::CloseRestart,
            Some(1013) => Self::CloseTryLater,
            Some(1014) => Self::CloseGateway,
            Some(_) => Self::CloseApplication,
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
    use std::collections::BTreeSet;

    #[test]
    fn names_of_kinds_differ() {
        let names: BTreeSet<&str> = ErrorKind::ALL.into_iter().map(ErrorKind::name).collect();
        assert_eq!(names.len(), ErrorKind::ALL.len());
    }
}
