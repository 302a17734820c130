//! Names of images.

use std::fmt;
use std::str::FromStr;

use crate::digest::Digest;

const DOCKER_HUB: &str = "docker.io";
/// Host of Docker Hub's registry API.
const DOCKER_HUB_HOST: &str = "registry-1.docker.io";
const MAX_REPOSITORY_BYTES: usize = 255;
const MAX_TAG_BYTES: usize = 128;

/// Name of an image or chart in a registry: `docker.io/istio/pilot:1.30.1`,
/// `localhost:5000/istio/pilot@sha256:…`. As in Docker, the registry defaults to Docker Hub and the tag to
/// `latest`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageReference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// The text is not the name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not the name of an image: {reason}")]
pub struct InvalidReference {
    text: String,
    reason: &'static str,
}

impl ImageReference {
    /// Registry as written: `docker.io`, `localhost:5000`.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Repository within the registry: `istio/pilot`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Tag, if the name has one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    pub(crate) fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Host and port of the registry's server.
    pub(crate) fn host(&self) -> &str {
        if self.registry == DOCKER_HUB { DOCKER_HUB_HOST } else { &self.registry }
    }

    /// The tag or digest in a manifest's URL.
    pub(crate) fn version(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// True if the registry is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.registry.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let host = host.map_or(self.registry.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for ImageReference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let invalid = |reason| InvalidReference { text: crate::error::one_line(text, 300), reason };
        let name = text.strip_prefix("oci://").unwrap_or(text);
        let (name, digest) = match name.split_once('@') {
            Some((name, digest)) => {
                let digest =
                    digest.parse().map_err(|()| invalid("the digest is not one of SHA-256 or SHA-512"))?;
                (name, Some(digest))
            }
            None => (name, None),
        };
        // A colon before a slash belongs to the registry's port.
        let (name, tag) = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (name, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(invalid("the tag has characters that tags do not have"));
        }
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (DOCKER_HUB, name),
        };
        if !is_registry(registry) {
            return Err(invalid("the registry is not a host, with or without a port"));
        }
        let registry = if registry == "index.docker.io" { DOCKER_HUB } else { registry };
        let repository = if registry == DOCKER_HUB && !repository.contains('/') {
            format!("library/{repository}")
        } else {
            repository.to_owned()
        };
        if repository.len() > MAX_REPOSITORY_BYTES || !repository.split('/').all(is_component) {
            return Err(invalid("the repository is not lower-case words with slashes between"));
        }
        Ok(Self { registry: registry.to_owned(), repository, tag: tag.map(str::to_owned), digest })
    }
}

/// `host`, `host:port`, `[address]:port`.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((address, port)) = rest.split_once(']') else { return false };
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            ("localhost", port.strip_prefix(':').or(port.is_empty().then_some("443")))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("443")),
        },
    };
    let is_host = host.split('.').all(|label| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    });
    is_host && port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0))
}

fn is_component(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_word)
        && bytes.last().is_some_and(is_word)
        && bytes.iter().all(|byte| is_word(byte) || matches!(byte, b'.' | b'_' | b'-'))
        && !text.contains("..")
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= MAX_TAG_BYTES
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, String) {
        let reference: ImageReference = text.parse().unwrap();
        (reference.host().to_owned(), reference.repository.clone(), reference.version())
    }

    fn owned(host: &str, repository: &str, version: &str) -> (String, String, String) {
        (host.to_owned(), repository.to_owned(), version.to_owned())
    }

    #[test]
    fn names_are_parsed_as_by_docker() {
        assert_eq!(
            parts("docker.io/istio/pilot:1.30.1"),
            owned("registry-1.docker.io", "istio/pilot", "1.30.1")
        );
        assert_eq!(parts("istio/pilot:1"), owned("registry-1.docker.io", "istio/pilot", "1"));
        assert_eq!(parts("nginx"), owned("registry-1.docker.io", "library/nginx", "latest"));
        assert_eq!(parts("localhost/a"), owned("localhost", "a", "latest"));
        assert_eq!(parts("localhost:5000/a/b"), owned("localhost:5000", "a/b", "latest"));
        assert_eq!(parts("[::1]:5000/a:b"), owned("[::1]:5000", "a", "b"));
        assert_eq!(parts("oci://ghcr.io/istio/release/charts/base:1.30.1").0, "ghcr.io");
        let digest = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(parts(&format!("quay.io/a/b:c@{digest}")), owned("quay.io", "a/b", &digest));
    }

    #[test]
    fn name_is_shown_with_registry() {
        let shown = |text: &str| text.parse::<ImageReference>().unwrap().to_string();
        assert_eq!(shown("istio/pilot:1"), "docker.io/istio/pilot:1");
        assert_eq!(shown("index.docker.io/istio/pilot"), "docker.io/istio/pilot");
    }

    #[test]
    fn invalid_names_are_rejected() {
        for text in [
            "",
            "/",
            "a/",
            "A/b",
            "a b",
            "x.y:port/a",
            "x.y:0/a",
            "x.y/../a",
            "x.y/a:",
            "x.y/a:-b",
            "x.y/a@sha256:0",
            "[::1/a",
            "[1.2.3.4]:1/a",
            "x.y/a@md5:00",
            "x..y/a",
            "x.y/a?b",
            "x.y/a#b",
            "user@x.y/a",
            "x.y/a%2e",
        ] {
            assert!(text.parse::<ImageReference>().is_err(), "{text}");
        }
    }

    #[test]
    fn loopback_is_recognised_by_name_or_address() {
        let is_loopback = |text: &str| text.parse::<ImageReference>().unwrap().is_loopback();
        assert!(is_loopback("localhost:5000/a") && is_loopback("127.0.0.1:1/a") && is_loopback("[::1]:1/a"));
        assert!(!is_loopback("localhost.example.org/a") && !is_loopback("10.0.0.1:1/a") && !is_loopback("a"));
    }
}
