//! The simulated proxies: identities of the population with tokens of their service accounts.

use crate::failure::Failure;
use experiment::settings::fleet::{FleetSecurity, FleetSettings, ProxyKind};
use fleet::Credentials;
use fleet::xds::ProxySpec;
use mesh::kubernetes::client::ApiClient;
use mesh::names::TOKEN_AUDIENCE;
use population::{Population, Proxy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Version that proxies claim if istiod does not report its own.
const DEFAULT_VERSION: &str = "1.31.1";
/// Services that an on-demand ztunnel requests.
const DEMANDED_SERVICES: usize = 10;
const TOKEN_HINT: &str = "proxies show tokens of their service accounts: the kubeconfig's user must be allowed to create serviceaccounts/token";

/// Keyed by namespace and service account.
pub type Tokens = BTreeMap<(String, String), Arc<str>>;

/// Tokens of every service account that a proxy uses; empty in plaintext.
pub fn tokens(settings: &FleetSettings, population: &Population, api: &ApiClient) -> Result<Tokens, Failure> {
    if settings.security == FleetSecurity::Plaintext {
        return Ok(Tokens::new());
    }
    let accounts: BTreeSet<(&str, &str)> = population
        .proxies()
        .iter()
        .map(|proxy| (proxy.namespace.as_str(), proxy.service_account.as_str()))
        .collect();
    let accounts: Vec<(&str, &str)> = accounts.into_iter().collect();
    let tokens =
        api.tokens(&accounts, TOKEN_AUDIENCE).map_err(|error| Failure::from(error).with_hint(TOKEN_HINT))?;
    let owned = |(namespace, account): (&str, &str)| (namespace.to_owned(), account.to_owned());
    Ok(accounts.into_iter().map(owned).zip(tokens.into_iter().map(Arc::from)).collect())
}

/// Creates the identities of simulated proxies.
pub struct Identities<'a> {
    pub population: &'a Population,
    pub tokens: Tokens,
    /// True if ztunnels request addresses only when they need them.
    pub on_demand: bool,
    pub cluster_id: &'a str,
    /// istiod's own version, if it reports one.
    pub version: Option<String>,
}

impl Identities<'_> {
    pub fn proxies(&self) -> Vec<(ProxySpec, Credentials)> {
        let proxies = self.population.proxies().iter().enumerate();
        proxies.map(|(place, proxy)| (self.spec(place, proxy), self.credentials(proxy))).collect()
    }

    fn credentials(&self, proxy: &Proxy) -> Credentials {
        let account = (proxy.namespace.clone(), proxy.service_account.clone());
        Credentials { token: self.tokens.get(&account).cloned() }
    }

    fn spec(&self, place: usize, proxy: &Proxy) -> ProxySpec {
        let is_on_demand = self.on_demand && proxy.kind == ProxyKind::Ztunnel;
        ProxySpec {
            kind: proxy.kind,
            name: proxy.name.clone(),
            namespace: proxy.namespace.clone(),
            address: proxy.address,
            service_account: proxy.service_account.clone(),
            labels: proxy.labels.clone(),
            node: proxy.node.clone(),
            cluster_id: self.cluster_id.to_owned(),
            istio_version: self.claimed_version(),
            dns_capture: proxy.kind == ProxyKind::Sidecar,
            on_demand: is_on_demand,
            demands: if is_on_demand { self.demands(place) } else { Vec::new() },
        }
    }

    /// Version as `major.minor.patch`, which istiod compares.
    fn claimed_version(&self) -> String {
        let version = self.version.as_deref().unwrap_or(DEFAULT_VERSION);
        let numbers: Vec<&str> = version.split(['-', '+']).next().unwrap_or_default().split('.').collect();
        let is_number = |part: &&str| part.parse::<u32>().is_ok();
        match numbers.as_slice() {
            [major, minor] if numbers.iter().all(is_number) => format!("{major}.{minor}.0"),
            [major, minor, patch, ..] if numbers.iter().take(3).all(is_number) => {
                format!("{major}.{minor}.{patch}")
            }
            _ => DEFAULT_VERSION.to_owned(),
        }
    }

    /// Services that the pods on a ztunnel's node would call, different ones for each ztunnel.
    fn demands(&self, place: usize) -> Vec<String> {
        let services = self.population.services();
        let count = services.len().min(DEMANDED_SERVICES);
        let service = |number: usize| &services[(place * DEMANDED_SERVICES + number) % services.len()];
        (0..count)
            .map(|number| format!("{}/{}", service(number).namespace(), service(number).host()))
            .collect()
    }
}
