//! Parts that all generated runs share.

use experiment::{Experiment, PlannedTrial};
use results::{ComponentVersion, Host, PathProof, TRIAL_SCHEMA, TrialRecord, Verdict};
use statistics::size::MeasuredRun;

pub(crate) use noise::normal::normal;

/// A run of these trials on a machine.
pub fn run_of(experiment: &Experiment, trials: Vec<TrialRecord>) -> MeasuredRun {
    let version = |name: &str, version: &str| ComponentVersion {
        name: name.to_owned(),
        version: version.to_owned(),
        ..ComponentVersion::default()
    };
    let host = Host {
        cpu_model: "AMD EPYC".to_owned(),
        cpus: 64,
        kernel: "6.18".to_owned(),
        versions: vec![version("meshmeter", "0.1.0"), version("envoy", "1.40.0")],
        ..Host::default()
    };
    MeasuredRun { directory: "run".to_owned(), experiment: experiment.clone(), host, trials }
}

/// A planned trial that has finished, without results.
pub fn finished(planned: &PlannedTrial, verdict: &Verdict) -> TrialRecord {
    let read = serde_json::json!({
        "schema": TRIAL_SCHEMA, "index": planned.index, "repeat": planned.repeat, "mode": planned.mode(),
        "factors": planned.factors, "load": planned.load, "started_at": "", "outcome": "finished", "verdict": verdict,
        "result": null, "components": [], "path": PathProof { proven: true, ..PathProof::default() }, "machine": null,
    });
    serde_json::from_value(read).expect("a trial")
}
