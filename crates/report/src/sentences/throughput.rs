//! Closed loops.

use super::at_first;
use results::finding::{About, CpuPayer, FullMachine, Loss, Measured, OfCell};
use results::{Conditions, FindingVerdict};
use statistics::words;

/// Throughput of the baseline and the loss with each mode.
pub(super) fn headline(baseline: &OfCell<Measured>, losses: &[&OfCell<Loss>]) -> String {
    let (mut shown, mut alike) = (Vec::new(), Vec::new());
    for OfCell { place, content: Loss { change, .. }, .. } in losses {
        let mode = words::mode(place.mode);
        match change.verdict {
            FindingVerdict::Shown if change.difference.estimate < 0.0 => {
                shown.push(format!("{} less with {mode}", words::change_value(-change.difference.estimate)));
            }
            _ => alike.push(format!("{mode} ({})", words::signed(&change.difference, words::change))),
        }
    }
    if !alike.is_empty() {
        shown.push(format!("no loss is shown with {}", words::list(&alike)));
    }
    format!(
        "{} {} responds to {}: {}.",
        at_first(baseline.place.conditions()),
        words::mode(baseline.place.mode),
        words::rate(baseline.content.value),
        shown.join("; ")
    )
}

type Cost = OfCell<About<CpuPayer, Measured>>;

/// CPU of all proxies per request, by mode.
pub(super) fn cpu_per_request(group: &[&Cost]) -> String {
    let (proxies, control_planes): (Vec<&Cost>, Vec<&Cost>) =
        group.iter().partition(|cost| cost.content.subject == CpuPayer::Proxies);
    let clause = |cost: &&Cost| {
        format!("{} {}", words::mode(cost.place.mode), words::cpu_time(&cost.content.figure.estimate))
    };
    let clauses: Vec<String> = proxies.iter().map(clause).collect();
    let most = control_planes.iter().map(|cost| cost.content.figure.value).fold(0.0, f64::max);
    let control_plane = if most > 0.0 {
        format!("; the control plane at most {} besides", words::cpu_time_value(most))
    } else {
        String::new()
    };
    let at = words::brief_at(group[0].place.conditions());
    format!("Proxy CPU per request {at}: {}{control_plane}.", clauses.join("; "))
}

/// Loads under which the machine had no CPU left.
pub(super) fn full_machine(group: &[&FullMachine]) -> String {
    let loads =
        group.iter().map(|FullMachine { factors, load, .. }| words::brief(Conditions { factors, load }));
    format!(
        "All CPUs of the machine were busy with {}; throughput there is what the CPU of the whole path allows, generator and \
         server included, and response times include the waiting for it.",
        words::list(&loads.collect::<Vec<_>>())
    )
}
