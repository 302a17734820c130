//! The changes in question, costed by measured changes of their kind.

use super::super::linear::{FittedLaw, Unresolved};
use super::super::measured::{CHURN, affected_share, is_of_endpoints};
use super::super::{ChangeLaws, Laws};
use super::{Mesh, over};
use experiment::settings::fleet::ChangeKind;
use results::{AskedChange, ControlPlaneQuestion};
use std::collections::BTreeSet;

/// Kinds of change that can stand in for pods that come, go or are replaced, best first.
const FOR_CHURN: [&str; 4] = [CHURN, "pod-restarted", "endpoint-added", "endpoint-removed"];

/// Changes of one kind.
pub(super) struct Asked<'a> {
    kind: String,
    /// The measured kind used for it.
    pub measured_as: &'a str,
    pub per_s: f64,
    affected_proxies: f64,
    pods_per_service: f64,
    pub laws: &'a ChangeLaws,
    pub pushes: &'a FittedLaw,
    pub bytes: &'a FittedLaw,
}

#[derive(Default)]
pub(super) struct Changes<'a>(Vec<Asked<'a>>);

impl<'a> Changes<'a> {
    /// The error names the kind that was not measured, or not for such a mesh. `bytes` is the configuration
    /// of a proxy.
    pub fn new(
        question: &ControlPlaneQuestion,
        mesh: &Mesh,
        laws: &'a Laws,
        bytes: f64,
    ) -> Result<Self, Unresolved> {
        let churn = (question.changes_per_s > 0.0).then(|| (CHURN, question.changes_per_s, &FOR_CHURN[..]));
        let mut all = Vec::new();
        if let Some((kind, per_s, stand_ins)) = churn {
            all.push(Asked::new(kind, per_s, stand_ins, mesh, laws, bytes)?);
        }
        for (kind, per_s) in question.other_changes_per_s.iter().filter(|(_, per_s)| **per_s > 0.0) {
            all.push(Asked::new(kind, *per_s, &[kind], mesh, laws, bytes)?);
        }
        Ok(Self(all))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Asked<'a>> {
        self.0.iter()
    }

    pub fn laws(&self) -> impl Iterator<Item = &'a FittedLaw> {
        self.0.iter().flat_map(|asked| [asked.pushes, asked.bytes])
    }

    /// Bytes and pushes per second: the variables of the law of CPU under changes.
    pub fn rates(&self, repeat: Option<usize>, configuration_bytes: f64) -> [f64; 2] {
        let sum = |read: &dyn Fn(&Asked<'_>) -> f64| {
            self.0.iter().map(|asked| asked.per_s * asked.affected_proxies * read(asked)).sum::<f64>()
        };
        [
            sum(&|asked| asked.bytes_of_change(repeat, configuration_bytes)),
            sum(&|asked| asked.pushes.cost(repeat, &[]).max(0.0)),
        ]
    }

    /// The changes in the form of the answer schema, with intervals over the repeats.
    pub fn described(
        &self,
        repeats: &BTreeSet<usize>,
        configuration_bytes: &dyn Fn(Option<usize>) -> f64,
    ) -> Vec<AskedChange> {
        let described = |asked: &Asked<'_>| AskedChange {
            kind: asked.kind.clone(),
            measured_as: asked.measured_as.to_owned(),
            per_s: asked.per_s,
            affected_proxies: asked.affected_proxies,
            pushes: Some(over(repeats, &|repeat| asked.pushes.cost(repeat, &[]))),
            bytes: Some(over(repeats, &|repeat| asked.bytes_of_change(repeat, configuration_bytes(repeat)))),
        };
        self.0.iter().map(described).collect()
    }
}

impl<'a> Asked<'a> {
    fn new(
        kind: &str,
        per_s: f64,
        stand_ins: &[&str],
        mesh: &Mesh,
        laws: &'a Laws,
        bytes: f64,
    ) -> Result<Self, Unresolved> {
        let measured = stand_ins.iter().find_map(|one| laws.changes.get_key_value(*one));
        let (measured_as, of_kind) = measured.ok_or_else(|| not_measured(kind, laws))?;
        let of_change = |reason: &Unresolved| format!("{measured_as}: {reason}");
        let asked = Self {
            kind: kind.to_owned(),
            measured_as,
            per_s,
            affected_proxies: mesh.proxies * affected_share(measured_as, mesh.visible),
            pods_per_service: mesh.pods_per_service,
            laws: of_kind,
            pushes: of_kind.pushes.as_ref().map_err(of_change)?,
            bytes: of_kind.bytes.as_ref().map_err(of_change)?,
        };
        asked.bytes.check(&[asked.variable(bytes)]).map_err(|reason| of_change(&reason))?;
        Ok(asked)
    }

    /// The variable that the bytes of a change depend on.
    fn variable(&self, configuration_bytes: f64) -> f64 {
        if is_of_endpoints(self.measured_as) { self.pods_per_service } else { configuration_bytes }
    }

    fn bytes_of_change(&self, repeat: Option<usize>, configuration_bytes: f64) -> f64 {
        self.bytes.cost(repeat, &[self.variable(configuration_bytes)]).max(0.0)
    }
}

fn not_measured(kind: &str, laws: &Laws) -> Unresolved {
    let known: Vec<&str> = laws.changes.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let wanted = if kind == CHURN {
        format!("fleet.churn or fleet.changes={}", ChangeKind::EndpointAdded.name())
    } else {
        format!("fleet.changes={kind}")
    };
    format!("no {kind} was measured (changes of the runs: {known}); a run with {wanted} measures it")
}
