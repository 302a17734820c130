//! Errors at the start of a fleet.

use std::io;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Nothing to connect to.
    #[error("a fleet needs a control plane to connect to")]
    NoTarget,
    /// Nothing that connects.
    #[error("a fleet needs proxies")]
    NoProxies,
    /// The address of a control plane leads nowhere.
    #[error("find the address of the control plane `{address}`")]
    Resolve {
        /// As given.
        address: String,
        /// Cause.
        #[source]
        cause: io::Error,
    },
    /// The name of a control plane is no name.
    #[error("`{0}` cannot be the name in a control plane's certificate")]
    ServerName(String),
    /// TLS cannot be set up.
    #[error("set up TLS for the control plane `{address}`")]
    Tls {
        /// The control plane.
        address: String,
        /// Cause.
        #[source]
        cause: rustls::Error,
    },
    /// A proxy has no token where one is needed.
    #[error("the proxy `{0}` has no token; security `token` and `mutual-tls` need one")]
    NoToken(String),
    /// Certificates cannot be requested.
    #[error("certificates are requested by TLS, and connections to `{0}` are in plain text")]
    NoAuthority(String),
    /// The process may not open as many sockets.
    #[error("{needed} open files are needed; the limit is {limit} (raise it: `ulimit -Hn {needed}`)")]
    OpenFiles {
        /// For the fleet's connections.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// A thread or its event loop cannot be made.
    #[error("start a thread of the fleet")]
    Thread(#[source] io::Error),
}
