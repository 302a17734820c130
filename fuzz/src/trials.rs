//! Invariants of any lines in `trials.jsonl`: they are trials or errors, and a run of any trials has a summary. Included
//! by the fuzz target and by the test that replays the corpus.

use experiment::Experiment;
use results::{Host, Summary, TrialRecord};
use std::sync::LazyLock;

/// More lines add time, and nothing else.
const MAX_TRIALS: usize = 20;

static EXPERIMENT: LazyLock<Experiment> = LazyLock::new(|| {
    let text = "{name: t, modes: [none, sidecar, gateway], load: {rate: [500, 1000], connections: [2, 4]}, \
                repeats: 3, objective: {p99: 20ms, errors: 1%}, proxy: {access-log: ['off', json]}}";
    Experiment::parse(text, "t").expect("an experiment")
});

/// # Panics
/// Panics if an invariant is violated.
pub fn check(input: &[u8]) {
    let lines = input.split(|byte| *byte == b'\n').take(MAX_TRIALS);
    let trials: Vec<TrialRecord> = lines.filter_map(|line| TrialRecord::from_json(line).ok()).collect();
    for trial in &trials {
        let written = serde_json::to_vec(trial).expect("a trial is JSON");
        TrialRecord::from_json(&written).expect("what was written is read");
    }
    let trials: Vec<TrialRecord> = trials.into_iter().filter(TrialRecord::has_possible_counts).collect();
    let summary = statistics::summarize(&EXPERIMENT, 1, trials.len(), &Host::default(), &trials);
    assert_eq!(summary.trials_recorded, trials.len());
    let written = serde_json::to_string(&summary).expect("a summary is JSON");
    serde_json::from_str::<Summary>(&written).expect("what was written is read");
}
