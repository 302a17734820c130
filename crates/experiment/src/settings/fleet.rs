//! The section `fleet` of an experiment: simulated proxies, the mesh that they are configured with, and its changes.
//!
//! The words of this module are also the options of `meshmeter fleet`.

use crate::units::{UnitError, format_fraction, format_rate, parse_fraction, parse_rate, shortened};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What a proxy subscribes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum ProxyKind {
    /// An Envoy beside an application.
    Sidecar,
    /// An Envoy at the edge of the mesh.
    Gateway,
    /// An Envoy for the services of a namespace in ambient mode.
    Waypoint,
    /// The node proxy of ambient mode.
    Ztunnel,
}

impl ProxyKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Sidecar, Self::Gateway, Self::Waypoint, Self::Ztunnel];

    /// The word that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sidecar => "sidecar",
            Self::Gateway => "gateway",
            Self::Waypoint => "waypoint",
            Self::Ztunnel => "ztunnel",
        }
    }
}

/// Variant of the aggregated discovery service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Hash)]
pub enum XdsVariant {
    /// `DeltaAggregatedResources`: what changed. istiod's default.
    #[default]
    Delta,
    /// `StreamAggregatedResources`: all resources of a type at once.
    StateOfTheWorld,
}

impl XdsVariant {
    /// Both variants.
    pub const ALL: [Self; 2] = [Self::Delta, Self::StateOfTheWorld];

    /// The word that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::StateOfTheWorld => "state-of-the-world",
        }
    }
}

/// How proxies identify themselves to the control plane.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Hash)]
pub enum FleetSecurity {
    /// By a certificate from the control plane's own CA.
    #[default]
    MutualTls,
    /// TLS, with the token of the proxy's service account.
    Token,
    /// Not at all: the control plane's plaintext port.
    Plaintext,
}

impl FleetSecurity {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::MutualTls, Self::Token, Self::Plaintext];

    /// The word that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MutualTls => "mutual-tls",
            Self::Token => "token",
            Self::Plaintext => "plaintext",
        }
    }
}

/// Kinds of proxies in a fleet, such as `sidecar` or `ztunnel=100,sidecar`. One kind may be without a number: it takes the
/// rest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxyKinds {
    /// In the order given, each kind once.
    shares: Vec<(ProxyKind, Option<usize>)>,
}

impl Default for ProxyKinds {
    fn default() -> Self {
        Self::only(ProxyKind::Sidecar)
    }
}

impl ProxyKinds {
    /// All proxies are of this kind.
    #[must_use]
    pub fn only(kind: ProxyKind) -> Self {
        Self { shares: vec![(kind, None)] }
    }

    /// Whether some proxies are of this kind.
    #[must_use]
    pub fn contains(&self, kind: ProxyKind) -> bool {
        self.shares.iter().any(|(one, _)| *one == kind)
    }

    /// Kinds with their numbers in a fleet of this size.
    ///
    /// # Errors
    /// The numbers do not add up to the size. The error is a sentence.
    pub fn of(&self, proxies: usize) -> Result<Vec<(ProxyKind, usize)>, String> {
        let given: usize = self.shares.iter().filter_map(|(_, number)| *number).sum();
        let has_rest = self.shares.iter().any(|(_, number)| number.is_none());
        if given > proxies || given < proxies && !has_rest {
            return Err(format!("`{self}` are {given} proxies of {proxies}"));
        }
        let number = |number: Option<usize>| number.unwrap_or(proxies - given);
        Ok(self.shares.iter().map(|(kind, share)| (*kind, number(*share))).collect())
    }
}

impl fmt::Display for ProxyKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (kind, number)) in self.shares.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            f.write_str(kind.name())?;
            number.map_or(Ok(()), |number| write!(f, "={number}"))?;
        }
        Ok(())
    }
}

impl FromStr for ProxyKinds {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = |expected: &str| UnitError {
            given: shortened(text),
            quantity: "kind of proxy",
            expected: expected.to_owned(),
            example: "ztunnel=100,sidecar",
        };
        let mut shares: Vec<(ProxyKind, Option<usize>)> = Vec::new();
        for part in text.split(',') {
            let (word, number) = match part.split_once('=') {
                Some((word, number)) => (word.trim(), Some(number.trim())),
                None => (part.trim(), None),
            };
            let kind = ProxyKind::ALL.into_iter().find(|kind| kind.name() == word);
            let kind = kind.ok_or_else(|| {
                refused("expected `sidecar`, `gateway`, `waypoint` or `ztunnel`, each with `=N` or not")
            })?;
            let number = match number.map(str::parse::<usize>) {
                None => None,
                Some(Ok(number)) if number > 0 => Some(number),
                Some(_) => return Err(refused("expected a number above 0 after `=`")),
            };
            if shares.iter().any(|(other, _)| *other == kind) {
                return Err(refused("expected each kind once"));
            }
            shares.push((kind, number));
        }
        if shares.iter().filter(|(_, number)| number.is_none()).count() > 1 {
            return Err(refused("expected a number for every kind but one, which takes the rest"));
        }
        Ok(Self { shares })
    }
}

/// Pods that are replaced all the time: each is deleted, and another takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Churn {
    /// No churn.
    #[default]
    None,
    /// This fraction of all pods per minute.
    FractionPerMinute(f64),
    /// This number of pods per second.
    PodsPerSecond(f64),
}

impl Churn {
    /// The number in it: a fraction per minute, or pods per second.
    #[must_use]
    pub fn amount(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::FractionPerMinute(amount) | Self::PodsPerSecond(amount) => amount,
        }
    }

    /// Pods replaced per second in a mesh of this many pods.
    #[must_use]
    pub fn pods_per_s(self, pods: usize) -> f64 {
        match self {
            Self::None => 0.0,
            Self::FractionPerMinute(fraction) => fraction * pods as f64 / 60.0,
            Self::PodsPerSecond(rate) => rate,
        }
    }
}

impl fmt::Display for Churn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::FractionPerMinute(fraction) => write!(f, "{}/m", format_fraction(*fraction)),
            Self::PodsPerSecond(rate) => write!(f, "{}/s", format_rate(*rate)),
        }
    }
}

impl FromStr for Churn {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = |error: UnitError| UnitError {
            quantity: "churn",
            expected: "expected a percentage of the pods per minute, or pods per second".to_owned(),
            example: "25%/m",
            ..error
        };
        let trimmed = text.trim();
        if ["0", "0%", "none"].contains(&trimmed) {
            return Ok(Self::None);
        }
        let churn = match trimmed.strip_suffix("/m").filter(|share| share.ends_with('%')) {
            Some(share) => Self::FractionPerMinute(parse_fraction(share).map_err(refused)?),
            None => Self::PodsPerSecond(parse_rate(trimmed).map_err(refused)?),
        };
        Ok(if churn == Self::FractionPerMinute(0.0) { Self::None } else { churn })
    }
}

/// A kind of change whose arrival at the proxies is timed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum ChangeKind {
    /// A service has an endpoint more.
    EndpointAdded,
    /// A service has an endpoint less.
    EndpointRemoved,
    /// A pod is deleted, and one with another address takes its place.
    PodRestarted,
    /// A new service.
    ServiceAdded,
    /// The routes of a service change.
    VirtualService,
    /// The traffic policy of a service changes.
    DestinationRule,
    /// A service outside the mesh: a full push.
    ServiceEntry,
    /// A policy of the root namespace: a full push.
    RootPolicy,
    /// All pods of a service are replaced, one after the other.
    RollingRestart,
    /// Proxies get new certificates and connect with them.
    CertificateRotation,
    /// All proxies disconnect and connect again at once.
    ConnectStorm,
    /// An istiod is killed and started again.
    IstiodRestart,
    /// A further istiod.
    IstiodAdded,
    /// An istiod less.
    IstiodRemoved,
    /// Some proxies lose their connection for a time.
    LinkDown,
}

impl ChangeKind {
    /// Every kind, in the order in which results show them.
    pub const ALL: [Self; 15] = [
        Self::EndpointAdded,
        Self::EndpointRemoved,
        Self::PodRestarted,
        Self::ServiceAdded,
        Self::VirtualService,
        Self::DestinationRule,
        Self::ServiceEntry,
        Self::RootPolicy,
        Self::RollingRestart,
        Self::CertificateRotation,
        Self::ConnectStorm,
        Self::IstiodRestart,
        Self::IstiodAdded,
        Self::IstiodRemoved,
        Self::LinkDown,
    ];

    /// The word that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EndpointAdded => "endpoint-added",
            Self::EndpointRemoved => "endpoint-removed",
            Self::PodRestarted => "pod-restarted",
            Self::ServiceAdded => "service-added",
            Self::VirtualService => "virtual-service",
            Self::DestinationRule => "destination-rule",
            Self::ServiceEntry => "service-entry",
            Self::RootPolicy => "root-policy",
            Self::RollingRestart => "rolling-restart",
            Self::CertificateRotation => "certificate-rotation",
            Self::ConnectStorm => "connect-storm",
            Self::IstiodRestart => "istiod-restart",
            Self::IstiodAdded => "istiod-added",
            Self::IstiodRemoved => "istiod-removed",
            Self::LinkDown => "link-down",
        }
    }

    /// Whether istiod sends proxies of this kind anything for it.
    #[must_use]
    pub fn reaches(self, kind: ProxyKind) -> bool {
        kind != ProxyKind::Ztunnel || !matches!(self, Self::VirtualService | Self::DestinationRule)
    }

    /// Whether it is a change of the mesh's objects, which istiod pushes to proxies that are connected.
    #[must_use]
    pub fn is_of_mesh(self) -> bool {
        !self.is_of_environment() && !matches!(self, Self::CertificateRotation | Self::ConnectStorm)
    }

    /// Whether pods of a service come or go: istiod sends the endpoints of that service alone.
    #[must_use]
    pub fn is_of_endpoints(self) -> bool {
        matches!(
            self,
            Self::EndpointAdded | Self::EndpointRemoved | Self::PodRestarted | Self::RollingRestart
        )
    }

    /// Whether only the environment of an experiment can make it.
    #[must_use]
    pub fn is_of_environment(self) -> bool {
        matches!(self, Self::IstiodRestart | Self::IstiodAdded | Self::IstiodRemoved | Self::LinkDown)
    }
}

/// A kind of change and how often it is made, such as `endpoint-added=5`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RepeatedChange {
    /// What changes.
    pub kind: ChangeKind,
    /// How often.
    pub count: usize,
}

impl fmt::Display for RepeatedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if self.count == 1 { Ok(()) } else { write!(f, "={}", self.count) }
    }
}

impl FromStr for RepeatedChange {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = |expected: String| UnitError {
            given: shortened(text),
            quantity: "change",
            expected,
            example: "endpoint-added=5",
        };
        let (word, count) = text.split_once('=').map_or((text, "1"), |(word, count)| (word, count));
        let word = word.trim();
        let kind = ChangeKind::ALL.into_iter().find(|kind| kind.name() == word).ok_or_else(|| {
            let names = ChangeKind::ALL.map(ChangeKind::name);
            let nearest = crate::file::suggestion::nearest(word, names);
            refused(nearest.map_or_else(
                || format!("expected {}", names.join(", ")),
                |nearest| format!("did you mean {nearest}?"),
            ))
        })?;
        match count.trim().parse() {
            Ok(count @ 1..=1000) => Ok(Self { kind, count }),
            _ => Err(refused("expected a number from 1 to 1000 after `=`".to_owned())),
        }
    }
}

/// The section `fleet`.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetSettings {
    /// Simulated proxies.
    pub proxies: usize,
    /// What they are.
    pub kinds: ProxyKinds,
    /// Which variant of the protocol they speak.
    pub xds: XdsVariant,
    /// How they identify themselves.
    pub security: FleetSecurity,
    /// Services of the mesh.
    pub services: usize,
    /// Pods of the mesh, spread over the services.
    pub pods: usize,
    /// Namespaces, which share services and pods evenly.
    pub namespaces: usize,
    /// VirtualServices, each of another service.
    pub virtual_services: usize,
    /// DestinationRules, each of another service.
    pub destination_rules: usize,
    /// Gateways.
    pub gateways: usize,
    /// Authorization policies.
    pub policies: usize,
    /// Sidecars are told of their own namespace alone.
    pub scope: bool,
    /// Ztunnels ask for addresses only as they need them.
    pub on_demand: bool,
    /// Real sidecars that stand beside the fleet, so that its times can be compared with theirs.
    pub witnesses: usize,
    /// Pods that are replaced all the time.
    pub churn: Churn,
    /// Changes that are made and timed, in this order.
    pub changes: Vec<RepeatedChange>,
    /// From one change to the next, at least.
    pub between: Duration,
    /// Least time that the configured fleet is observed, with churn and changes in it.
    pub duration: Duration,
    /// Time that a change has to reach the last proxy; also that of the first configurations.
    pub settle: Duration,
    /// Connections opened per second; absent: as fast as they are accepted.
    pub connect_rate: Option<f64>,
    /// Threads of the fleet; absent: as many as it needs.
    pub threads: Option<usize>,
}

impl Default for FleetSettings {
    fn default() -> Self {
        let change = |kind, count| RepeatedChange { kind, count };
        Self {
            proxies: 100,
            kinds: ProxyKinds::default(),
            xds: XdsVariant::default(),
            security: FleetSecurity::default(),
            services: 100,
            pods: 200,
            namespaces: 10,
            virtual_services: 0,
            destination_rules: 0,
            gateways: 0,
            policies: 0,
            scope: false,
            on_demand: false,
            witnesses: 0,
            churn: Churn::None,
            changes: vec![
                change(ChangeKind::EndpointAdded, 5),
                change(ChangeKind::ServiceAdded, 2),
                change(ChangeKind::ServiceEntry, 2),
            ],
            between: Duration::from_secs(1),
            duration: Duration::ZERO,
            settle: Duration::from_secs(60),
            connect_rate: None,
            threads: None,
        }
    }
}

impl FleetSettings {
    /// Number of proxies of a kind.
    #[must_use]
    pub fn count_of(&self, kind: ProxyKind) -> usize {
        let counts = self.kinds.of(self.proxies).unwrap_or_default();
        counts.into_iter().find_map(|(one, number)| (one == kind).then_some(number)).unwrap_or(0)
    }

    /// Number of changes.
    #[must_use]
    pub fn number_of_changes(&self) -> usize {
        self.changes.iter().map(|change| change.count).sum()
    }

    /// Time from the first complete configuration to the end, about: changes, or churn where that takes longer.
    #[must_use]
    pub fn window(&self) -> Duration {
        let changes = u32::try_from(self.number_of_changes()).unwrap_or(u32::MAX);
        self.duration.max(self.between.saturating_mul(changes))
    }

    /// Whether istiod tells some proxy of the fleet of a change. Ztunnels on demand are told of policies alone.
    #[must_use]
    pub fn is_told_of(&self, change: ChangeKind) -> bool {
        let told = |proxy: &ProxyKind| {
            let asks = *proxy == ProxyKind::Ztunnel && self.on_demand;
            let is_pushed = !asks || !change.is_of_mesh() || change == ChangeKind::RootPolicy;
            self.count_of(*proxy) > 0 && change.reaches(*proxy) && is_pushed
        };
        ProxyKind::ALL.iter().any(told)
    }

    /// Objects that the mesh consists of: services with their EndpointSlices, pods, and Istio's.
    #[must_use]
    pub fn objects(&self) -> usize {
        let scopes = if self.scope { self.namespaces } else { 0 };
        2 * self.services
            + self.pods
            + 2 * self.namespaces
            + self.virtual_services
            + self.destination_rules
            + self.gateways
            + self.policies
            + scopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_and_one_takes_the_rest() {
        let kinds: ProxyKinds = "ztunnel=100, sidecar".parse().unwrap();
        assert_eq!(kinds.to_string(), "ztunnel=100,sidecar");
        assert_eq!(kinds.of(150).unwrap(), [(ProxyKind::Ztunnel, 100), (ProxyKind::Sidecar, 50)]);
        assert_eq!(kinds.of(99).unwrap_err(), "`ztunnel=100,sidecar` are 100 proxies of 99");
        let numbers: ProxyKinds = "gateway=2,waypoint=3".parse().unwrap();
        assert!(numbers.of(5).is_ok());
        assert_eq!(numbers.of(6).unwrap_err(), "`gateway=2,waypoint=3` are 5 proxies of 6");
        for refused in ["envoy", "sidecar,gateway", "sidecar=0", "sidecar=1,sidecar=2", "", "sidecar=x"] {
            assert!(refused.parse::<ProxyKinds>().is_err(), "{refused}");
        }
    }

    #[test]
    fn churn_is_a_share_of_the_pods_per_minute_or_pods_per_second() {
        for (text, pods_per_s, written) in [
            ("25%/m", 5.0, "25%/m"),
            ("10/s", 10.0, "10/s"),
            ("120/m", 2.0, "2/s"),
            ("0", 0.0, "0"),
            ("0%/m", 0.0, "0"),
        ] {
            let churn: Churn = text.parse().unwrap();
            assert!((churn.pods_per_s(1200) - pods_per_s).abs() < 1e-9, "{text}");
            assert_eq!(churn.to_string(), written);
            assert_eq!(written.parse::<Churn>().unwrap(), churn);
        }
        for refused in ["25%", "25%/h", "fast", "-1/s", ""] {
            assert_eq!(refused.parse::<Churn>().unwrap_err().quantity, "churn", "{refused}");
        }
    }

    #[test]
    fn changes_read_back_with_their_numbers() {
        for text in ["endpoint-added", "service-entry=3"] {
            assert_eq!(text.parse::<RepeatedChange>().unwrap().to_string(), text);
        }
        let slip = "endpoint-aded".parse::<RepeatedChange>().unwrap_err();
        assert_eq!(slip.expected, "did you mean endpoint-added?");
        assert!("service-entry=0".parse::<RepeatedChange>().is_err());
        assert_eq!(FleetSettings::default().number_of_changes(), 9);
    }
}
