//! Keys of the section `fleet`.

use super::{
    ChangeKind, FleetSecurity, FleetSettings, MAX_DURATION, MAX_NAMESPACES, MAX_PROXIES, ProxyKind,
    XdsVariant,
};
use crate::keys::Kind;
use crate::keys::settings::keys;
use crate::keys::words::words_of;
use std::time::Duration;

/// Maximum number of objects per kind.
pub const MAX_OBJECTS: u64 = 100_000;
/// Maximum number of real sidecars, at about 50 MB each.
pub const MAX_WITNESSES: u64 = 20;
/// Maximum number of threads.
pub const MAX_THREADS: u64 = 256;
const MAX_SETTLE: Duration = Duration::from_secs(3600);

const CHURN: &str = r"^\s*(none|0%|[0-9]+(\.[0-9]+)?\s*%/m)\s*$";

const SOME: Kind = Kind::Whole(1, MAX_OBJECTS);
const ANY: Kind = Kind::Whole(0, MAX_OBJECTS);

const CHANGES: Kind = Kind::OneOrSeveral(&Kind::Either(&[
    Kind::OneOf(words_of::<ChangeKind>),
    Kind::Matching(repeated_changes),
]));

keys!(FleetSettings {
    key proxies: "proxies", Kind::Whole(1, MAX_PROXIES as u64), "simulated proxies";
    key kinds: "kind" as "proxy kind", Kind::Either(&[Kind::OneOf(words_of::<ProxyKind>), Kind::Matching(several_kinds)]),
        "kind of the proxies, or several with their numbers, of which one may take the rest: `ztunnel=100,sidecar`";
    key xds: "xds" as "xDS", Kind::OneOf(words_of::<XdsVariant>), "xDS variant";
    key security: "security", Kind::OneOf(words_of::<FleetSecurity>), "authentication of the proxies";
    key services: "services", SOME, "services of the mesh";
    key pods: "pods", SOME, "pods, spread over the services";
    key namespaces: "namespaces", Kind::Whole(1, MAX_NAMESPACES as u64),
        "namespaces, which share services and pods evenly";
    key virtual_services: "virtual-services", ANY,
        "VirtualServices, each of another service; gateways have as many of their own";
    key destination_rules: "destination-rules", ANY, "DestinationRules, each of another service";
    key gateways: "gateways", ANY, "Gateways";
    key policies: "policies", ANY, "authorization policies";
    rare scope: "scope", Kind::Switch, "sidecars see only their own namespace";
    rare on_demand: "on-demand", Kind::Switch, "ztunnels request addresses only as they need them";
    rare witnesses: "witnesses", Kind::Whole(0, MAX_WITNESSES), "real sidecars beside the fleet";
    key churn: "churn", Kind::Either(&[Kind::Whole(0, 0), Kind::Rate, Kind::Matching(|| CHURN.to_owned())]),
        "pods that are replaced continuously: `25%/m` of all per minute, or `10/s`, `600/m`";
    key changes: "changes", CHANGES,
        "changes that are made and timed, in this order, each kind once or `=N` times; `[]` with churn";
    key between: "between", Kind::DurationUpTo(MAX_SETTLE), "minimum time from one change to the next";
    key duration: "duration", Kind::DurationUpTo(MAX_DURATION),
        "minimum time for which the configured fleet is observed";
    key settle: "settle", Kind::DurationUpTo(MAX_SETTLE),
        "time limit for the first configuration and each change to reach the last proxy";
    key connect_rate: "connect-rate", Kind::Rate,
        "connections opened per second; as fast as they are accepted if absent";
    key threads: "threads", Kind::Whole(1, MAX_THREADS),
        "threads of the fleet; by the number of CPUs if absent";
});

fn several_kinds() -> String {
    let one = format!(r"\s*({})\s*(=\s*[1-9][0-9]*\s*)?", words_of::<ProxyKind>().join("|"));
    format!("^{one}(,{one})*$")
}

fn repeated_changes() -> String {
    let kinds = words_of::<ChangeKind>().join("|");
    format!(r"^\s*({kinds})\s*=\s*([1-9][0-9]{{0,2}}|1000)\s*$")
}
