//! Sentences of `--dry-run` about what the settings can show, before anything runs.

use super::calibrate;
use experiment::{Experiment, Plan, PlannedTrial};
use report::calibration::before_run;
use results::units::{format_duration, format_rate};
use statistics::comparison::P99_REQUESTS;
use statistics::precision::half_width_in_deviations;
use std::collections::BTreeSet;
use std::time::Duration;

/// Variation between trials in the sentence about precision, as a fraction.
const EXAMPLE_DEVIATION: f64 = 0.1;
/// Repeats that are compared with fewer.
const MORE_REPEATS: usize = 5;

/// Lines below the plan: what the settings can show anywhere, and what this machine resolves if it was calibrated.
pub(super) fn paragraph(experiment: &Experiment, plan: &Plan) -> String {
    let Experiment { resolve, repeats, load, modes, .. } = experiment;
    let calibration = calibrate::expected(plan).filter(|calibration| calibration.covers(modes));
    let of_machine = before_run(resolve, *repeats, load.duration, calibration.as_ref());
    sentences(plan).into_iter().chain(of_machine).fold("\n".to_owned(), |text, line| text + &line + "\n")
}

fn sentences(plan: &Plan) -> Vec<String> {
    [Some(of_differences(plan)), of_p99(plan)].into_iter().flatten().collect()
}

fn of_differences(plan: &Plan) -> String {
    let repeats = plan.repeats().count();
    let first = plan.repeats().next().unwrap_or_default();
    let modes = first.iter().map(PlannedTrial::mode).collect::<BTreeSet<_>>().len();
    let cells = first.len();
    let conditions = cells.div_ceil(modes.max(1));
    let subject = if cells > 1 { "differences between cells" } else { "figures" };
    let with = |repeats: usize| {
        let half = half_width_in_deviations(modes, conditions, repeats)?;
        Some(format!("± {:.0} %", 100.0 * half * EXAMPLE_DEVIATION))
    };
    let more = MORE_REPEATS.max(2 * repeats);
    let more = with(more).map(|half| format!("; with --repeats {more}: {half}")).unwrap_or_default();
    match with(repeats) {
        Some(half) => format!(
            "precision: where trials vary by {:.0} %, {subject} are known to {half}{more}",
            100.0 * EXAMPLE_DEVIATION
        ),
        None => format!("precision: one repeat has no intervals{more}"),
    }
}

/// Says that p99 is unusable at a rate that sends too few requests. Requests of a closed loop are not known before.
fn of_p99(plan: &Plan) -> Option<String> {
    let rates = plan.trials.iter().filter_map(|trial| Some((trial.load.rate?, trial.duration)));
    let all = rates.map(|(rate, window)| (rate * window.as_secs_f64(), rate, window));
    let (requests, rate, window) = all.min_by(|one, other| one.0.total_cmp(&other.0))?;
    (requests < P99_REQUESTS).then(|| {
        let longer = Duration::from_secs((P99_REQUESTS / rate).ceil() as u64);
        format!(
            "p99 needs {P99_REQUESTS} requests in a trial: {} requests/s for {} are {requests:.0}; with --duration {} there \
             are enough",
            format_rate(rate),
            format_duration(window),
            format_duration(longer)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Experiment;

    fn sentences_of(load: &str, repeats: usize) -> Vec<String> {
        let text = format!(
            "name: x\nmesh: envoy\nmodes: [none, sidecar]\nrepeats: {repeats}\nload:\n  {load}\n  connections: 4\n  duration: 2s\n"
        );
        let experiment = Experiment::parse(&text, "x.yaml").unwrap();
        sentences(&Plan::new(&experiment, 1))
    }

    #[test]
    fn few_repeats_and_few_requests_are_named_with_what_would_do() {
        let sentences = sentences_of("rate: 100", 2);
        assert_eq!(sentences.len(), 2, "{sentences:?}");
        assert!(sentences[0].contains("differences between cells are known to ± "), "{sentences:?}");
        assert!(sentences[0].contains("; with --repeats 5: ± "), "{sentences:?}");
        assert_eq!(
            sentences[1],
            "p99 needs 1000 requests in a trial: 100 requests/s for 2s are 200; with --duration 10s there are enough"
        );
    }

    #[test]
    fn one_repeat_has_no_interval_and_closed_loops_no_known_requests() {
        let sentences = sentences_of("clients: 4", 1);
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        assert!(
            sentences[0].starts_with("precision: one repeat has no intervals; with --repeats 5: ± "),
            "{sentences:?}"
        );
    }
}
