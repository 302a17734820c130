//! Resources that istiod sends to proxies of each kind for a change. Sidecars receive those in their scope,
//! gateways those of all services, waypoints those of their namespace, and ztunnels all addresses and policies.

use crate::{HeldService, PORT, PROXY_NAMESPACE, Population};
use experiment::settings::fleet::ProxyKind;
use experiment::xds::{Mark, Presence, ResourceType};
use mesh::istio::objects::ingress;
use mesh::names::SYSTEM_NAMESPACE;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Marks that arrive at proxies of one kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Expected {
    pub kind: ProxyKind,
    /// Namespace of the proxies; absent: proxies in any namespace.
    pub namespace: Option<String>,
    pub marks: Vec<Mark>,
}

/// Kinds of proxies in a fleet, and what they receive.
#[derive(Clone, Debug)]
pub(super) struct Audience {
    kinds: BTreeSet<ProxyKind>,
    is_scoped: bool,
    is_on_demand: bool,
}

/// A change, described independently of the kind of proxy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect<'a> {
    /// An endpoint of this pod, with this address.
    Endpoint {
        service: &'a HeldService,
        pod: &'a str,
        address: Ipv4Addr,
    },
    /// A host of a Service or ServiceEntry, with this port.
    Host {
        namespace: &'a str,
        host: &'a str,
        port: u16,
        is_http: bool,
    },
    Route {
        namespace: &'a str,
        mark: &'a str,
    },
    /// Route of a Gateway's domain.
    GatewayRoute {
        gateway: &'a str,
        mark: &'a str,
    },
    /// A subset named after the mark.
    Subset {
        service: &'a HeldService,
        mark: &'a str,
    },
    /// A policy of the root namespace with this name, which contains the mark.
    RootPolicy {
        name: &'a str,
        mark: &'a str,
    },
}

impl Audience {
    pub fn new(population: &Population) -> Self {
        Self {
            kinds: population.proxies().iter().map(|proxy| proxy.kind).collect(),
            is_scoped: population.settings().scope,
            is_on_demand: population.settings().on_demand,
        }
    }

    pub fn has(&self, kind: ProxyKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Marks of effects that reach a proxy together, by kind of proxy.
    pub fn expected(&self, effects: &[Effect<'_>], presence: Presence) -> Vec<Expected> {
        let of_kind = |kind: &ProxyKind| {
            let marks: Vec<(Option<&str>, Mark)> =
                effects.iter().filter_map(|effect| self.mark(*effect, *kind, presence)).collect();
            let namespace = marks.first()?.0.map(ToOwned::to_owned);
            Some(Expected {
                kind: *kind,
                namespace,
                marks: marks.into_iter().map(|(_, mark)| mark).collect(),
            })
        };
        self.kinds.iter().filter_map(of_kind).collect()
    }

    /// The mark of an effect, and the only namespace whose proxies receive it.
    fn mark<'a>(
        &self,
        effect: Effect<'a>,
        kind: ProxyKind,
        presence: Presence,
    ) -> Option<(Option<&'a str>, Mark)> {
        let (resource_type, resource, needle) = match kind {
            ProxyKind::Sidecar | ProxyKind::Gateway => of_envoy(effect, kind)?,
            ProxyKind::Waypoint => of_waypoint(effect)?,
            ProxyKind::Ztunnel if self.is_on_demand && !matches!(effect, Effect::RootPolicy { .. }) => {
                return None;
            }
            ProxyKind::Ztunnel => of_ztunnel(effect)?,
        };
        let is_limited = kind == ProxyKind::Waypoint || kind == ProxyKind::Sidecar && self.is_scoped;
        let namespace = effect.namespace().filter(|_| is_limited);
        Some((namespace, Mark { resource_type, presence, resource: Some(resource), needle }))
    }
}

impl<'a> Effect<'a> {
    fn namespace(self) -> Option<&'a str> {
        match self {
            Self::Endpoint { service, .. } | Self::Subset { service, .. } => Some(service.namespace()),
            Self::Host { namespace, .. } | Self::Route { namespace, .. } => Some(namespace),
            Self::GatewayRoute { .. } | Self::RootPolicy { .. } => None,
        }
    }
}

type Content = (ResourceType, String, Vec<u8>);

fn of_envoy(effect: Effect<'_>, kind: ProxyKind) -> Option<Content> {
    let is_gateway = kind == ProxyKind::Gateway;
    let cluster = |port: u16, subset: &str, host: &str| format!("outbound|{port}|{subset}|{host}");
    Some(match effect {
        Effect::Endpoint { service, address, .. } => {
            (ResourceType::Endpoints, cluster(PORT.port, "", &service.host()), socket_address(address))
        }
        Effect::Host { host, port, .. } => {
            let name = cluster(port, "", host);
            (ResourceType::Clusters, name.clone(), name.into_bytes())
        }
        Effect::Subset { service, mark } => {
            (ResourceType::Clusters, cluster(PORT.port, mark, &service.host()), mark.into())
        }
        // Services share one resource per port.
        Effect::Route { mark, .. } if !is_gateway => {
            (ResourceType::Routes, PORT.port.to_string(), mark.into())
        }
        Effect::GatewayRoute { gateway, mark } if is_gateway => (
            ResourceType::Routes,
            format!("https.{}.https.{gateway}.{PROXY_NAMESPACE}", ingress::PORT),
            mark.into(),
        ),
        Effect::Route { .. } | Effect::GatewayRoute { .. } => return None,
        Effect::RootPolicy { mark, .. } => {
            let of_gateway = || format!("0.0.0.0_{}", ingress::PORT);
            (
                ResourceType::Listeners,
                if is_gateway { of_gateway() } else { "virtualInbound".to_owned() },
                mark.into(),
            )
        }
    })
}

fn of_waypoint(effect: Effect<'_>) -> Option<Content> {
    let cluster = |port: u16, subset: &str, host: &str| format!("inbound-vip|{port}|{subset}|{host}");
    Some(match effect {
        Effect::Endpoint { service, address, .. } => {
            let needle =
                if service.is_ambient() { tunnelled_address(address) } else { socket_address(address) };
            (ResourceType::Endpoints, cluster(PORT.port, "http", &service.host()), needle)
        }
        Effect::Host { host, port, is_http, .. } => {
            let name = cluster(port, if is_http { "http" } else { "tcp" }, host);
            (ResourceType::Clusters, name.clone(), name.into_bytes())
        }
        Effect::Subset { service, mark } => (
            ResourceType::Clusters,
            cluster(PORT.port, &format!("http/{mark}"), &service.host()),
            mark.into(),
        ),
        Effect::Route { mark, .. } | Effect::RootPolicy { mark, .. } => {
            (ResourceType::Listeners, "main_internal".to_owned(), mark.into())
        }
        Effect::GatewayRoute { .. } => return None,
    })
}

fn of_ztunnel(effect: Effect<'_>) -> Option<Content> {
    Some(match effect {
        Effect::Endpoint { service, pod, address } => {
            let (namespace, name) = (service.namespace(), service.name());
            let resource = if service.has_pods() {
                format!("//Pod/{namespace}/{pod}")
            } else {
                format!("/discovery.k8s.io/EndpointSlice/{namespace}/{name}/{address}")
            };
            (ResourceType::Addresses, resource, Vec::new())
        }
        Effect::Host { namespace, host, .. } => {
            (ResourceType::Addresses, format!("{namespace}/{host}"), Vec::new())
        }
        Effect::RootPolicy { name, mark } => {
            (ResourceType::Authorizations, format!("{SYSTEM_NAMESPACE}/{name}"), mark.into())
        }
        Effect::Route { .. } | Effect::GatewayRoute { .. } | Effect::Subset { .. } => return None,
    })
}

/// Field 2 of `envoy.config.core.v3.SocketAddress`, with its length, which distinguishes it from longer addresses.
fn socket_address(address: Ipv4Addr) -> Vec<u8> {
    length_delimited(&address.to_string())
}

/// Field 2 of `envoy.config.core.v3.EnvoyInternalAddress`.
fn tunnelled_address(address: Ipv4Addr) -> Vec<u8> {
    length_delimited(&format!("{address}:{}", PORT.port))
}

fn length_delimited(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("an address is short");
    [&[0x12, length], text.as_bytes()].concat()
}
