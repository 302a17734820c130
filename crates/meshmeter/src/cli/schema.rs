//! Options of `meshmeter schema`.

use clap::{Args, ValueEnum};

/// Print the JSON Schema of a kind of file
///
/// An editor checks and completes files with it. A file names its schema in its first line:
/// `# yaml-language-server: $schema=experiment.json`. The schema accepts what Meshmeter reads, but for
/// names such as `5` without quotes; keys that contradict each other are found by `meshmeter run FILE --dry-run`,
/// `meshmeter topology check FILE` and `meshmeter load FILE`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter schema experiment > experiment.json
  meshmeter schema topology > topology.json
  meshmeter schema traffic > traffic.json")]
pub struct SchemaArgs {
    /// Kind of file
    #[arg(value_name = "KIND")]
    pub kind: FileKind,
}

/// Kinds of files that people write.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FileKind {
    /// An experiment file, for `meshmeter run`
    Experiment,
    /// A topology file in Meshmeter's own format
    Topology,
    /// A traffic file, for `meshmeter load`
    Traffic,
}
