//! Errors when a fleet starts.

use std::io;

/// Reason why a fleet cannot start.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no control plane to connect to.
    #[error("a fleet needs a control plane to connect to")]
    NoTarget,
    /// There are no proxies.
    #[error("a fleet needs proxies")]
    NoProxies,
    /// The address of a control plane cannot be resolved.
    #[error("find the address of the control plane `{address}`")]
    Resolve {
        /// Address as given.
        address: String,
        /// Error of the resolver.
        #[source]
        cause: io::Error,
    },
    /// The name of a control plane is not a valid server name.
    #[error("`{0}` cannot be the name in a control plane's certificate")]
    ServerName(String),
    /// TLS cannot be set up.
    #[error("set up TLS for the control plane `{address}`")]
    Tls {
        /// Address of the control plane.
        address: String,
        /// Error of the TLS library.
        #[source]
        cause: rustls::Error,
    },
    /// A proxy that needs a token has none.
    #[error("the proxy `{0}` has no token; security `token` and `mutual-tls` need one")]
    NoToken(String),
    /// Certificates cannot be requested, since the control plane at this address is connected without TLS.
    #[error("certificates are requested by TLS, and connections to `{0}` are in plaintext")]
    NoAuthority(String),
    /// The process may not open enough sockets.
    #[error("{needed} open files are needed; the limit is {limit} (raise it: `ulimit -Hn {needed}`)")]
    OpenFiles {
        /// Number needed for the fleet's connections.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// A thread or its event loop cannot be created.
    #[error("start a thread of the fleet")]
    Thread(#[source] io::Error),
}
