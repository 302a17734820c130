//! Kinds of changes.

use super::ProxyKind;
use results::units::{UnitError, shortened};
use std::fmt;
use std::str::FromStr;

/// Kind of change whose convergence is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum ChangeKind {
    /// An endpoint is added to a service.
    EndpointAdded,
    /// An endpoint is removed from a service.
    EndpointRemoved,
    /// A pod is deleted and replaced by one with another address.
    PodRestarted,
    /// A service is added.
    ServiceAdded,
    /// The routes of a service change.
    VirtualService,
    /// The traffic policy of a service changes.
    DestinationRule,
    /// An external service is added: a full push.
    ServiceEntry,
    /// A policy of the root namespace changes: a full push.
    RootPolicy,
    /// All pods of a service are replaced, one after the other.
    RollingRestart,
    /// Proxies get new certificates and reconnect with them.
    CertificateRotation,
    /// All proxies disconnect and reconnect at once.
    ConnectStorm,
    /// An istiod is killed and restarted.
    IstiodRestart,
    /// An istiod is added.
    IstiodAdded,
    /// An istiod is removed.
    IstiodRemoved,
    /// Some proxies lose their connection for some time.
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

    /// Name that users type.
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

    /// True if the change makes istiod send something to proxies of this kind.
    #[must_use]
    pub fn reaches(self, kind: ProxyKind) -> bool {
        kind != ProxyKind::Ztunnel || !matches!(self, Self::VirtualService | Self::DestinationRule)
    }

    /// True for changes of mesh objects, which istiod pushes to connected proxies.
    #[must_use]
    pub fn is_of_mesh(self) -> bool {
        !self.is_of_environment() && !matches!(self, Self::CertificateRotation | Self::ConnectStorm)
    }

    /// True if pods of a service come or go: istiod then only sends that service's endpoints.
    #[must_use]
    pub fn is_of_endpoints(self) -> bool {
        matches!(
            self,
            Self::EndpointAdded | Self::EndpointRemoved | Self::PodRestarted | Self::RollingRestart
        )
    }

    /// True if only the environment of an experiment can make the change.
    #[must_use]
    pub fn is_of_environment(self) -> bool {
        matches!(self, Self::IstiodRestart | Self::IstiodAdded | Self::IstiodRemoved | Self::LinkDown)
    }
}

/// A kind of change and its count, such as `endpoint-added=5`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RepeatedChange {
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Number of changes.
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
            let nearest = crate::yaml::suggestion::nearest(word, names);
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
