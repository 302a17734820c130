//! `meshmeter schema`: JSON Schemas of the files that people write.

use crate::cli::{FileKind, SchemaArgs};
use crate::failure::Failure;
use crate::output;
use std::process::ExitCode;

/// Prints the schema.
pub fn run(args: &SchemaArgs) -> Result<ExitCode, Failure> {
    output::print(&text(args.kind))?;
    Ok(ExitCode::SUCCESS)
}

fn text(kind: FileKind) -> String {
    let schema = match kind {
        FileKind::Experiment => experiment::file::json_schema(),
        FileKind::Topology => experiment::topology::file::json_schema(),
        FileKind::Traffic => experiment::traffic::json_schema(),
    };
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_in_docs_are_the_printed_ones() {
        for (kind, committed) in [
            (FileKind::Experiment, include_str!("../../../../docs/schema/experiment.json")),
            (FileKind::Topology, include_str!("../../../../docs/schema/topology.json")),
            (FileKind::Traffic, include_str!("../../../../docs/schema/traffic.json")),
        ] {
            assert!(text(kind) == committed, "docs/schema is outdated for {kind:?}: run `make schema`");
        }
    }
}
