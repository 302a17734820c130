//! Names that can be given to others: stable, salted hashes.

use ring::hmac;

/// Number of hash characters in a name: 40 bits, so that thousands of names do not collide.
const HASH_CHARACTERS: usize = 10;

/// Hashes names with a salt. The same salt gives the same names.
#[derive(Clone)]
pub struct Anonymiser {
    key: hmac::Key,
}

impl std::fmt::Debug for Anonymiser {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Anonymiser")
    }
}

impl Anonymiser {
    /// Anonymiser with a salt, which must stay secret: names are easily guessed.
    #[must_use]
    pub fn new(salt: &[u8]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, salt) }
    }

    /// Hash of a name, as a name of a Service.
    #[must_use]
    pub fn hashed(&self, text: &str) -> String {
        let tag = hmac::sign(&self.key, text.as_bytes());
        let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("n{}", &digits[..HASH_CHARACTERS])
    }

    /// Hash of a host: of its name and its namespace, if it is one of a cluster. Other names are hashed whole.
    #[must_use]
    pub fn hashed_host(&self, text: &str) -> String {
        match service_names(text) {
            Some((namespace, name)) => {
                format!("{}.{}.svc.cluster.local", self.hashed(name), self.hashed(namespace))
            }
            None => self.hashed(text),
        }
    }
}

/// Namespace and name of a host that is a cluster's Service.
pub(crate) fn service_names(host: &str) -> Option<(&str, &str)> {
    let mut parts = host.splitn(3, '.');
    let (name, namespace, rest) = (parts.next()?, parts.next()?, parts.next()?);
    (rest == "svc" || rest.starts_with("svc.")).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_under_a_salt_and_differ_under_another() {
        let (one, same, other) = (Anonymiser::new(b"a"), Anonymiser::new(b"a"), Anonymiser::new(b"b"));
        assert_eq!(one.hashed("cart"), same.hashed("cart"));
        assert_ne!(one.hashed("cart"), other.hashed("cart"));
        assert_ne!(one.hashed("cart"), one.hashed("carts"));
        assert_eq!(one.hashed("cart").len(), 11);
        assert_eq!(
            one.hashed_host("cart.shop.svc.cluster.local"),
            format!("{}.{}.svc.cluster.local", one.hashed("cart"), one.hashed("shop"))
        );
        assert!(!one.hashed_host("api.bank.example").contains("bank"));
    }
}
