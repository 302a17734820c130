//! Keys of the section `fleet`.

use crate::keys::{Key, Kind};
use crate::settings::fleet::{ChangeKind, FleetSecurity, MAX_NAMESPACES, MAX_PROXIES, ProxyKind, XdsVariant};

pub(in crate::file) const MAX_OBJECTS: usize = 100_000;
pub(in crate::file) const MAX_THREADS: usize = 256;
/// Maximum number of real sidecars, at about 50 MB each.
pub(in crate::file) const MAX_WITNESSES: usize = 20;

const fn objects(name: &'static str, summary: &'static str) -> Key {
    Key::new(name, Kind::Whole(0, MAX_OBJECTS as u64), summary).default("0")
}

pub(super) const FLEET: [Key; 21] = [
    Key::new("proxies", Kind::Whole(1, MAX_PROXIES as u64), "simulated proxies").default("100"),
    Key::new(
        "kind",
        Kind::Either(&[Kind::OneOf(proxy_kinds), Kind::Matching(several_kinds)]),
        "kind of the proxies, or several with their numbers, of which one may take the rest: `ztunnel=100,sidecar`",
    )
    .default("sidecar"),
    Key::new("xds", Kind::OneOf(|| XdsVariant::ALL.map(XdsVariant::name).to_vec()), "xDS variant").default("delta"),
    Key::new(
        "security",
        Kind::OneOf(|| FleetSecurity::ALL.map(FleetSecurity::name).to_vec()),
        "authentication of the proxies",
    )
    .default("mutual-tls"),
    Key::new("services", Kind::Whole(1, MAX_OBJECTS as u64), "services of the mesh").default("100"),
    Key::new("pods", Kind::Whole(1, MAX_OBJECTS as u64), "pods, spread over the services").default("200"),
    Key::new(
        "namespaces",
        Kind::Whole(1, MAX_NAMESPACES as u64),
        "namespaces, which share services and pods evenly",
    )
    .default("10"),
    objects("virtual-services", "VirtualServices, each of another service; gateways have as many of their own"),
    objects("destination-rules", "DestinationRules, each of another service"),
    objects("gateways", "Gateways"),
    objects("policies", "authorization policies"),
    Key::new("scope", Kind::Switch, "sidecars see only their own namespace").default("off"),
    Key::new("on-demand", Kind::Switch, "ztunnels request addresses only as they need them").default("off"),
    Key::new("witnesses", Kind::Whole(0, MAX_WITNESSES as u64), "real sidecars beside the fleet").default("0"),
    Key::new(
        "churn",
        Kind::Either(&[Kind::Whole(0, 0), Kind::Rate, Kind::Matching(|| CHURN.to_owned())]),
        "pods that are replaced continuously: `25%/m` of all per minute, or `10/s`, `600/m`",
    )
    .default("0"),
    Key::new(
        "changes",
        Kind::OneOrSeveral(&Kind::Either(&[Kind::OneOf(changes), Kind::Matching(repeated_changes)])),
        "changes that are made and timed, in this order, each kind once or `=N` times; `[]` with churn",
    ),
    Key::new("between", Kind::Duration, "minimum time from one change to the next").default("1s"),
    Key::new("duration", Kind::Duration, "minimum time for which the configured fleet is observed").default("0s"),
    Key::new(
        "settle",
        Kind::Duration,
        "time limit for the first configuration and each change to reach the last proxy",
    )
    .default("60s"),
    Key::new("connect-rate", Kind::Rate, "connections opened per second; as fast as they are accepted if absent"),
    Key::new("threads", Kind::Whole(1, MAX_THREADS as u64), "threads of the fleet; by the number of CPUs if absent"),
];

const CHURN: &str = r"^\s*(none|0%|[0-9]+(\.[0-9]+)?\s*%/m)\s*$";

fn proxy_kinds() -> Vec<&'static str> {
    ProxyKind::ALL.map(ProxyKind::name).to_vec()
}

fn several_kinds() -> String {
    let one = format!(r"\s*({})\s*(=\s*[1-9][0-9]*\s*)?", proxy_kinds().join("|"));
    format!("^{one}(,{one})*$")
}

fn changes() -> Vec<&'static str> {
    ChangeKind::ALL.map(ChangeKind::name).to_vec()
}

fn repeated_changes() -> String {
    format!(r"^\s*({})\s*=\s*([1-9][0-9]{{0,2}}|1000)\s*$", changes().join("|"))
}
