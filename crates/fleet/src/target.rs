//! Control planes with resolved addresses and TLS settings.

use crate::error::FleetError;
use crate::spec::{Security, Target};
use crate::transport::client_config;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

/// A target with its address resolved and its TLS set up.
#[derive(Debug)]
pub(crate) struct ResolvedTarget {
    pub(crate) address: String,
    pub(crate) socket_address: SocketAddr,
    pub(crate) server_name: ServerName<'static>,
    /// The `:authority` of requests.
    pub(crate) authority: String,
    pub(crate) security: Security,
    pub(crate) roots: Arc<[u8]>,
    /// TLS settings without a client certificate; absent: plaintext.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl ResolvedTarget {
    pub(crate) fn new(target: &Target) -> Result<Self, FleetError> {
        let failed = |cause| FleetError::Resolve { address: target.address.clone(), cause };
        let mut addresses = target.address.to_socket_addrs().map_err(failed)?;
        let none = || failed(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        let socket_address = addresses.next().ok_or_else(none)?;
        let server_name = ServerName::try_from(target.server_name.clone())
            .map_err(|_| FleetError::ServerName(target.server_name.clone()))?;
        let tls = match target.security {
            Security::Plaintext => None,
            Security::Token | Security::MutualTls => {
                let config = client_config(&target.roots)
                    .map_err(|cause| FleetError::Tls { address: target.address.clone(), cause })?;
                Some(Arc::new(config))
            }
        };
        Ok(Self {
            address: target.address.clone(),
            socket_address,
            server_name,
            authority: format!("{}:{}", target.server_name, socket_address.port()),
            security: target.security,
            roots: Arc::clone(&target.roots),
            tls,
        })
    }
}
