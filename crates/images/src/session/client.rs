//! The HTTP client of a session: TLS with the CA certificates of the machine and the caller, and the caller's
//! proxy.

use crate::error::root_cause;
use crate::{Access, ImageReference};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;

pub(super) fn http_client(image: &ImageReference, access: &Access) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls_config(access)?)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(access.limits.connect_timeout)
        .user_agent(concat!("meshmeter/", env!("CARGO_PKG_VERSION")));
    if image.is_loopback() {
        builder = builder.no_proxy();
    } else if let Some(proxy) = &access.proxy {
        let proxy = reqwest::Proxy::all(proxy).map_err(|_| "the proxy's URL is none".to_owned())?;
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(|error| root_cause(&error))
}

fn tls_config(access: &Access) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = &access.roots {
        let unusable =
            |reason: String| format!("cannot use the certificates of {}: {reason}", path.display());
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| unusable(root_cause(&error)))?;
        let mut count = 0;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unusable(root_cause(&error)))?;
            roots.add(certificate).map_err(|error| unusable(root_cause(&error)))?;
            count += 1;
        }
        if count == 0 {
            return Err(unusable("it has none".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth())
}
