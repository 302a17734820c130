//! The HTTP client of a session: TLS with the CA certificates of the machine and the caller, and the caller's
//! proxy.

use crate::error::root_cause;
use crate::{Access, ImageReference};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

pub(super) fn http_client(image: &ImageReference, access: &Access) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls_config(access)?)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(access.limits.connect_timeout);
    if let Some(user_agent) = &access.user_agent {
        builder = builder.user_agent(user_agent);
    }
    if image.is_loopback() {
        builder = builder.no_proxy();
    } else if let Some(proxy) = &access.proxy {
        let proxy = reqwest::Proxy::all(proxy).map_err(|_| "the proxy's URL is not valid".to_owned())?;
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(|error| root_cause(&error))
}

fn tls_config(access: &Access) -> Result<rustls::ClientConfig, String> {
    let mut roots = roots::of_system();
    if let Some(path) = &access.roots {
        let mut all = roots.unwrap_or_else(|_| rustls::RootCertStore::empty());
        let unusable =
            |reason: String| format!("cannot use the certificates of {}: {reason}", path.display());
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| unusable(root_cause(&error)))?;
        let mut count = 0;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unusable(root_cause(&error)))?;
            all.add(certificate).map_err(|error| unusable(root_cause(&error)))?;
            count += 1;
        }
        if count == 0 {
            return Err(unusable("it has none".to_owned()));
        }
        roots = Ok(all);
    }
    Ok(roots::client_config(roots))
}
