//! Options of `meshmeter topology`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use experiment::topology::shapes::{Parameter, SHAPES};
use std::path::PathBuf;

/// Topologies of services that call each other: check, draw, convert, generate
///
/// A topology is a file in Meshmeter's own format or isotope's (docs/topology.md), `-` for standard input, or a built-in
/// shape by name: pair, chain, tree, star, tiered, emojivoto, booking, random. Experiments name one with their key `topology`.
#[derive(Debug, Args)]
pub struct TopologyArgs {
    /// Subcommand.
    #[command(subcommand)]
    pub command: TopologyCommand,
}

/// Subcommands of `meshmeter topology`.
#[derive(Debug, Subcommand)]
pub enum TopologyCommand {
    /// Check a topology, and print what it needs in each data plane and whether that fits this machine
    ///
    /// Prints the number of services, pods, containers and calls, the requests that each service is expected
    /// to get per request of each driver, the CPU and memory that pods reserve, and what a lab on this
    /// machine would need.
    ///
    /// Exit status: 0 if the topology is valid, whether it fits or not, 2 if it is not.
    #[command(after_help = "\
Examples:
  meshmeter topology check shop.yaml
  meshmeter topology check tiered --namespaces 50
  meshmeter topology check shop.yaml --json
  cat shop.yaml | meshmeter topology check -")]
    Check(CheckArgs),
    /// Draw a topology as SVG, Mermaid or DOT
    ///
    /// The drawing goes from the drivers on the left to the right: ovals are clients, cylinders databases; a
    /// dashed line means outside the mesh. Identical namespaces are drawn once, with their number.
    #[command(after_help = "\
Examples:
  meshmeter topology draw shop.yaml --out shop.svg
  meshmeter topology draw tiered --namespaces 50 --format mermaid
  meshmeter topology draw booking --format dot | dot -Tpng > booking.png")]
    Draw(DrawArgs),
    /// Write a topology in another format: Meshmeter's own, isotope's, or Kubernetes manifests
    ///
    /// Manifests have a Deployment, a Service and a ServiceAccount per service; each pod runs `meshmeter serve --topology`. They
    /// have no drivers: load them with `meshmeter load`.
    ///
    /// isotope cannot express CPU work, memory, queries, retries, amounts from a distribution, HTTP/2 and
    /// TCP: these are errors. Timeouts, resources and membership in the mesh are omitted with a note.
    #[command(after_help = "\
Examples:
  meshmeter topology convert isotope.yaml --to meshmeter > shop.yaml
  meshmeter topology convert shop.yaml --to isotope
  meshmeter topology convert shop.yaml --to kubernetes --image registry.example.com/meshmeter:1 | kubectl apply -f -")]
    Convert(ConvertArgs),
    /// Print a built-in shape as a topology file, as a starting point
    #[command(after_help = generate_help())]
    Generate(GenerateArgs),
}

/// Selects a topology: a file or a shape, with the shape's parameters.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// A topology file, `-` for standard input, or a built-in shape
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub source: String,

    /// Parameters of a shape.
    #[command(flatten)]
    pub parameters: ParameterArgs,
}

/// Parameters of a shape, as in the key `topology` of an experiment.
#[derive(Debug, Default, Args)]
pub struct ParameterArgs {
    /// Number of copies of the whole topology, each in its own namespace
    #[arg(long, value_name = "N")]
    pub namespaces: Option<String>,

    /// Number of services in a chain
    #[arg(long, value_name = "N")]
    pub hops: Option<String>,

    /// Seed of a random graph
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,

    /// Set another parameter of a shape, such as services=40; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Options of `meshmeter topology check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The topology.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter topology draw`.
#[derive(Debug, Args)]
pub struct DrawArgs {
    /// The topology.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Format of the drawing
    #[arg(long, value_enum, default_value_t)]
    pub format: DrawingFormat,

    /// Draw every namespace, even identical ones
    #[arg(long)]
    pub all: bool,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// Format of a drawing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum DrawingFormat {
    /// A picture for browsers and documents, in light and dark mode
    #[default]
    Svg,
    /// Text that GitHub and others render
    Mermaid,
    /// Graphviz source
    Dot,
}

/// Options of `meshmeter topology convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The topology.
    #[command(flatten)]
    pub source: SourceArgs,

    /// The format to write
    #[arg(long, value_enum)]
    pub to: TopologyFormat,

    /// Kubernetes: image with `meshmeter` in its PATH
    #[arg(long, value_name = "IMAGE", required_if_eq("to", "kubernetes"))]
    pub image: Option<String>,

    /// Kubernetes: MongoDB to use for the topology's databases
    #[arg(long, value_name = "HOST:PORT")]
    pub database: Option<String>,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// Format of a topology.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TopologyFormat {
    /// Meshmeter's own
    Meshmeter,
    /// The format of Istio's isotope
    Isotope,
    /// Manifests to apply
    Kubernetes,
}

/// Options of `meshmeter topology generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Name of the shape
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(SHAPES.map(|shape| shape.name)))]
    pub name: String,

    /// Parameters of the shape.
    #[command(flatten)]
    pub parameters: ParameterArgs,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// Every shape with its parameters, and examples.
fn generate_help() -> String {
    let mut help = String::from("Shapes:\n");
    for shape in SHAPES {
        help.push_str(&format!("  {:<10} {}\n", shape.name, shape.summary));
        for parameter in shape.parameters {
            let Parameter { name, summary, .. } = parameter;
            let default = parameter.format(parameter.default);
            help.push_str(&format!("             {name}: {summary} [default: {default}]\n"));
        }
    }
    help + "  All take replicas (of each service); those without an application of their own take protocol.\n\n\
            Examples:\n  meshmeter topology generate chain --hops 4\n  \
            meshmeter topology generate tiered --namespaces 50 > tiered.yaml\n  \
            meshmeter topology generate random --set services=40 --seed 7"
}
