//! Contents of a learned topology, printed before it is written: what someone who gets the file would see.

use crate::output::tell;
use learn::Learned;
use report::format;
use results::units::shortened;

/// Maximum number of names and of findings of a kind that are shown.
const MAX_SHOWN: usize = 5;

pub(super) fn print(learned: &Learned) {
    let provenance = &learned.provenance;
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
    let mut kind = (String::new(), 0);
    for finding in &provenance.findings {
        kind = if kind.0 == finding.kind { (kind.0, kind.1 + 1) } else { (finding.kind.clone(), 0) };
        if kind.1 < MAX_SHOWN {
            tell!("{}: {}", finding.kind, finding.text);
        }
    }
}
