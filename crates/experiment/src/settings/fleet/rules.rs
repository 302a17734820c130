//! Contradictions between the settings of a fleet.
//!
//! The section `fleet` and the options of `meshmeter fleet` have the same rules. Each names the setting in its own way,
//! and the reader of a file finds its place.

use super::{ChangeKind, FleetSecurity, FleetSettings, ProxyKind, XdsVariant};
use std::time::Duration;

/// Maximum number of changes in a trial.
const MAX_CHANGES: usize = 1_000;
/// Maximum churn that a lab's API server can handle.
const MAX_CHURN_PODS_PER_S: f64 = 1_000.0;
const MIN_DURATION_OF_CHURN: Duration = Duration::from_secs(1);

/// Names of settings in messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SettingNames {
    /// As keys of the section `fleet`.
    Keys,
    /// As options of `meshmeter fleet`.
    Options,
}

impl SettingNames {
    /// Name of a setting.
    #[must_use]
    pub fn name(self, key: &str) -> String {
        match (self, key) {
            (Self::Keys, key) => format!("fleet.{key}"),
            (Self::Options, "changes") => "--change".to_owned(),
            (Self::Options, key) => format!("--{key}"),
        }
    }

    /// A setting with its value.
    fn with_value(self, key: &str, value: &str) -> String {
        let separator = if self == Self::Keys { ":" } else { "" };
        format!("{}{separator} {value}", self.name(key))
    }
}

/// Setting that contradicts others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FleetContradiction {
    /// Key of the setting.
    pub key: &'static str,
    /// Key of the other setting, which may be the only one that was given.
    pub other: Option<&'static str>,
    /// Index of the change, if the setting is one of several changes.
    pub change: Option<usize>,
    /// True if any value of the setting would be wrong.
    pub is_any_value: bool,
    /// The problem.
    pub message: String,
    /// Correct values, beginning with `expected`.
    pub expected: String,
    /// Explanation; absent if the message needs none.
    pub hint: Option<&'static str>,
}

impl FleetContradiction {
    fn new(key: &'static str, message: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            key,
            other: None,
            change: None,
            is_any_value: false,
            message: message.into(),
            expected: expected.into(),
            hint: None,
        }
    }
}

type Checked = Result<(), FleetContradiction>;

impl FleetSettings {
    /// Checks the settings against each other. `istiods` is the number of istiods at the start.
    ///
    /// # Errors
    /// Returns the first contradiction.
    pub fn check(&self, istiods: usize, names: SettingNames) -> Checked {
        self.check_kinds(names)?;
        self.check_sizes(names)?;
        self.check_changes(istiods, names)?;
        self.check_course(names)
    }

    fn check_kinds(&self, names: SettingNames) -> Checked {
        if let Err(reason) = self.kinds.of(self.proxies) {
            let expected =
                format!("expected numbers for {} proxies, or one kind without a number", self.proxies);
            return Err(FleetContradiction::new("kind", reason, expected));
        }
        let has = |kind| self.kinds.contains(kind);
        if has(ProxyKind::Ztunnel) && self.xds == XdsVariant::StateOfTheWorld {
            let hint = "workloads are subscribed to by delta alone; compare the variants with sidecars";
            return Err(FleetContradiction {
                hint: Some(hint),
                ..FleetContradiction::new(
                    "xds",
                    "ztunnels do not speak state-of-the-world",
                    "expected `delta`",
                )
            });
        }
        let useless = |key, kind: &str, why: &str| {
            let message = format!("`{}` has no effect without {kind}s", names.name(key));
            let expected = format!("expected with `{}`{why}", names.with_value("kind", kind));
            FleetContradiction { is_any_value: true, ..FleetContradiction::new(key, message, expected) }
        };
        if self.on_demand && !has(ProxyKind::Ztunnel) {
            return Err(useless("on-demand", "ztunnel", ""));
        }
        if self.scope && !has(ProxyKind::Sidecar) {
            return Err(useless("scope", "sidecar", ": it scopes the configuration of sidecars"));
        }
        Ok(())
    }

    /// Sidecars are in pods of the mesh, and Istio objects each belong to a different service.
    fn check_sizes(&self, names: SettingNames) -> Checked {
        let at_most = |key, count: usize, what: &str, most: usize, of: &'static str| {
            if count <= most {
                return Ok(());
            }
            let counted = if most == 1 { of.trim_end_matches('s') } else { of };
            let more = match &self.topology {
                Some(topology) => format!("a topology of more {of} than `{}`", topology.name),
                None => format!("more `{}`", names.name(of)),
            };
            let message = format!("{count} {what} in a mesh of {most} {counted}");
            let expected = format!("expected at most {most}, or {more}");
            Err(FleetContradiction { other: Some(of), ..FleetContradiction::new(key, message, expected) })
        };
        at_most("proxies", self.count_of(ProxyKind::Sidecar), "sidecars", self.pods, "pods")?;
        at_most("namespaces", self.namespaces, "namespaces", self.services, "services")?;
        at_most("virtual-services", self.virtual_services, "VirtualServices", self.services, "services")?;
        at_most("destination-rules", self.destination_rules, "DestinationRules", self.services, "services")
    }

    /// Changes that are not pushed to any proxy would never arrive.
    fn check_changes(&self, istiods: usize, names: SettingNames) -> Checked {
        let mut istiods = istiods;
        let mut number = 0;
        for (place, change) in self.changes.iter().enumerate() {
            let refused = |message: String, expected: String| FleetContradiction {
                change: Some(place),
                other: Some("on-demand"),
                ..FleetContradiction::new("changes", message, expected)
            };
            let kind = change.kind;
            if !self.is_told_of(kind) {
                let example = if self.on_demand { "root-policy" } else { "endpoint-added" };
                let kinds = names.with_value("kind", &self.kinds.to_string());
                let of = if self.on_demand && kind.reaches(ProxyKind::Ztunnel) { " on demand" } else { "" };
                return Err(refused(
                    format!("`{}` reaches no proxy of `{kinds}`{of}", kind.name()),
                    format!("expected a change that ztunnels receive, such as `{example}`"),
                ));
            }
            if kind == ChangeKind::CertificateRotation && self.security != FleetSecurity::MutualTls {
                let secure = names.with_value("security", FleetSecurity::MutualTls.name());
                return Err(refused(
                    format!("`{}` needs proxies with certificates", kind.name()),
                    format!("expected with `{secure}`"),
                ));
            }
            match kind {
                ChangeKind::IstiodAdded => istiods += change.count,
                ChangeKind::IstiodRemoved if istiods <= change.count => {
                    return Err(refused(
                        format!("{} of {istiods} istiods would be taken away", change.count),
                        "expected one to be left: more istiods, or `istiod-added` before".to_owned(),
                    ));
                }
                ChangeKind::IstiodRemoved => istiods -= change.count,
                _ => {}
            }
            number += change.count;
            if number > MAX_CHANGES {
                return Err(refused(
                    "too many changes".to_owned(),
                    format!("expected at most {MAX_CHANGES}"),
                ));
            }
        }
        Ok(())
    }

    fn check_course(&self, names: SettingNames) -> Checked {
        let pods_per_s = self.churn.pods_per_s(self.pods);
        if pods_per_s > MAX_CHURN_PODS_PER_S {
            return Err(FleetContradiction::new(
                "churn",
                format!("{pods_per_s:.0} pods per second are more than an API server takes"),
                format!("expected at most {MAX_CHURN_PODS_PER_S}/s"),
            ));
        }
        if pods_per_s > 0.0 && self.window() < MIN_DURATION_OF_CHURN {
            let expected = format!("expected with `{}`", names.with_value("duration", "30s"));
            return Err(FleetContradiction {
                is_any_value: true,
                ..FleetContradiction::new("churn", "there is no time for churn", expected)
            });
        }
        if self.settle.is_zero() {
            return Err(FleetContradiction::new(
                "settle",
                "a change would have no time to arrive",
                "expected more than 0s",
            ));
        }
        Ok(())
    }
}
