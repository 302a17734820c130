//! `meshmeter topology draw`. A learned topology is drawn with the rates of its calls.

use super::{output, source};
use crate::cli::{DrawArgs, DrawingFormat};
use crate::commands::learn::provenance_beside;
use crate::failure::Failure;
use experiment::topology::{Call, Topology};
use report::format;
use report::graph::{self, CallFigures, Figures, Folding};
use std::collections::HashMap;
use std::path::Path;

pub(super) fn run(args: &DrawArgs) -> Result<(), Failure> {
    let topology = source::read(&args.source)?;
    let folding =
        if args.all { Folding::none(&topology) } else { Folding::of_identical_namespaces(&topology) };
    let text = match args.format {
        DrawingFormat::Svg => {
            graph::draw_file(&topology, &folding, &learned_rates(&args.source.source, &topology)?)
        }
        DrawingFormat::Mermaid => graph::mermaid(&topology, &folding),
        DrawingFormat::Dot => graph::dot(&topology, &folding),
    };
    output::write(&text, args.out.as_deref())
}

/// Rates of calls from the provenance beside a learned topology; none for other topologies.
fn learned_rates(source: &str, topology: &Topology) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let Some(provenance) = provenance_beside(Path::new(source))? else { return Ok(figures) };
    let workloads = topology.workloads.iter().enumerate();
    let ids: HashMap<String, usize> =
        workloads.map(|(id, workload)| (workload.qualified_name(), id)).collect();
    let rates: Vec<(Call, f64)> = provenance
        .edges
        .iter()
        .filter_map(|edge| {
            let call = Call { from: *ids.get(&edge.from)?, to: *ids.get(&edge.to)? };
            Some((call, edge.figures.get("rate")?.value))
        })
        .collect();
    let highest = rates.iter().map(|(_, rate)| *rate).fold(f64::MIN_POSITIVE, f64::max);
    for (call, rate) in rates {
        let lines = vec![format!("{}/s", format::tick(rate))];
        figures.calls.insert(call, CallFigures { lines, weight: rate / highest, emphasised: false });
    }
    Ok(figures)
}
