//! The estate behind an ingress gateway (domains, paths, certificates, scenario) and the resources of gateways.

use super::proxy::ProxySettings;
use crate::keys::Kind;
use crate::keys::settings::keys;
use crate::keys::words::{words, words_of};
use crate::topology::Resources;

/// Default maximum number of certificates shared by an estate's domains.
const DEFAULT_CREDENTIALS: usize = 10;

/// Default maximum number of requested paths per domain.
const DEFAULT_REQUESTED_PATHS: usize = 50;

/// The section `ingress` of an experiment: domains that a gateway serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Estate {
    /// True if the experiment has the section. Without it, a gateway has one public name and one route.
    pub declared: bool,
    /// Number of domains.
    pub domains: usize,
    /// Exact paths per domain; absent: one route for all paths.
    pub paths: Option<usize>,
    /// Certificates, shared evenly by the domains; absent: default from [`Self::credentials`].
    pub credentials: Option<usize>,
    /// Requested paths: the first ones of each domain; absent: default from [`Self::requested_paths`].
    pub requested_paths: Option<usize>,
    /// Requested domains: the first ones; absent: all.
    pub requested_domains: Option<usize>,
    /// Scenario: what the gateway does with each request or connection.
    pub scenario: Scenario,
}

impl Default for Estate {
    fn default() -> Self {
        Self {
            declared: false,
            domains: 1,
            paths: None,
            credentials: None,
            requested_paths: None,
            requested_domains: None,
            scenario: Scenario::default(),
        }
    }
}

impl Estate {
    /// Number of certificates.
    #[must_use]
    pub fn credentials(&self) -> usize {
        self.credentials.unwrap_or(DEFAULT_CREDENTIALS).min(self.domains)
    }

    /// Certificate of a domain, counted from 0. Neighbouring domains share one. `domain` counts from 1.
    #[must_use]
    pub fn credential_of(&self, domain: usize) -> usize {
        (domain - 1) * self.credentials() / self.domains
    }

    /// Number of requested paths per domain; absent if the domains have no exact paths.
    #[must_use]
    pub fn requested_paths(&self) -> Option<usize> {
        Some(self.requested_paths.unwrap_or(DEFAULT_REQUESTED_PATHS).min(self.paths?))
    }

    /// Number of requested domains.
    #[must_use]
    pub fn requested_domains(&self) -> usize {
        self.requested_domains.unwrap_or(self.domains).min(self.domains)
    }

    /// Number of routes of the gateway.
    #[must_use]
    pub fn routes(&self) -> usize {
        self.domains.saturating_mul(self.paths.unwrap_or(1))
    }

    /// Name of a domain, counted from 1, under the public name of a namespace.
    #[must_use]
    pub fn domain(domain: usize, public_name: &str) -> String {
        format!("d{domain}.{public_name}")
    }

    /// Path with this number, counted from 1.
    #[must_use]
    pub fn path(path: usize) -> String {
        format!("/get/{path}")
    }
}

const DOMAINS: Kind = Kind::Whole(1, 10_000);
const PATHS: Kind = Kind::Whole(1, 1_000);

keys!(Estate {
    key domains: "domains", DOMAINS, "domains, each with its own virtual host";
    key paths: "paths", PATHS, "exact paths of each domain; one route for all if absent";
    key credentials: "credentials" as "certificates", DOMAINS,
        "certificates, shared evenly by the domains; 10, or the domains if fewer";
    key requested_paths: "requested-paths", PATHS,
        "each request takes a random one of the first paths of its domain; 50, or all if fewer";
    key requested_domains: "requested-domains", DOMAINS, "the first domains are requested; all if absent";
    key scenario: "scenario", Kind::OneOf(words_of::<Scenario>),
        "processing of each request or connection in the gateway";
});

/// What a gateway does with each request or connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Scenario {
    /// The same load without a gateway.
    Direct,
    /// Only TLS and routing.
    #[default]
    NoFilters,
    /// Calls an external authorization service over gRPC (ext_authz).
    ExtAuthzGrpc,
    /// Calls an external authorization service over HTTP (ext_authz).
    ExtAuthzHttp,
    /// Verifies a JWT in each request.
    Jwt,
    /// Runs a WebAssembly module.
    Wasm,
    /// Checks requests with a web application firewall.
    Waf,
    /// Rate limits locally.
    LocalRateLimit,
    /// Rate limits through a rate limit service.
    GlobalRateLimit,
    /// Combines gRPC authorization, JWT, WebAssembly, firewall and both rate limits.
    AllFilters,
    /// Uses TLS 1.2 instead of 1.3.
    Tls12,
    /// Uses RSA 2048 keys instead of ECDSA P-256.
    Rsa,
    /// Requires client certificates.
    MutualTls,
    /// New connection per request, with TLS session resumption.
    Resumption,
    /// New connection per request, with a full TLS handshake.
    FullHandshakes,
}

words!(Scenario {
    Direct = "direct",
    NoFilters = "no-filters",
    ExtAuthzGrpc = "ext-authz-grpc",
    ExtAuthzHttp = "ext-authz-http",
    Jwt = "jwt",
    Wasm = "wasm",
    Waf = "waf",
    LocalRateLimit = "local-rate-limit",
    GlobalRateLimit = "global-rate-limit",
    AllFilters = "all-filters",
    Tls12 = "tls-1.2",
    Rsa = "rsa",
    MutualTls = "mutual-tls",
    Resumption = "resumption",
    FullHandshakes = "full-handshakes"
});

impl Scenario {
    /// True if the scenario changes the TLS between clients and gateway.
    #[must_use]
    pub fn is_about_tls(self) -> bool {
        matches!(self, Self::Tls12 | Self::Rsa | Self::MutualTls | Self::Resumption | Self::FullHandshakes)
    }
}

/// The section `gateway` of an experiment: resources of the ingress gateway, or of the static gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewaySettings {
    /// CPU limit, cores; absent: [`ProxySettings::cpu_limit_cores`].
    pub cpu_limit_cores: Option<f64>,
    /// Memory limit, bytes; absent: none.
    pub memory_limit_bytes: Option<u64>,
    /// Worker threads; absent: default from [`Self::workers`].
    pub workers: Option<usize>,
}

/// Minimum memory limit: Envoy does not start with less.
const MIN_MEMORY_BYTES: u64 = 32 << 20;

keys!(GatewaySettings {
    key cpu_limit_cores: "cpu" as "gateway CPU", Kind::Cores, "CPU limit of that gateway; `proxy.cpu` if absent";
    key memory_limit_bytes: "memory" as "gateway memory", Kind::SizeFor("a gateway", MIN_MEMORY_BYTES),
        "memory limit of that gateway, 32MiB or more";
    key workers: "workers", Kind::Whole(1, 128),
        "worker threads; `gateway.cpu` rounded up, or `proxy.workers`, if absent";
});

impl GatewaySettings {
    /// Worker threads: the CPU limit rounded up, as Istio does. Without its own CPU limit,
    /// [`ProxySettings::workers`].
    #[must_use]
    pub fn workers(&self, proxy: &ProxySettings) -> usize {
        let of_limit = self.cpu_limit_cores.map(|cores| (cores.ceil() as usize).max(1));
        self.workers.or(of_limit).unwrap_or(proxy.workers)
    }

    /// Resource limits of the gateway's container.
    #[must_use]
    pub fn limits(&self, proxy: &ProxySettings) -> Resources {
        Resources {
            cpu_limit_cores: self.cpu_limit_cores.or(proxy.cpu_limit_cores),
            memory_limit_bytes: self.memory_limit_bytes,
            ..Resources::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_share_certificates_evenly() {
        let estate = Estate { domains: 1000, ..Estate::default() };
        let shares = |estate: &Estate| {
            let mut shares = vec![0; estate.credentials()];
            (1..=estate.domains).for_each(|domain| shares[estate.credential_of(domain)] += 1);
            shares
        };
        assert_eq!(shares(&estate), vec![100; 10]);
        assert_eq!(
            (estate.credential_of(1), estate.credential_of(100), estate.credential_of(101)),
            (0, 0, 1)
        );
        assert_eq!(shares(&Estate { domains: 3, ..Estate::default() }), [1, 1, 1]);
        assert_eq!(shares(&Estate { domains: 5, credentials: Some(2), ..Estate::default() }), [3, 2]);
    }

    #[test]
    fn requests_go_to_the_first_paths_and_domains() {
        let estate = Estate { domains: 20, paths: Some(100), ..Estate::default() };
        assert_eq!(
            (estate.requested_paths(), estate.requested_domains(), estate.routes()),
            (Some(50), 20, 2000)
        );
        let fewer = Estate { paths: Some(10), requested_domains: Some(3), ..estate };
        assert_eq!((fewer.requested_paths(), fewer.requested_domains()), (Some(10), 3));
        let no_paths = Estate { paths: None, ..fewer };
        assert_eq!((no_paths.requested_paths(), no_paths.routes()), (None, 20));
    }

    #[test]
    fn workers_follow_cpu_limit_of_gateway_only() {
        let proxy = ProxySettings { cpu_limit_cores: Some(0.5), ..ProxySettings::default() };
        let limited = |cores| GatewaySettings { cpu_limit_cores: Some(cores), ..GatewaySettings::default() };
        assert_eq!([0.1, 1.0, 1.5, 8.0].map(|cores| limited(cores).workers(&proxy)), [1, 1, 2, 8]);
        assert_eq!(limited(2.0).limits(&proxy).cpu_limit_cores, Some(2.0));
        let unlimited = GatewaySettings::default();
        assert_eq!((unlimited.workers(&proxy), unlimited.limits(&proxy).cpu_limit_cores), (2, Some(0.5)));
        assert_eq!(GatewaySettings { workers: Some(3), ..limited(8.0) }.workers(&proxy), 3);
    }
}
