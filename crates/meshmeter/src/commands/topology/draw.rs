//! `meshmeter topology draw`.

use super::{output, source};
use crate::cli::{DrawArgs, DrawingFormat};
use crate::failure::Failure;
use report::graph::{self, Figures, Folding};

pub(super) fn run(args: &DrawArgs) -> Result<(), Failure> {
    let topology = source::read(&args.source)?;
    let folding =
        if args.all { Folding::none(&topology) } else { Folding::of_identical_namespaces(&topology) };
    let text = match args.format {
        DrawingFormat::Svg => graph::draw_file(&topology, &folding, &Figures::default()),
        DrawingFormat::Mermaid => graph::mermaid(&topology, &folding),
        DrawingFormat::Dot => graph::dot(&topology, &folding),
    };
    output::write(&text, args.out.as_deref())
}
