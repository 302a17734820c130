//! Certificates and keys from PEM files.

use super::TlsError;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;

/// All certificates in the file: at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const CONTENT: &str = "certificates";
    let text = read(path, CONTENT)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|cause| TlsError::Pem { content: CONTENT, path: path.to_owned(), cause })?;
    if certificates.is_empty() {
        return Err(TlsError::Absent { content: "certificate", path: path.to_owned() });
    }
    Ok(certificates)
}

/// The first private key in the file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    const CONTENT: &str = "private key";
    PrivateKeyDer::from_pem_slice(&read(path, CONTENT)?).map_err(|cause| match cause {
        Error::NoItemsFound => TlsError::Absent { content: CONTENT, path: path.to_owned() },
        cause => TlsError::Pem { content: CONTENT, path: path.to_owned(), cause },
    })
}

fn read(path: &Path, content: &'static str) -> Result<Vec<u8>, TlsError> {
    roots::read_pem_file(path).map_err(|cause| TlsError::Read { content, path: path.to_owned(), cause })
}
