//! Receivers of metrics: URL, protocol, headers and certificate authorities.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use results::{percent_decoded, split_credentials, split_scheme};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::sync::Arc;

/// Default path of a Prometheus remote-write receiver.
const REMOTE_WRITE_PATH: &str = "/api/v1/write";
/// Default path for metrics of an OpenTelemetry collector.
const OTLP_PATH: &str = "/v1/metrics";
/// Remote-write header with the protocol version.
pub(crate) const REMOTE_WRITE_VERSION: HeaderName =
    HeaderName::from_static("x-prometheus-remote-write-version");

/// A receiver of metrics.
#[derive(Clone, Debug)]
pub struct Destination {
    /// URI without credentials.
    pub(crate) uri: Uri,
    pub(crate) protocol: Protocol,
    pub(crate) headers: HeaderMap,
    pub(crate) authorities: Authorities,
}

/// Certificate authorities used to verify a receiver's HTTPS certificate.
#[derive(Clone, Debug, Default)]
pub enum Authorities {
    /// The system's certificate authorities.
    #[default]
    System,
    /// Only these certificate authorities.
    Private(Arc<RootCertStore>),
}

/// The text does not contain usable certificate authorities.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AuthoritiesError {
    /// There is no PEM block with a certificate.
    #[error("no certificate in PEM")]
    Empty,
    /// A certificate that cannot be parsed.
    #[error("certificate {number} cannot be read: {reason}")]
    Certificate {
        /// Position of the certificate, starting at 1.
        number: usize,
        /// Short description of the cause.
        reason: String,
    },
}

impl Authorities {
    /// Parses certificates in PEM format.
    ///
    /// # Errors
    /// Returns an error if there is no certificate, or if one cannot be parsed.
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

/// Protocol of a receiver.
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
    /// One series per bucket.
    Classic,
    /// One series with exponential buckets.
    Native,
}

/// A URL that cannot be used as a receiver.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DestinationError {
    /// The text is not a URL.
    #[error("not a URL: {0}")]
    Url(String),
    /// The scheme is neither `http` nor `https`.
    #[error("expected http:// or https://, such as {0}")]
    Scheme(&'static str),
}

/// A header that cannot be added.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderError {
    /// The text is not a name and a value.
    #[error("expected a name and a value, such as 'Authorization: Bearer TOKEN'")]
    Form,
    /// The protocol sets this header itself.
    #[error("the header `{0}` is set by the protocol")]
    Reserved(String),
}

impl Protocol {
    /// Name in result files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RemoteWrite1(_) => "remote-write-1",
            Self::RemoteWrite2(_) => "remote-write-2",
            Self::Otlp => "otlp",
        }
    }

    /// Display name.
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
    /// A receiver at a URL. Without a path, the default path of its protocol is used. Credentials in the URL
    /// become a header.
    ///
    /// # Errors
    /// Returns an error if the URL cannot be parsed, or if it is not an HTTP URL.
    pub fn new(url: &str, protocol: Protocol, headers: HeaderMap) -> Result<Self, DestinationError> {
        let (uri, headers) = parse_url(url, protocol.default_path(), protocol.example(), headers)?;
        Ok(Self { uri, protocol, headers, authorities: Authorities::System })
    }

    /// Uses these certificate authorities to verify the receiver if it uses HTTPS.
    #[must_use]
    pub fn with_authorities(self, authorities: Authorities) -> Self {
        Self { authorities, ..self }
    }

    /// True if the URL uses HTTPS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    /// The URL without credentials and query, which may contain secrets.
    #[must_use]
    pub fn shown(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or("http");
        let authority = self.uri.authority().map(Authority::as_str).unwrap_or_default();
        format!("{scheme}://{authority}{}", self.uri.path())
    }
}

/// URL without credentials, which become a header, and with a path.
pub(crate) fn parse_url(
    url: &str,
    default_path: &'static str,
    example: &'static str,
    mut headers: HeaderMap,
) -> Result<(Uri, HeaderMap), DestinationError> {
    let (scheme, rest) = split_scheme(url);
    let (credentials, rest) = split_credentials(rest);
    let uri: Uri = format!("{scheme}{rest}")
        .parse()
        .map_err(|error: http::uri::InvalidUri| DestinationError::Url(error.to_string()))?;
    let mut parts = uri.into_parts();
    let is_http = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    if !parts.scheme.as_ref().is_some_and(is_http) {
        return Err(DestinationError::Scheme(example));
    }
    if let Some(credentials) = credentials {
        headers.entry(AUTHORIZATION).or_insert(authorization(credentials)?);
    }
    if parts.path_and_query.as_ref().is_none_or(|path| path == "/") {
        parts.path_and_query = Some(PathAndQuery::from_static(default_path));
    }
    let uri = Uri::from_parts(parts).map_err(|error| DestinationError::Url(error.to_string()))?;
    Ok((uri, headers))
}

/// Basic authentication with the credentials of a URL.
fn authorization(credentials: &str) -> Result<HeaderValue, DestinationError> {
    let encoded = STANDARD.encode(percent_decoded(credentials));
    let mut value = HeaderValue::try_from(format!("Basic {encoded}"))
        .map_err(|error| DestinationError::Url(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Parses a header such as `Authorization: Bearer TOKEN`.
///
/// # Errors
/// Returns an error if the text is not a header, or if the protocols set this header themselves.
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
    fn url_without_path_has_default_path_of_protocol() {
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
    fn credentials_become_header_and_are_not_shown() {
        let destination = destination("http://tom:a%40b@a/push", REMOTE_WRITE);
        assert_eq!((destination.shown().as_str(), destination.uri.host()), ("http://a/push", Some("a")));
        // tom:a@b
        assert_eq!(destination.headers[AUTHORIZATION], "Basic dG9tOmFAYg==");
        assert!(!format!("{destination:?}").contains("dG9t"), "{destination:?}");
    }

    #[test]
    fn password_with_an_unescaped_slash_is_not_part_of_the_host() {
        let destination = destination("http://tom:a/b@a/push", REMOTE_WRITE);
        assert_eq!((destination.shown().as_str(), destination.uri.host()), ("http://a/push", Some("a")));
        // tom:a/b
        assert_eq!(destination.headers[AUTHORIZATION], "Basic dG9tOmEvYg==");
    }

    #[test]
    fn authorities_without_certificate_are_an_error() {
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
    fn invalid_receiver_urls_and_headers_are_errors() {
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
