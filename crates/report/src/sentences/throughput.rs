//! Closed loops.

use super::at_first;
use super::said::Said;
use super::word_factors::{judged, percent, requests_per_s};
use results::finding::{About, CpuPayer, FullMachine, Loss, Measured, OfCell};
use results::{Conditions, FindingVerdict};
use statistics::words;

/// Throughput of the baseline, and its change with each mode, those that are shown first.
pub(super) fn headline(baseline: &OfCell<Measured>, losses: &[&OfCell<Loss>]) -> String {
    let (shown, others): (Vec<_>, Vec<_>) =
        losses.iter().partition(|loss| loss.content.change.verdict == FindingVerdict::Shown);
    let clause = |OfCell { place, content: Loss { change, .. }, .. }: &OfCell<Loss>| {
        format!("; {} {}", words::mode(place.mode), judged(&change.difference, change.verdict, percent))
    };
    format!(
        "{}: {} {}{}.",
        at_first(baseline.place.conditions()),
        words::mode(baseline.place.mode),
        requests_per_s(&baseline.content.estimate),
        shown.into_iter().chain(others).map(clause).collect::<String>()
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

/// Loads under which the machine had no CPU left; several are in the detail.
pub(super) fn full_machine(group: &[&FullMachine]) -> Said {
    let at = |full: &&FullMachine| words::brief_at(Conditions { factors: &full.factors, load: &full.load });
    let (places, detail) = match group {
        [only] => (at(only), String::new()),
        several => {
            let all: Vec<String> = several.iter().map(at).collect();
            (format!("under {} loads", all.len()), format!("{}.", words::sentence(&all.join("; "))))
        }
    };
    Said::from(format!("All CPUs of the machine were busy {places}.")).and(&detail).and(
        "Throughput there is what the CPU of the whole path allows, generator and server included; response times include the \
         waiting for it.",
    )
}
