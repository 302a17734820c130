//! Certificates of a thread's proxies: requested when first needed, shared according to the spec, replaced on
//! rotation.

use crate::certificate::{Applicant, request_certificate};
use crate::spec::CertificateSharing;
use crate::target::ResolvedTarget;
use crate::transport::{Ending, EndingKind, Route, client_config_with_identity};
use crate::xds::ProxySpec;
use rustls::ClientConfig;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// A certificate that is present or being requested.
type Slot = Rc<OnceCell<Arc<ClientConfig>>>;

/// Owner of a certificate: the control plane's address, and the service account or proxy.
type Owner = (String, String, String);

/// Certificates by owner.
pub(crate) struct Certificates {
    sharing: CertificateSharing,
    timeout: Duration,
    slots: RefCell<HashMap<Owner, Slot>>,
}

impl Certificates {
    pub(crate) fn new(sharing: CertificateSharing, timeout: Duration) -> Self {
        Self { sharing, timeout, slots: RefCell::new(HashMap::new()) }
    }

    fn owner(&self, target: &ResolvedTarget, proxy: &ProxySpec) -> Owner {
        let name = match self.sharing {
            CertificateSharing::ServiceAccount => &proxy.service_account,
            CertificateSharing::None => &proxy.name,
        };
        (target.address.clone(), proxy.namespace.clone(), name.clone())
    }

    /// TLS configuration with the proxy's certificate. Proxies that share a certificate wait for the same request.
    pub(crate) async fn config(
        &self,
        target: &ResolvedTarget,
        proxy: &ProxySpec,
        token: &str,
        buffer: &RefCell<Vec<u8>>,
    ) -> Result<Arc<ClientConfig>, Ending> {
        let owner = self.owner(target, proxy);
        let slot = Rc::clone(self.slots.borrow_mut().entry(owner).or_default());
        let requested = slot.get_or_try_init(|| self.request(target, proxy, token, buffer)).await;
        requested.map(Arc::clone)
    }

    /// Drops the certificate: the next connection requests another.
    pub(crate) fn forget(&self, target: &ResolvedTarget, proxy: &ProxySpec) {
        self.slots.borrow_mut().remove(&self.owner(target, proxy));
    }

    async fn request(
        &self,
        target: &ResolvedTarget,
        proxy: &ProxySpec,
        token: &str,
        buffer: &RefCell<Vec<u8>>,
    ) -> Result<Arc<ClientConfig>, Ending> {
        let route = Route {
            address: target.socket_address,
            source: None,
            server_name: &target.server_name,
            tls: target.tls.as_ref(),
        };
        let applicant = Applicant {
            namespace: &proxy.namespace,
            service_account: &proxy.service_account,
            cluster_id: &proxy.cluster_id,
            token,
        };
        let request = request_certificate(&route, &target.authority, &applicant, buffer);
        let silent = |_| Ending::new(EndingKind::ConnectTimeout, "the certificate authority does not answer");
        let identity = tokio::time::timeout(self.timeout, request).await.map_err(silent)??;
        let config = client_config_with_identity(&target.roots, identity.chain, identity.key)
            .map_err(|error| Ending::for_tls(&error))?;
        Ok(Arc::new(config))
    }
}
