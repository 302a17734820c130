//! Queries to a Prometheus, with a timeout and a limit on the size of an answer.

use crate::client::{Connections, cause, connections};
use crate::delivery::shortened;
use crate::destination::{Authorities, DestinationError, parse_url};
use bytes::Bytes;
use http::header::{HeaderMap, USER_AGENT};
use http::uri::{PathAndQuery, Scheme};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use results::{Build, percent_encode};
use std::time::Duration;

/// Path of instant queries.
const QUERY_PATH: &str = "/api/v1/query";
/// Timeout of a query, from connecting to the end of the answer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum size of an answer, bytes.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// HTTP API of a Prometheus, or of a server that speaks its API.
pub struct PrometheusApi {
    http: Connections,
    uri: Uri,
    headers: HeaderMap,
}

impl PrometheusApi {
    /// The API at a URL, below whose path it is. Credentials in the URL become a header.
    ///
    /// # Errors
    /// Returns an error if the URL cannot be parsed, or if it is not an HTTP URL.
    pub fn new(url: &str, headers: HeaderMap, authorities: &Authorities) -> Result<Self, DestinationError> {
        let (uri, headers) = parse_url(url, "/", "http://127.0.0.1:9090", headers)?;
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        Ok(Self { http: connections(authorities, is_https), uri, headers })
    }

    /// Answer to an instant query at a time (RFC 3339 or seconds since 1970), or now.
    ///
    /// # Errors
    /// Returns a short description of the cause: no answer in time, a status other than 200, an answer that is too large.
    pub async fn query(&self, query: &str, at: Option<&str>) -> Result<Bytes, String> {
        let uri = self.uri_of(query, at).map_err(|error| format!("a query: {error}"))?;
        let request = Request::get(uri).header(USER_AGENT, Build::this().user_agent());
        let mut request =
            request.body(Full::new(Bytes::new())).map_err(|error| format!("a query: {error}"))?;
        request.headers_mut().extend(self.headers.clone());
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| cause(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            let body =
                body.map_err(|_| "the answer is cut off, or has more than 256 MiB".to_owned())?.to_bytes();
            if head.status.is_success() {
                return Ok(body);
            }
            let text = String::from_utf8_lossy(&body);
            Err(format!("HTTP {}: {}", head.status.as_u16(), shortened(&text)))
        };
        match tokio::time::timeout(QUERY_TIMEOUT, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer in {} s", QUERY_TIMEOUT.as_secs())),
        }
    }

    /// URI of a query; parameters of the URL are kept.
    fn uri_of(&self, query: &str, at: Option<&str>) -> Result<Uri, http::Error> {
        let mut path = format!("{}{QUERY_PATH}?", self.uri.path().trim_end_matches('/'));
        if let Some(own) = self.uri.query() {
            path += own;
            path.push('&');
        }
        path += "query=";
        path += &percent_encode(query);
        if let Some(at) = at {
            path += "&time=";
            path += &percent_encode(at);
        }
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(path)?);
        Ok(Uri::from_parts(parts)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_below_the_path_of_the_url() {
        for (url, expected) in [
            ("http://a:9090", "http://a:9090/api/v1/query?query=rate%28x%5B5m%5D%29&time=12"),
            (
                "http://tom:x@a/prometheus/",
                "http://a/prometheus/api/v1/query?query=rate%28x%5B5m%5D%29&time=12",
            ),
            ("http://a/?tenant=1", "http://a/api/v1/query?tenant=1&query=rate%28x%5B5m%5D%29&time=12"),
        ] {
            let api = PrometheusApi::new(url, HeaderMap::new(), &Authorities::System).unwrap();
            assert_eq!(api.uri_of("rate(x[5m])", Some("12")).unwrap().to_string(), expected);
        }
        assert!(PrometheusApi::new("ftp://a", HeaderMap::new(), &Authorities::System).is_err());
    }
}
