//! Certificates and keys from PEM files.

use super::TlsError;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Far larger than any bundle of authorities; bounds the cost of a wrong file.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

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
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text))
        .and_then(|length| {
            if length as u64 > MAX_FILE_BYTES {
                return Err(io::Error::other("larger than 16 MiB"));
            }
            Ok(text)
        })
        .map_err(|cause| TlsError::Read { content, path: path.to_owned(), cause })
}
