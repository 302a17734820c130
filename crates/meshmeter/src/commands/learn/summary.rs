//! Contents of a learned topology, printed before it is written: what someone who gets the file would see.

use crate::output::tell;
use learn::{Finding, Learned, WARNINGS};
use report::format;
use results::units::shortened;
use std::collections::BTreeMap;

/// Maximum number of names and of findings of a kind that are shown.
const MAX_SHOWN: usize = 5;

pub(super) fn print(learned: &Learned) {
    let provenance = &learned.provenance;
    print_findings(&|kind| kind == WARNINGS, &provenance.findings);
    let namespaces = learned.topology.namespaces();
    let counts = [
        (provenance.services.len(), "service", "services"),
        (provenance.edges.len(), "call", "calls"),
        (provenance.drivers.len(), "driver", "drivers"),
        (namespaces.len(), "namespace", "namespaces"),
    ];
    let counts = counts.map(|(number, one, many)| format::counted(number as u64, one, many));
    tell!("{}, from {} s of telemetry", counts.join(", "), provenance.period_s);
    let names: Vec<String> =
        provenance.services.iter().take(MAX_SHOWN).map(|service| shortened(&service.name)).collect();
    let more = provenance.services.len().saturating_sub(MAX_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let hashed = if provenance.anonymised { "names are hashes: " } else { "names in the files: " };
    tell!("{hashed}{}{more}", names.join(", "));
    print_findings(&|kind| kind != WARNINGS, &provenance.findings);
}

/// Findings of some kinds, at most a number of each.
fn print_findings(is_chosen: &dyn Fn(&str) -> bool, findings: &[Finding]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| is_chosen(&finding.kind)) {
        let count = counts.entry(&finding.kind).or_default();
        *count += 1;
        if *count <= MAX_SHOWN {
            tell!("{}: {}", finding.kind, finding.text);
        }
    }
    for (kind, count) in counts.into_iter().filter(|(_, count)| *count > MAX_SHOWN) {
        tell!("{kind}: {} more, in the provenance that --out writes", count - MAX_SHOWN);
    }
}
