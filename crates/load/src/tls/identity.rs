//! Certificates that the client presents.

use super::TlsError;
use crate::target::Text;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Maximum number of identities: anything greater is taken for a typo.
pub(super) const MAX_IDENTITIES: usize = 10_000;

/// A certificate that the client presents if a server requests one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientIdentity {
    /// Its certificate chain (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

impl ClientIdentity {
    /// The identities in files with these names, in which a range such as `{1..100}` stands for each of its numbers. With a range in
    /// the name of the certificates alone they share a key.
    ///
    /// # Errors
    /// Returns an error if these are not the names of pairs.
    pub fn numbered(certificate: &Path, key: &Path) -> Result<Vec<Self>, TlsError> {
        let pair = |(certificate, key)| Self { certificate, key };
        match (files(certificate), files(key)) {
            (Some(certificates), Some(keys)) if certificates.len() == keys.len() => {
                Ok(certificates.into_iter().zip(keys).map(pair).collect())
            }
            (Some(certificates), Some(keys)) if keys.len() == 1 => {
                Ok(certificates.into_iter().zip(keys.into_iter().cycle()).map(pair).collect())
            }
            _ => Err(TlsError::Pairs { certificate: certificate.to_owned(), key: key.to_owned() }),
        }
    }
}

/// The files of this name; `None` if it has several ranges or too long a one.
fn files(name: &Path) -> Option<Vec<PathBuf>> {
    let text = Text::literal(name.as_os_str().as_bytes()).with_ranges();
    let ranges: Vec<_> = text.ranges().collect();
    let file = |number| {
        let mut file = Vec::new();
        text.write(&[number], &mut file);
        OsString::from_vec(file).into()
    };
    match ranges[..] {
        [] => Some(vec![name.to_owned()]),
        [range] if range.count() <= MAX_IDENTITIES as u64 => {
            Some((range.first..=range.last).map(file).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_stands_for_each_of_its_numbers() {
        let pairs = |certificate: &str, key: &str| {
            let identities = ClientIdentity::numbered(Path::new(certificate), Path::new(key));
            identities.map(|all| {
                let pair =
                    |one: ClientIdentity| [one.certificate, one.key].map(|file| file.display().to_string());
                all.into_iter().map(pair).collect::<Vec<_>>()
            })
        };
        let of = |texts: &[[&str; 2]]| texts.iter().map(|pair| pair.map(str::to_owned)).collect::<Vec<_>>();
        assert_eq!(pairs("c.pem", "c.key").unwrap(), of(&[["c.pem", "c.key"]]));
        assert_eq!(
            pairs("c/{09..10}.pem", "k/{1..2}").unwrap(),
            of(&[["c/09.pem", "k/1"], ["c/10.pem", "k/2"]])
        );
        assert_eq!(pairs("{1..2}", "{a}").unwrap(), of(&[["1", "{a}"], ["2", "{a}"]]));
        for (certificate, key) in
            [("{1..2}", "{1..3}"), ("c", "{1..2}"), ("{1..2}{1..2}", "k"), ("{1..10001}", "k")]
        {
            assert!(
                pairs(certificate, key).unwrap_err().to_string().contains("pairs of files"),
                "{certificate} {key}"
            );
        }
    }
}
