//! Kinds of changes.

use super::ProxyKind;
use crate::diagnostic::ExperimentError;
use crate::keys::Kind;
use crate::keys::value::Value;
use crate::keys::words::words;
use crate::yaml::document;
use crate::yaml::section::{Field, Item, alternatives};
use crate::yaml::suggestion::nearest;
use crate::yaml::written::Yaml;
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

words!(ChangeKind {
    EndpointAdded = "endpoint-added",
    EndpointRemoved = "endpoint-removed",
    PodRestarted = "pod-restarted",
    ServiceAdded = "service-added",
    VirtualService = "virtual-service",
    DestinationRule = "destination-rule",
    ServiceEntry = "service-entry",
    RootPolicy = "root-policy",
    RollingRestart = "rolling-restart",
    CertificateRotation = "certificate-rotation",
    ConnectStorm = "connect-storm",
    IstiodRestart = "istiod-restart",
    IstiodAdded = "istiod-added",
    IstiodRemoved = "istiod-removed",
    LinkDown = "link-down"
});

impl ChangeKind {
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

/// One or several changes; an empty list means none.
impl Value for Vec<RepeatedChange> {
    fn read(field: &Field<'_>, _: Kind) -> Result<Self, Box<ExperimentError>> {
        if matches!(&field.node.value, document::Value::List(items) if items.is_empty()) {
            return Ok(Self::new());
        }
        field.one_or_list()?.iter().map(|item| change(field, item)).collect()
    }

    fn written(&self, _: Kind) -> Option<Yaml> {
        Some(Yaml::List(self.iter().map(|change| Yaml::Text(change.to_string())).collect()))
    }
}

fn change(field: &Field<'_>, item: &Item<'_>) -> Result<RepeatedChange, Box<ExperimentError>> {
    let word = item.text.split('=').next().unwrap_or_default().trim();
    let names = ChangeKind::ALL.map(ChangeKind::name);
    if names.contains(&word) {
        return item.quantity(&field.path, str::parse);
    }
    let error = item.place.error(
        format!("`{}`: `{}` is not a kind of change", field.path, shortened(word)),
        format!("expected {}", alternatives(&names)),
    );
    Err(error.did_you_mean(nearest(word, names)))
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
            refused(nearest(word, names).map_or_else(
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
