//! `meshmeter topology convert` answers "How do I measure the graph of services that I have for Istio's isotope, and
//! how do I take mine there or to a cluster?"

use super::kubernetes::{self, Parameters};
use super::{isotope, output, source};
use crate::cli::{ConvertArgs, TopologyFormat};
use crate::failure::Failure;

pub(super) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let topology = source::read(&args.source)?;
    let text = match args.to {
        TopologyFormat::Meshmeter => topology.to_yaml(),
        TopologyFormat::Isotope => {
            let converted = isotope::convert(&topology)?;
            output::notes(&converted.notes);
            converted.text
        }
        TopologyFormat::Kubernetes => {
            let image = args.image.as_deref().unwrap_or_default();
            kubernetes::manifests(&topology, Parameters { image, database: args.database.as_deref() })?
        }
    };
    output::write(&text, args.out.as_deref())
}
