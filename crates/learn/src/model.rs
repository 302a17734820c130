//! The learned topology: services with scripts, clients with drivers, and the provenance of both.

use crate::checks::{self, Findings};
use crate::draft::Draft;
use crate::drivers;
use crate::mesh::Mesh;
use crate::objects::Objects;
use crate::provenance::{Provenance, shown};
use crate::scripts::Flows;
use crate::telemetry::Telemetry;
use crate::traces::{self, Traced};
use experiment::topology::Topology;
use results::units::format_fraction;

/// Choices of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Name of the topology.
    pub name: String,
    /// Factor of rates and replicas, above 0 and at most 1.
    pub scale: f64,
    /// Fraction of a callee's requests below which a call is left out.
    pub least_share: f64,
}

/// Telemetry from which no topology can be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LearnError {
    /// Neither requests nor connections.
    #[error("the telemetry has no request and no connection between workloads")]
    Nothing,
    /// Traces without a rate.
    #[error("traces alone have no rates: they are a sample of the requests")]
    Sampling,
    /// Traces of which nothing is kept.
    #[error("the traces have no request and no call that is kept: {0}")]
    LeftOut(String),
    /// The file would be larger than a topology file may be.
    #[error("the learned topology has {calls} calls and {bytes} bytes: a topology file has at most 1 MiB")]
    TooLarge {
        /// Number of calls.
        calls: usize,
        /// Size of the file.
        bytes: usize,
    },
    /// The file is not a valid topology.
    #[error("the learned topology is not valid: {0}")]
    Invalid(String),
}

/// A learned topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The topology file.
    pub yaml: String,
    /// The same as a value.
    pub topology: Topology,
    /// Sources of its figures.
    pub provenance: Provenance,
}

/// Learns a topology.
///
/// # Errors
/// Returns an error if the telemetry is empty or too large for a topology file.
pub fn learn(telemetry: &Telemetry, objects: &Objects, options: &Options) -> Result<Learned, LearnError> {
    let mut mesh = mesh_of(telemetry)?;
    let mut findings = Findings::default();
    checks::of_telemetry(telemetry, &mesh, &mut findings);
    leave_out(&mut mesh, options.least_share, &mut findings);
    if mesh.edges.is_empty() {
        return Err(LearnError::Nothing);
    }
    let flows = Flows::new(&mesh);
    let traced = Traced::new(telemetry, &mesh, &flows);
    let build = |break_circles: bool| {
        let driven = drivers::choose(&mesh, &flows, break_circles);
        Draft::new(&mesh, (&flows, &traced), driven, (objects, options))
    };
    let draft = build(false);
    let (draft, topology) = match draft.read() {
        Err(LearnError::Invalid(_)) => {
            let draft = build(true);
            let topology = draft.read()?;
            (draft, topology)
        }
        other => (draft, other?),
    };
    let yaml = draft.header() + &topology.to_yaml();
    Ok(Learned { provenance: draft.provenance(telemetry, findings), yaml, topology })
}

/// Mesh of the metrics, or of traces alone.
fn mesh_of(telemetry: &Telemetry) -> Result<Mesh, LearnError> {
    let alone = telemetry.traces.as_deref().filter(|_| telemetry.pairs.is_empty());
    let Some(traces) = alone.filter(|traces| traces.spans > 0) else { return Ok(Mesh::new(telemetry)) };
    let mesh = traces::mesh_of(telemetry, traces, traces.sampling.ok_or(LearnError::Sampling)?);
    let left_out = checks::left_out(traces);
    if mesh.edges.is_empty() && !left_out.is_empty() {
        let texts: Vec<String> = left_out.into_iter().map(|(_, text)| text).collect();
        return Err(LearnError::LeftOut(texts.join("; ")));
    }
    Ok(mesh)
}

/// Removes calls that carry little of their callee's requests.
fn leave_out(mesh: &mut Mesh, least_share: f64, findings: &mut Findings) {
    if least_share <= 0.0 {
        return;
    }
    let arriving = Flows::new(mesh).arriving;
    let (mut calls, mut rate) = (0, 0.0);
    mesh.edges.retain(|edge| {
        let stays = edge.rate >= least_share * arriving[edge.to];
        if !stays {
            calls += 1;
            rate += edge.rate;
        }
        stays
    });
    if calls > 0 {
        let total: f64 = arriving.iter().sum();
        let text = format!(
            "{calls} calls with less than {} of their callee's requests are left out: {} of {} requests/s",
            format_fraction(least_share),
            shown(rate),
            shown(total)
        );
        findings.add("left-out", "", text);
    }
}
