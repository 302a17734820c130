//! The key of a server's certificate: its algorithm and size.

use rustls::pki_types::{AlgorithmIdentifier, CertificateDer, alg_id};
use rustls::server::ParsedCertificate;
use std::fmt;

/// Certificates that a thread remembers: more than servers usually have, and few enough for a linear search.
const MAX_KNOWN: usize = 64;

const ELLIPTIC: [(AlgorithmIdentifier, ServerKey); 4] = [
    (alg_id::ECDSA_P256, ServerKey::Elliptic("ECDSA P-256")),
    (alg_id::ECDSA_P384, ServerKey::Elliptic("ECDSA P-384")),
    (alg_id::ECDSA_P521, ServerKey::Elliptic("ECDSA P-521")),
    (alg_id::ED25519, ServerKey::Elliptic("Ed25519")),
];

/// Algorithm and size of a public key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ServerKey {
    /// Elliptic curve, by name.
    Elliptic(&'static str),
    /// RSA with this many bits in its modulus.
    Rsa(usize),
    /// Another algorithm.
    #[default]
    Other,
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elliptic(name) => f.write_str(name),
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::Other => f.write_str("other"),
        }
    }
}

impl ServerKey {
    pub(super) fn from_certificate(certificate: &CertificateDer<'_>) -> Self {
        let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return Self::Other };
        let info = parsed.subject_public_key_info();
        // SEQUENCE { SEQUENCE algorithm, BIT STRING key }
        let Some((fields, _)) = value(&info) else { return Self::Other };
        let Some((algorithm, rest)) = value(fields) else { return Self::Other };
        if let Some((_, key)) = ELLIPTIC.iter().find(|(id, _)| id.as_ref() == algorithm) {
            return *key;
        }
        let is_rsa = algorithm == alg_id::RSA_ENCRYPTION.as_ref();
        is_rsa.then(|| modulus_bits(rest)).flatten().map_or(Self::Other, Self::Rsa)
    }
}

/// Reads BIT STRING { SEQUENCE { INTEGER modulus, … } }, after a byte that counts unused bits.
fn modulus_bits(key: &[u8]) -> Option<usize> {
    let (bits, _) = value(key)?;
    let (numbers, _) = value(bits.get(1..)?)?;
    let (modulus, _) = value(numbers)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    Some((modulus.len() - zeros) * 8)
}

/// Returns the content of the first DER value, whatever its tag, and the bytes after it.
fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match *first {
        short @ 0..0x80 => (usize::from(short), rest),
        long => {
            let (length, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let length = length
                .iter()
                .try_fold(0_usize, |sum, byte| Some(sum.checked_mul(0x100)? + usize::from(*byte)))?;
            (length, rest)
        }
    };
    rest.split_at_checked(length)
}

/// Keys of recently seen certificates: with a handshake per request the same ones would be parsed over and
/// over.
#[derive(Default)]
pub(in crate::network) struct KnownKeys(Vec<(CertificateDer<'static>, ServerKey)>);

impl KnownKeys {
    pub(in crate::network) fn key_of(&mut self, certificate: &CertificateDer<'_>) -> ServerKey {
        if let Some((_, key)) = self.0.iter().find(|(known, _)| known == certificate) {
            return *key;
        }
        if self.0.len() == MAX_KNOWN {
            self.0.clear();
        }
        let key = ServerKey::from_certificate(certificate);
        self.0.push((certificate.clone().into_owned(), key));
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_a_generated_certificate_is_named() {
        let certified = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
        assert_eq!(ServerKey::from_certificate(certified.cert.der()).to_string(), "ECDSA P-256");
        assert_eq!(ServerKey::from_certificate(&CertificateDer::from(vec![0x30, 0x84, 1])), ServerKey::Other);
    }

    #[test]
    fn modulus_size_excludes_sign_byte() {
        let number = |bytes: usize| {
            let mut modulus = vec![0x02, 0x82, (bytes >> 8) as u8, bytes as u8, 0];
            modulus.resize(4 + bytes, 0xff);
            modulus
        };
        let within = |tag: u8, inner: &[u8]| {
            let length = inner.len();
            [&[tag, 0x82, (length >> 8) as u8, length as u8], inner].concat()
        };
        let numbers = within(0x30, &number(257));
        let key = within(0x03, &[&[0], &numbers[..]].concat());
        assert_eq!(modulus_bits(&key), Some(2048));
        assert_eq!(modulus_bits(&key[..40]), None);
    }
}
