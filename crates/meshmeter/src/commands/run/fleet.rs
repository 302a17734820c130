//! A fleet as the driver of a trial: its arguments, its timeouts, and which figures its verdict spoils.

use experiment::environment::deploy::Argument;
use experiment::settings::fleet::FleetSettings;
use results::units::{Churn, format_duration, format_rate};
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
    let mut options: Vec<(&str, String)> = vec![
        ("--proxies", fleet.proxies.to_string()),
        ("--kind", fleet.kinds.to_string()),
        ("--xds", fleet.xds.name().to_owned()),
        ("--security", fleet.security.name().to_owned()),
        ("--virtual-services", fleet.virtual_services.to_string()),
        ("--destination-rules", fleet.destination_rules.to_string()),
        ("--gateways", fleet.gateways.to_string()),
        ("--policies", fleet.policies.to_string()),
        ("--churn", fleet.churn.to_string()),
        ("--between", format_duration(fleet.between)),
        ("--settle", format_duration(fleet.settle)),
    ];
    options.extend(fleet.changes.iter().map(|change| ("--change", change.to_string())));
    let no_change = (fleet.changes.is_empty() && fleet.churn == Churn::None).then(|| text("--no-change"));
    // If nothing but the changes is observed, they take as long as they take.
    let is_observed = fleet.churn != Churn::None || !fleet.duration.is_zero();
    options.extend(is_observed.then(|| ("--duration", format_duration(fleet.window()))));
    options.extend(fleet.connect_rate.map(|rate| ("--connect-rate", format_rate(rate))));
    options.extend(fleet.threads.map(|threads| ("--threads", threads.to_string())));
    let switches = [("--scope", fleet.scope), ("--on-demand", fleet.on_demand)];
    let switches = switches.into_iter().filter(|(_, is_on)| *is_on).map(|(switch, _)| text(switch));
    let options = options.into_iter().flat_map(|(option, value)| [text(option), Argument::Text(value)]);
    options.chain(mesh_arguments(fleet)).chain(switches).chain(no_change).collect()
}

/// Services, pods and namespaces: from a topology file, or as numbers.
fn mesh_arguments(fleet: &FleetSettings) -> Vec<Argument> {
    if let Some(topology) = &fleet.topology {
        let content = topology.to_yaml().into_bytes();
        return vec![text("--topology"), Argument::File { name: "topology.yaml".to_owned(), content }];
    }
    let numbers =
        [("--services", fleet.services), ("--pods", fleet.pods), ("--namespaces", fleet.namespaces)];
    numbers
        .into_iter()
        .flat_map(|(option, number)| [text(option), Argument::Text(number.to_string())])
        .collect()
}

fn text(text: &str) -> Argument {
    Argument::Text(text.to_owned())
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
    fn arguments_name_every_setting() {
        let fleet = settings(
            "proxies: 50, kind: 'ztunnel=10,sidecar', security: token, scope: on, on-demand: on, churn: 25%/m, \
             changes: [endpoint-added=3, service-entry], between: 2s, duration: 30s, settle: 20s, connect-rate: 100, threads: 2",
        );
        let texts: Vec<String> = arguments(&fleet)
            .into_iter()
            .map(|argument| match argument {
                Argument::Text(text) => text,
                Argument::File { name, .. } => name,
            })
            .collect();
        let joined = texts.join(" ");
        assert_eq!(
            joined,
            "--proxies 50 --kind ztunnel=10,sidecar --xds delta --security token \
             --virtual-services 0 --destination-rules 0 --gateways 0 --policies 0 --churn 25%/m --between 2s --settle 20s \
             --change endpoint-added=3 --change service-entry --duration 30s --connect-rate 100 --threads 2 \
             --services 100 --pods 200 --namespaces 10 --scope --on-demand"
        );
    }

    #[test]
    fn topology_file_replaces_numbers() {
        let text = "{name: f, mesh: istio, modes: [control-plane], topology: {shape: chain, hops: 3}, fleet: {proxies: 2}}";
        let fleet = Experiment::parse(text, "test").unwrap().fleet.unwrap();
        let arguments = arguments(&fleet);
        assert!(!arguments.contains(&super::text("--services")));
        let file = arguments.iter().find_map(|argument| match argument {
            Argument::File { content, .. } => Some(String::from_utf8_lossy(content).into_owned()),
            Argument::Text(_) => None,
        });
        assert_eq!(file.unwrap().matches("replicas: 1").count(), fleet.services);
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
            verdict: FleetVerdict { valid: false, reasons: vec![reason.to_owned()] },
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
