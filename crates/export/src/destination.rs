//! Receivers of metrics: where they are and what they speak.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::sync::Arc;

/// Path of a Prometheus that receives remote writes, for URLs without one.
const REMOTE_WRITE_PATH: &str = "/api/v1/write";
/// Path of metrics of an OpenTelemetry collector, for URLs without one.
const OTLP_PATH: &str = "/v1/metrics";
/// Header of remote write that names its version.
pub(crate) const REMOTE_WRITE_VERSION: HeaderName =
    HeaderName::from_static("x-prometheus-remote-write-version");

/// A receiver.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Without credentials.
    pub(crate) uri: Uri,
    pub(crate) protocol: Protocol,
    pub(crate) headers: HeaderMap,
    pub(crate) authorities: Authorities,
}

/// Certificate authorities that a receiver's HTTPS is verified against.
#[derive(Clone, Debug, Default)]
pub enum Authorities {
    /// Those of the system.
    #[default]
    System,
    /// These alone.
    Private(Arc<RootCertStore>),
}

/// A text without certificate authorities.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AuthoritiesError {
    /// No PEM block of a certificate.
    #[error("no certificate in PEM")]
    Empty,
    /// A certificate that cannot be read.
    #[error("certificate {number} cannot be read: {reason}")]
    Certificate {
        /// From 1.
        number: usize,
        /// Cause, in a few words.
        reason: String,
    },
}

impl Authorities {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// There is none, or one cannot be read.
    pub fn from_pem(text: &[u8]) -> Result<Self, AuthoritiesError> {
        let mut roots = RootCertStore::empty();
        for (index, certificate) in CertificateDer::pem_slice_iter(text).enumerate() {
            let unreadable = |reason| AuthoritiesError::Certificate { number: index + 1, reason };
            let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(AuthoritiesError::Empty);
        }
        Ok(Self::Private(Arc::new(roots)))
    }
}

/// What a receiver speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// Prometheus remote write 1.0.
    RemoteWrite1(HistogramForm),
    /// Prometheus remote write 2.0.
    RemoteWrite2(HistogramForm),
    /// OTLP over HTTP, protobuf.
    Otlp,
}

/// Form of histograms in remote write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HistogramForm {
    /// A series per bucket.
    Classic,
    /// One series with exponential buckets.
    Native,
}

/// A URL that cannot be sent to.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DestinationError {
    /// No URL.
    #[error("not a URL: {0}")]
    Url(String),
    /// Neither `http` nor `https`.
    #[error("expected http:// or https://, such as {0}")]
    Scheme(&'static str),
}

/// A header that cannot be added.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderError {
    /// Not a name and a value.
    #[error("expected a name and a value, such as 'Authorization: Bearer TOKEN'")]
    Form,
    /// The protocol needs it for itself.
    #[error("the header `{0}` is set by the protocol")]
    Reserved(String),
}

impl Protocol {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RemoteWrite1(_) => "remote-write-1",
            Self::RemoteWrite2(_) => "remote-write-2",
            Self::Otlp => "otlp",
        }
    }

    /// Name for people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::RemoteWrite1(_) | Self::RemoteWrite2(_) => "remote write",
            Self::Otlp => "OTLP",
        }
    }

    fn default_path(self) -> &'static str {
        if self == Self::Otlp { OTLP_PATH } else { REMOTE_WRITE_PATH }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Otlp => "http://127.0.0.1:4318/v1/metrics",
            _ => "http://127.0.0.1:9090/api/v1/write",
        }
    }
}

impl Destination {
    /// A receiver at a URL; without a path, at the usual one of its protocol. Credentials in the URL become a header.
    ///
    /// # Errors
    /// The URL cannot be read, or is not for HTTP.
    pub fn new(url: &str, protocol: Protocol, mut headers: HeaderMap) -> Result<Self, DestinationError> {
        let uri: Uri =
            url.parse().map_err(|error: http::uri::InvalidUri| DestinationError::Url(error.to_string()))?;
        let mut parts = uri.into_parts();
        let is_http = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
        if !parts.scheme.as_ref().is_some_and(is_http) {
            return Err(DestinationError::Scheme(protocol.example()));
        }
        if let Some(authority) = parts.authority.take() {
            let (authority, credentials) = without_credentials(&authority)?;
            parts.authority = Some(authority);
            if let Some(value) = credentials {
                headers.entry(AUTHORIZATION).or_insert(value);
            }
        }
        if parts.path_and_query.as_ref().is_none_or(|path| path == "/") {
            parts.path_and_query = Some(PathAndQuery::from_static(protocol.default_path()));
        }
        let uri = Uri::from_parts(parts).map_err(|error| DestinationError::Url(error.to_string()))?;
        Ok(Self { uri, protocol, headers, authorities: Authorities::System })
    }

    /// The receiver, verified against these authorities where it speaks HTTPS.
    #[must_use]
    pub fn with_authorities(self, authorities: Authorities) -> Self {
        Self { authorities, ..self }
    }

    /// Whether the URL is for HTTPS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    /// The URL without credentials and query, which may hold a secret.
    #[must_use]
    pub fn shown(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or("http");
        let authority = self.uri.authority().map(Authority::as_str).unwrap_or_default();
        format!("{scheme}://{authority}{}", self.uri.path())
    }
}

fn without_credentials(authority: &Authority) -> Result<(Authority, Option<HeaderValue>), DestinationError> {
    let Some((credentials, host)) = authority.as_str().rsplit_once('@') else {
        return Ok((authority.clone(), None));
    };
    let failed = |error: http::uri::InvalidUri| DestinationError::Url(error.to_string());
    let credentials = percent_decoded(credentials);
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(credentials)))
        .map_err(|error| DestinationError::Url(error.to_string()))?;
    value.set_sensitive(true);
    Ok((host.parse().map_err(failed)?, Some(value)))
}

/// Bytes of a text in which some are written as `%41`. A `%` of anything else stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let coded = (*first == b'%').then(|| others.get(..2)).flatten();
        let byte = coded.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &others[2..] } else { others };
    }
    decoded
}

/// Reads a header such as `Authorization: Bearer TOKEN`.
///
/// # Errors
/// It is none, or one that the protocols set themselves.
pub fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), HeaderError> {
    let (name, value) = text.split_once(':').ok_or(HeaderError::Form)?;
    let name: HeaderName = name.trim().parse().map_err(|_| HeaderError::Form)?;
    let value: HeaderValue = value.trim().parse().map_err(|_| HeaderError::Form)?;
    let reserved = [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT, REMOTE_WRITE_VERSION];
    if reserved.contains(&name) {
        return Err(HeaderError::Reserved(name.to_string()));
    }
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE_WRITE: Protocol = Protocol::RemoteWrite1(HistogramForm::Classic);

    fn destination(url: &str, protocol: Protocol) -> Destination {
        Destination::new(url, protocol, HeaderMap::new()).unwrap()
    }

    #[test]
    fn a_url_without_a_path_has_that_of_its_protocol() {
        for (url, protocol, expected) in [
            ("http://a:9090", REMOTE_WRITE, "http://a:9090/api/v1/write"),
            ("http://a:9090/", REMOTE_WRITE, "http://a:9090/api/v1/write"),
            ("https://a/push", REMOTE_WRITE, "https://a/push"),
            ("http://a:4318", Protocol::Otlp, "http://a:4318/v1/metrics"),
            ("http://[::1]:4318/x?token=1", Protocol::Otlp, "http://[::1]:4318/x"),
        ] {
            assert_eq!(destination(url, protocol).shown(), expected);
        }
        assert_eq!(destination("http://a/x?token=1", REMOTE_WRITE).uri.query(), Some("token=1"));
    }

    #[test]
    fn credentials_become_a_header_and_are_not_shown() {
        let destination = destination("http://tom:a%40b@a/push", REMOTE_WRITE);
        assert_eq!((destination.shown().as_str(), destination.uri.host()), ("http://a/push", Some("a")));
        // tom:a@b
        assert_eq!(destination.headers[AUTHORIZATION], "Basic dG9tOmFAYg==");
        assert!(!format!("{destination:?}").contains("dG9t"), "{destination:?}");
    }

    #[test]
    fn authorities_without_a_certificate_are_an_error() {
        let block =
            |content: &str| format!("-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n");
        for text in ["", "not PEM", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert_eq!(
                Authorities::from_pem(text.as_bytes()).unwrap_err(),
                AuthoritiesError::Empty,
                "{text}"
            );
        }
        for content in ["AAAA", "not base64"] {
            let error = Authorities::from_pem(block(content).as_bytes()).unwrap_err();
            assert!(matches!(error, AuthoritiesError::Certificate { number: 1, .. }), "{content}: {error}");
        }
    }

    #[test]
    fn what_is_no_receiver_is_an_error() {
        for url in ["", "127.0.0.1:9090", "ftp://a/", "/api/v1/write", "http://"] {
            assert!(Destination::new(url, REMOTE_WRITE, HeaderMap::new()).is_err(), "{url}");
        }
        assert_eq!(
            parse_header("content-type: text/plain"),
            Err(HeaderError::Reserved("content-type".to_owned()))
        );
        assert_eq!(parse_header("no colon"), Err(HeaderError::Form));
        assert_eq!(parse_header("X-Scope-OrgID: 1").unwrap().1, "1");
    }
}
