//! Closed loops.

use super::{at, at_first};
use results::Finding;
use statistics::words;

/// Throughput of the baseline and the loss with each mode.
pub(super) fn headline(group: &[&Finding]) -> String {
    let baseline = group[0];
    let mode = |finding: &Finding| finding.mode.map_or("", words::mode);
    let (mut shown, mut alike) = (Vec::new(), Vec::new());
    for loss in &group[1..] {
        match loss.estimate.filter(|_| loss.is_shown()) {
            Some(change) => {
                shown.push(format!("{} less with {}", words::change_value(-change.estimate), mode(loss)));
            }
            None => alike.push(mode(loss).to_owned()),
        }
    }
    let alike = if alike.is_empty() {
        String::new()
    } else {
        format!("; no loss is shown with {}", words::list(&alike))
    };
    format!(
        "{} {} responds to {}: {}{alike}.",
        at_first(baseline),
        mode(baseline),
        words::rate(baseline.value.unwrap_or(f64::NAN)),
        words::list(&shown)
    )
}

/// CPU of all proxies per request, by mode.
pub(super) fn cpu_per_request(group: &[&Finding]) -> String {
    let (proxies, control_planes): (Vec<&Finding>, Vec<&Finding>) =
        group.iter().partition(|finding| finding.subject.as_deref() == Some("proxies"));
    let clauses: Vec<String> = proxies
        .iter()
        .filter_map(|finding| {
            let mode = words::mode(finding.mode?);
            Some(format!("{} with {mode}", words::cpu_time(finding.estimate.as_ref()?)))
        })
        .collect();
    let most = control_planes.iter().filter_map(|finding| finding.value).fold(0.0, f64::max);
    let control_plane = if most > 0.0 {
        format!("; the control plane at most {} besides", words::cpu_time_value(most))
    } else {
        String::new()
    };
    format!("CPU of all proxies per request {}: {}{control_plane}.", at(group[0]), words::list(&clauses))
}

/// Loads under which the machine had no CPU left.
pub(super) fn full_machine(group: &[&Finding]) -> String {
    let loads = group.iter().filter_map(|finding| finding.conditions().map(words::described));
    format!(
        "All CPUs of the machine were busy with {}: throughput there is what the CPU of the whole path allows, generator and \
         server included, and response times include the waiting for it.",
        words::list(&loads.collect::<Vec<_>>())
    )
}
