//! Kinds of simulated proxies, and their connections.

use crate::keys::value::by_text;
use crate::keys::words::words;
use results::units::{UnitError, shortened};
use std::fmt;
use std::str::FromStr;

/// Kind of a proxy. Determines its subscriptions.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum ProxyKind {
    /// Envoy next to an application.
    Sidecar,
    /// Envoy at the edge of the mesh.
    Gateway,
    /// Envoy for the services of a namespace in ambient mode.
    Waypoint,
    /// Node proxy of ambient mode.
    Ztunnel,
}

words!(ProxyKind { Sidecar = "sidecar", Gateway = "gateway", Waypoint = "waypoint", Ztunnel = "ztunnel" });

/// Variant of the aggregated discovery service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Hash)]
pub enum XdsVariant {
    /// `DeltaAggregatedResources`: only changed resources. istiod's default.
    #[default]
    Delta,
    /// `StreamAggregatedResources`: all resources of a type at once.
    StateOfTheWorld,
}

words!(XdsVariant { Delta = "delta", StateOfTheWorld = "state-of-the-world" });

/// Authentication of proxies to the control plane.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Hash)]
pub enum FleetSecurity {
    /// Certificate from the control plane's own CA.
    #[default]
    MutualTls,
    /// TLS with the token of the proxy's service account.
    Token,
    /// None: the control plane's plaintext port.
    Plaintext,
}

words!(FleetSecurity { MutualTls = "mutual-tls", Token = "token", Plaintext = "plaintext" });

/// Kinds of proxies in a fleet, such as `sidecar` or `ztunnel=100,sidecar`. One kind may omit its number: it
/// gets the remaining proxies.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxyKinds {
    /// Kinds in the order given, without duplicates.
    shares: Vec<(ProxyKind, Option<usize>)>,
}

impl Default for ProxyKinds {
    fn default() -> Self {
        Self::only(ProxyKind::Sidecar)
    }
}

impl ProxyKinds {
    /// Fleet of a single kind.
    #[must_use]
    pub fn only(kind: ProxyKind) -> Self {
        Self { shares: vec![(kind, None)] }
    }

    /// True if the fleet has proxies of this kind.
    #[must_use]
    pub fn contains(&self, kind: ProxyKind) -> bool {
        self.shares.iter().any(|(one, _)| *one == kind)
    }

    /// Number of proxies of each kind in a fleet of this size.
    ///
    /// # Errors
    /// Returns a sentence if the numbers do not add up to the size.
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

by_text!(ProxyKinds);

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
