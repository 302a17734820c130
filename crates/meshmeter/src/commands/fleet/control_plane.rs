//! The control plane that a fleet connects to: its API, its istiods, and the CA that signs their
//! certificates. Everything is checked before anything is written.

use super::control_plane_metrics::Exposed;
use super::metrics::MetricsPage;
use crate::cli::{ControlPlaneArgs, MetricsUrl};
use crate::failure::Failure;
use experiment::environment::EnvironmentError;
use experiment::settings::fleet::FleetSecurity;
use fleet::{Security, Target};
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::kubeconfig;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::{ISTIOD, ISTIOD_DEBUG_PORT};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROOT_MAP: &str = "istio-ca-root-cert";
const ROOT_KEY: &str = "root-cert.pem";
const METRICS_HINT: &str = "name the page with --istiod-metrics URL";

/// API client. Setting `stop` aborts its requests, unless [`Self::ignore_stop`] was called.
pub struct Api {
    pub client: Arc<ApiClient>,
    stop_counts: Arc<AtomicBool>,
}

impl Api {
    pub fn open(path: Option<&Path>, stop: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let kubeconfig = kubeconfig::read(path)?;
        let stop_counts = Arc::new(AtomicBool::new(true));
        let (counts, stop) = (Arc::clone(&stop_counts), Arc::clone(stop));
        let check = move || {
            if counts.load(Ordering::Relaxed) && stop.load(Ordering::Relaxed) {
                return Err(EnvironmentError::new("wait for the Kubernetes API", "interrupted"));
            }
            Ok(())
        };
        let client = Arc::new(ApiClient::new(&kubeconfig, check)?);
        client.version()?;
        Ok(Self { client, stop_counts })
    }

    /// From now on requests complete even after Ctrl-C, so that what was written can be removed.
    pub fn ignore_stop(&self) {
        self.stop_counts.store(false, Ordering::Relaxed);
    }
}

/// istiods as connection targets.
pub fn targets(
    control_plane: &ControlPlaneArgs,
    security: FleetSecurity,
    addresses: &[String],
    api: &ApiClient,
) -> Result<Vec<Target>, Failure> {
    let security = match security {
        FleetSecurity::Plaintext => Security::Plaintext,
        FleetSecurity::Token => Security::Token,
        FleetSecurity::MutualTls => Security::MutualTls,
    };
    let roots: Arc<[u8]> = match (security, &control_plane.istiod_ca) {
        (Security::Plaintext, _) => Arc::default(),
        (_, Some(path)) => std::fs::read(path)
            .map_err(|error| {
                Failure::from_usage(&error).about(&format!("read --istiod-ca {}", path.display()))
            })?
            .into(),
        (_, None) => root_certificate(api, &control_plane.istio_namespace)?.into_bytes().into(),
    };
    let server_name = control_plane
        .istiod_name
        .clone()
        .unwrap_or_else(|| format!("{ISTIOD}.{}.svc", control_plane.istio_namespace));
    let target = |address: &String| Target {
        address: address.clone(),
        server_name: server_name.clone(),
        security,
        roots: Arc::clone(&roots),
    };
    Ok(addresses.iter().map(target).collect())
}

/// CA certificate of istiod, as istiod itself publishes it.
fn root_certificate(api: &ApiClient, namespace: &str) -> Result<String, Failure> {
    let map = api.get(&ObjectRef::new("v1", "ConfigMap", Some(namespace), ROOT_MAP))?;
    let certificate = map.as_ref().and_then(|map| map["data"][ROOT_KEY].as_str());
    certificate.map(ToOwned::to_owned).ok_or_else(|| {
        let message = format!("find istiod's certificate authority: namespace {namespace} has no ConfigMap {ROOT_MAP}");
        Failure::broken(message).with_hint(
            "is this the API that istiod watches? name Istio's namespace with --istio-namespace, or the authority with \
             --istiod-ca FILE",
        )
    })
}

/// Metrics pages: one per istiod, then those of the API server and etcd.
pub fn metrics_pages(
    args: &ControlPlaneArgs,
    addresses: &[String],
    api: &Arc<ApiClient>,
) -> Vec<MetricsPage> {
    let istiod = |(place, address): (usize, &String)| {
        let given = args.istiod_metrics.get(place).cloned();
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let page = given.unwrap_or_else(|| MetricsUrl {
            authority: format!("{host}:{ISTIOD_DEBUG_PORT}"),
            path: "/metrics".to_owned(),
        });
        MetricsPage::over_http(Exposed::Istiod, &page, METRICS_HINT)
    };
    let mut pages: Vec<MetricsPage> = addresses.iter().enumerate().map(istiod).collect();
    pages.push(MetricsPage::of_api_server(Arc::clone(api)));
    pages.extend(args.etcd_metrics.iter().map(|page| MetricsPage::over_http(Exposed::Etcd, page, "")));
    pages
}

/// Returns an error unless the target speaks HTTP/2 and presents the expected certificate, as an istiod does.
pub fn probe(target: &Target, timeout: Duration) -> Result<(), Failure> {
    fleet::probe(target, timeout).map_err(|error| {
        let failure = Failure::environment(&error);
        failure.with_some_hint(error.hint())
    })
}
