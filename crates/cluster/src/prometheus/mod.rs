//! A Prometheus that scrapes kubelets: its address, and its samples of selected series.

#[cfg(test)]
mod process;
#[cfg(test)]
mod server;
#[cfg(test)]
pub(crate) use server::{PageServer, PrometheusServer, nobody};

use crate::Result;
use experiment::environment::EnvironmentError;
use http::Uri;
use mesh::kubernetes::client::ApiClient;
use results::percent_encode;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Metric that is required for usage.
pub(crate) const CPU_METRIC: &str = "container_cpu_usage_seconds_total";

/// Address of a Prometheus.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PrometheusAddress {
    /// Reached from the machine that starts the run; without a trailing slash.
    Url(String),
    /// Reached through the API server's proxy for Services.
    Service { namespace: String, name: String, port: String },
}

impl FromStr for PrometheusAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            let uri: Uri = text.parse().map_err(|error| format!("not a URL: {error}"))?;
            let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
            return match uri.scheme_str() {
                Some("http" | "https") if authority.contains('@') => {
                    Err("credentials in a URL are not sent".to_owned())
                }
                Some("http" | "https") if uri.query().is_none() => {
                    Ok(Self::Url(text.trim_end_matches('/').to_owned()))
                }
                _ => Err("expected http:// or https:// without a query".to_owned()),
            };
        }
        let parts = text.split_once('/').and_then(|(namespace, service)| {
            let (name, port) = service.rsplit_once(':')?;
            Some([namespace, name, port].map(str::to_owned))
        });
        match parts {
            Some([namespace, name, port]) if [&namespace, &name, &port].iter().all(|part| is_name(part)) => {
                Ok(Self::Service { namespace, name, port })
            }
            _ => Err("expected a URL, or NAMESPACE/SERVICE:PORT".to_owned()),
        }
    }
}

/// True for a valid name of a namespace, a Service or a port.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

impl fmt::Display for PrometheusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Service { namespace, name, port } => write!(f, "{namespace}/{name}:{port}"),
        }
    }
}

/// A Prometheus.
pub(crate) struct Prometheus {
    address: PrometheusAddress,
    api: Arc<ApiClient>,
    /// Path prefix of its API.
    prefix: String,
}

/// The last sample of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastSample {
    pub labels: BTreeMap<String, String>,
    /// Time of the sample since 1970.
    pub at: Duration,
    pub value: f64,
}

impl Prometheus {
    /// Sends nothing yet. `cluster` is used to reach Services.
    pub fn new(address: &PrometheusAddress, cluster: &Arc<ApiClient>) -> Result<Self> {
        let (api, prefix) = match address {
            PrometheusAddress::Url(url) => (client_of(url)?, String::new()),
            PrometheusAddress::Service { namespace, name, port } => {
                let prefix = format!("/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy");
                (Arc::clone(cluster), prefix)
            }
        };
        Ok(Self { address: address.clone(), api, prefix })
    }

    /// The last sample of each series that matches the selector and is not older than `within`, a duration in
    /// Prometheus syntax.
    pub fn last_samples(&self, selector: &str, within: &str) -> Result<Vec<LastSample>> {
        self.query(&format!("{selector}[{within}]"), LastSample::read)
    }

    /// Number of series that match the selector now.
    pub fn count(&self, selector: &str) -> Result<u64> {
        self.query(&format!("count({selector})"), read_count)
    }

    /// The response to a query, which `read` parses.
    fn query<T>(&self, query: &str, read: fn(&str) -> serde_json::Result<T>) -> Result<T> {
        let operation = format!("query Prometheus at {}", self.address);
        let path = format!("{}/api/v1/query?query={}", self.prefix, percent_encode(query));
        let text = self.api.get_text(&operation, &path).map_err(|error| error.with_hint(self.hint()))?;
        read(&text).map_err(|_| {
            let reason = "another program responds there";
            EnvironmentError::new(operation, reason).with_hint(self.hint())
        })
    }

    fn hint(&self) -> &'static str {
        match self.address {
            PrometheusAddress::Url(_) => {
                "--prometheus takes the URL of its web interface, or NAMESPACE/SERVICE:PORT to go through the API server"
            }
            PrometheusAddress::Service { .. } => {
                "--prometheus takes NAMESPACE/SERVICE:PORT; `meshmeter cluster rbac --prometheus` prints the right to it"
            }
        }
    }
}

impl LastSample {
    /// The last sample of each series of a response.
    pub fn read(response: &str) -> serde_json::Result<Vec<Self>> {
        let response: Response<Series> = serde_json::from_str(response)?;
        let last = response.data.result.into_iter().filter_map(|Series { metric, values }| {
            let (at_s, value) = values.into_iter().next_back()?;
            let at = Duration::from_millis((at_s * 1e3).round() as u64);
            Some(Self { labels: metric, at, value: value.parse().ok()? })
        });
        Ok(last.collect())
    }
}

/// The count in a response; an empty result means zero series.
pub(crate) fn read_count(response: &str) -> serde_json::Result<u64> {
    let response: Response<Counted> = serde_json::from_str(response)?;
    let counted = response.data.result.first();
    Ok(counted.and_then(|counted| counted.value.1.parse().ok()).unwrap_or(0))
}

/// A client that sends no credentials.
fn client_of(url: &str) -> Result<Arc<ApiClient>> {
    let name = "prometheus";
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    });
    Ok(Arc::new(ApiClient::new(&config, || Ok(()))?))
}

/// Response to a query.
#[derive(Deserialize)]
struct Response<T> {
    data: Data<T>,
}

#[derive(Deserialize)]
struct Data<T> {
    result: Vec<T>,
}

/// Result over a range of time: seconds, and numbers as text.
#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    values: Vec<(f64, String)>,
}

/// Result at one moment.
#[derive(Deserialize)]
struct Counted {
    value: (f64, String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::error_chain;

    #[test]
    fn address_is_url_or_service() {
        let read = |text: &str| text.parse::<PrometheusAddress>().map(|address| address.to_string());
        for text in ["http://127.0.0.1:9090", "https://p.example.com/prom", "monitoring/prometheus-k8s:web"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        assert_eq!(read("http://p:9090/").as_deref(), Ok("http://p:9090"));
        for text in
            ["", "p:9090", "a/b", "a/:1", "a/b:", "a/b/c:1", "ftp://p", "http://u:s@p", "http://p?x=1"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn query_of_non_prometheus_is_one_line_error_with_hint() {
        let page = PageServer::start(|| "up 1\n".to_owned());
        for (url, says) in [
            ("http://127.0.0.1:1".to_owned(), "Connection refused"),
            (page.url(), "another program responds there"),
        ] {
            let prometheus = at(&url);
            let error = prometheus.count(CPU_METRIC).unwrap_err();
            let line = error_chain(&error);
            assert!(line.starts_with(&format!("query Prometheus at {url}: ")), "{line}");
            assert!(line.contains(says), "{line}");
            assert!(error.nearest_hint().is_some_and(|hint| hint.contains("NAMESPACE/SERVICE:PORT")));
        }
    }

    #[test]
    fn last_samples_have_their_timestamps() {
        let page = PageServer::start(|| {
            let ms = jiff::Timestamp::now().as_millisecond() - 2500;
            format!("sampled{{a=\"b \\\" c\"}} 1.5 {ms}\nother 1\n")
        });
        let server = PrometheusServer::start(&page);
        let prometheus = at(&server.url());
        let samples = server.wait_for(|| prometheus.last_samples("sampled", "5m").unwrap());
        let [sample] = samples.as_slice() else { panic!("{samples:?}") };
        assert_eq!((sample.value, sample.labels["a"].as_str()), (1.5, "b \" c"));
        let now = jiff::Timestamp::now().as_millisecond();
        let age_ms = now - i64::try_from(sample.at.as_millis()).unwrap();
        assert!(age_ms >= 2500, "{age_ms} ms");
        assert_eq!((prometheus.count("sampled").unwrap(), prometheus.count("absent").unwrap()), (1, 0));
        let error = prometheus.count("{").unwrap_err();
        assert!(error_chain(&error).contains("bad_data"), "{error:?}");
    }

    fn at(url: &str) -> Prometheus {
        Prometheus::new(&url.parse().unwrap(), &nobody()).unwrap()
    }
}
