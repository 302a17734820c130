//! A fleet as the driver of a trial: its arguments, its timeouts, and which figures its verdict spoils.

use experiment::environment::deploy::Argument;
use experiment::settings::fleet::FleetSettings;
use results::{Figures, FleetResult, Verdict};
use std::time::Duration;

/// Timeout for writing a mesh, without the time per object.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// Added per object: fifteen times what an idle machine needs.
const WRITE_TIMEOUT_PER_OBJECT: Duration = Duration::from_millis(100);
/// Timeout for removing a mesh when the run is stopped, without the time per object.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Added per object.
const EXIT_TIMEOUT_PER_OBJECT: Duration = Duration::from_millis(20);

/// Arguments of `meshmeter fleet`, except those that the deployment adds.
pub(super) fn arguments(fleet: &FleetSettings) -> Vec<Argument> {
    let content = fleet.to_yaml().into_bytes();
    let file = Argument::File { prefix: String::new(), name: "fleet.yaml".to_owned(), content };
    vec![Argument::Text("--spec".to_owned()), file]
}

/// Time from its start after which a fleet is considered hung: all of its own timeouts are shorter.
pub(super) fn longest(fleet: &FleetSettings) -> Duration {
    // The first configurations, each change, and churn may each take up to `settle` to arrive.
    let waits = u32::try_from(fleet.number_of_changes() + 2).unwrap_or(u32::MAX);
    WRITE_TIMEOUT
        + WRITE_TIMEOUT_PER_OBJECT.saturating_mul(objects(fleet))
        + fleet.settle.saturating_mul(waits)
        + fleet.window()
        + exit_timeout(fleet)
}

/// Time from its interruption after which a fleet is killed.
pub(super) fn exit_timeout(fleet: &FleetSettings) -> Duration {
    EXIT_TIMEOUT + EXIT_TIMEOUT_PER_OBJECT.saturating_mul(objects(fleet))
}

fn objects(fleet: &FleetSettings) -> u32 {
    u32::try_from(fleet.objects()).unwrap_or(u32::MAX)
}

/// The fleet's verdict as the verdict of a trial. Proxies that missed a change rank above all others in
/// percentiles, so they spoil nothing.
pub(super) fn verdict(result: &FleetResult) -> Verdict {
    let mut verdict = Verdict::usable();
    for reason in &result.verdict.reasons {
        let figures = match reason.split(':').next().unwrap_or_default() {
            // Without a single configuration there was no load on istiod.
            "not-converged" if result.first_configuration_us.count == 0 => Figures::all(),
            "not-converged" => Figures::none(),
            // Arrival times are kernel timestamps, so only readings that came very late make them wrong.
            "fleet-late" => Figures::times(),
            _ => Figures::all(),
        };
        verdict.spoil(reason.clone(), figures);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Experiment;
    use results::{Figure, FleetVerdict, HistogramSummary};

    fn settings(rest: &str) -> FleetSettings {
        let text = format!("{{name: f, mesh: istio, modes: [control-plane], fleet: {{{rest}}}}}");
        let fleet = Experiment::parse(&text, "test").unwrap().fleet.unwrap();
        FleetSettings::clone(&fleet)
    }

    #[test]
    fn fleet_timeout_exceeds_its_own_timeouts() {
        let fleet = settings("changes: [endpoint-added=3], settle: 30s");
        assert!(longest(&fleet) > Duration::from_secs(5 * 30));
        assert!(exit_timeout(&fleet) < longest(&fleet));
    }

    #[test]
    fn unreached_proxies_spoil_nothing_and_late_fleet_spoils_times() {
        let result = |reason: &str| FleetResult {
            verdict: FleetVerdict { reasons: vec![reason.to_owned()], ..FleetVerdict::default() },
            first_configuration_us: HistogramSummary { count: 97, ..HistogramSummary::default() },
            ..FleetResult::default()
        };
        let nothing = FleetResult {
            first_configuration_us: HistogramSummary::default(),
            ..result("not-converged: 100 of 100 proxies")
        };
        assert!(!verdict(&nothing).is_usable(Figure::Cpu), "istiod had nothing to do");
        let never = verdict(&result("not-converged: 3 of 100 proxies"));
        assert!(never.valid && never.is_usable(Figure::P99) && never.reasons.len() == 1);
        let late = verdict(&result("fleet-late: responses were read 70 ms after their receipt at p99"));
        assert!(!late.is_usable(Figure::P50) && late.is_usable(Figure::Cpu));
        assert!(!verdict(&result("interrupted")).is_usable(Figure::Memory));
    }
}
