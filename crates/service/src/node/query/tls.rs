//! TLS to databases.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// `authority`: certificates that verify the databases, by default the system's.
pub(crate) fn client_config(authority: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let roots = match authority {
        Some(file) => Ok(read(file).map_err(|error| {
            format!("certificates to verify databases with, {}: {error}", file.display())
        })?),
        // A database without TLS needs none.
        None => roots::of_system(),
    };
    Ok(Arc::new(roots::client_config(roots)))
}

fn read(file: &Path) -> Result<RootCertStore, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&fs::read(file)?) {
        roots.add(certificate?)?;
    }
    if roots.is_empty() { Err("it has none".into()) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_usable_certificates_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (content, reason) in [("no PEM", "it has none"), (garbage, "invalid peer certificate")] {
            fs::write(&file, content).unwrap();
            let error = client_config(Some(file.path())).unwrap_err();
            let named = format!("certificates to verify databases with, {}: {reason}", file.path().display());
            assert!(error.starts_with(&named), "{error}");
        }
        let error = client_config(Some(Path::new("/nowhere/ca.pem"))).unwrap_err();
        assert!(error.contains("/nowhere/ca.pem: No such file"), "{error}");
    }
}
