//! Options of `meshmeter cluster`, and of runs on a cluster.

use super::AutomationArgs;
use super::words::one_of;
use clap::{Args, Subcommand, ValueHint};
use cluster::connection::Connection;
use cluster::prometheus::PrometheusAddress;
use cluster::rights::Subject;
use cluster::settings::{ClusterSettings, DEFAULT_PREFIX};
use experiment::MeshKind;
use results::units::parse_duration;
use std::path::PathBuf;

/// Kubernetes clusters: what a run needs there, and what runs have left behind
///
/// `meshmeter run STUDY --on cluster` measures on a cluster (docs/cluster.md). A run writes ordinary objects
/// into its own namespaces, all with the label meshmeter.dev/run, and changes nothing else.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Subcommand.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// Subcommands of `meshmeter cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Check what a run needs on a cluster, without writing anything
    ///
    /// Checks the API server, the rights that this user needs, the namespaces and their quotas, and the mesh.
    /// Whether the image can be pulled is only known when pods start; if it cannot, the run fails with a
    /// one-line error.
    ///
    /// Lists modes of the experiment that are unavailable here; a run measures the others.
    ///
    /// Exit status: 0 if a run can start, 3 if something is missing.
    #[command(
        after_help = "Examples:\n  meshmeter cluster check --image registry.example.com/meshmeter:1\n  \
                            meshmeter cluster check mesh-modes --context staging --image registry.example.com/meshmeter:1"
    )]
    Check(Box<CheckClusterArgs>),
    /// Follow a run that continues in the cluster (`run --on cluster --detach`), and copy its results when it
    /// ends
    ///
    /// Shows progress as in the foreground. Ctrl-C detaches again, and the run continues; --stop ends it with
    /// the results so far. When the run ends, its directory is copied and the Job completes. The results of a
    /// run that ended while nobody was attached are kept for its --keep-for.
    ///
    /// Exit status: that of the run; 130 if detached by Ctrl-C.
    #[command(
        after_help = "Examples:\n  meshmeter cluster attach\n  meshmeter cluster attach mesh-modes-20261122-201500 --namespace perf --out runs/modes\n  \
                      meshmeter cluster attach mesh-modes-20261122-201500 --stop"
    )]
    Attach(Box<AttachArgs>),
    /// Print the Roles that a run needs, with their bindings
    ///
    /// Covers only the given namespaces, unless --namespaces or --nodes is given. These add a ClusterRole
    /// with exactly the rights that they need.
    #[command(
        after_help = "Examples:\n  meshmeter cluster rbac --namespace perf --service-account perf:meshmeter | kubectl apply -f -\n  \
                      meshmeter cluster rbac --namespace perf --user jane --istio --nodes"
    )]
    Rbac(RbacArgs),
    /// Remove the objects that runs have left behind: those with the label of a run, and nothing else
    ///
    /// Without --run or --all, lists them.
    #[command(
        after_help = "Examples:\n  meshmeter cluster clean\n  meshmeter cluster clean --run mesh-modes-20261122-201500"
    )]
    Clean(CleanArgs),
}

/// Selects a cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct ConnectionArgs {
    /// Kubeconfig of the cluster [default: KUBECONFIG, else ~/.kube/config, else the account of the pod that
    /// this runs in]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,
}

impl ConnectionArgs {
    /// Connection to the selected cluster.
    pub fn connection(&self) -> Connection {
        Connection { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

/// How a run uses a cluster.
#[derive(Clone, Debug, Args)]
pub struct OnClusterArgs {
    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Image of Meshmeter that the cluster's nodes pull [default: in a pod of the cluster, its own image]
    #[arg(long, value_name = "IMAGE", help_heading = "Cluster")]
    pub image: Option<String>,

    /// Pull the image with this Secret, which must exist in each namespace of the run
    #[arg(long, value_name = "NAME", requires = "existing_namespaces", help_heading = "Cluster")]
    pub image_pull_secret: Option<String>,

    /// Namespace of the run; for a topology with several namespaces the prefix of each, followed by a hyphen
    #[arg(long, value_name = "NAME", default_value = DEFAULT_PREFIX, help_heading = "Cluster")]
    pub namespace_prefix: String,

    /// The namespaces exist already and are kept: no rights to namespaces are needed
    #[arg(long, help_heading = "Cluster")]
    pub existing_namespaces: bool,

    /// Run generators on nodes with this label, tolerating a taint of the same name, and what is measured on
    /// other nodes
    #[arg(long, value_name = "LABEL=VALUE", value_parser = parse_label, help_heading = "Cluster")]
    pub generator_nodes: Option<(String, String)>,

    /// Mesh of the cluster, instead of the experiment's `mesh`. Modes that it lacks are unavailable
    #[arg(long, value_name = "MESH", value_parser = one_of(MeshKind::ON_CLUSTERS.map(|kind| (kind.name().into(), kind))), help_heading = "Cluster")]
    pub cluster_mesh: Option<MeshKind>,

    /// Revision of istiod (istio.io/rev), or a revision tag [default: the cluster's default one]
    #[arg(long, value_name = "REVISION", help_heading = "Cluster")]
    pub istio_revision: Option<String>,

    /// Do not read nodes and kubelets, which needs rights to all nodes. Without --prometheus the report then
    /// has no usage of services and proxies
    #[arg(long, help_heading = "Cluster")]
    pub without_nodes: bool,

    /// Read usage of services and proxies from a Prometheus that scrapes the cluster's kubelets, instead of
    /// from kubelets: its URL, or a Service reached through the API server
    #[arg(long, value_name = "URL|NAMESPACE/SERVICE:PORT", value_hint = ValueHint::Url, help_heading = "Cluster")]
    pub prometheus: Option<PrometheusAddress>,
}

impl OnClusterArgs {
    /// Settings of a run with this identifier. `image` is used if none was given.
    pub fn settings(&self, run: &str, image: &str) -> ClusterSettings {
        ClusterSettings {
            namespace_prefix: self.namespace_prefix.clone(),
            existing_namespaces: self.existing_namespaces,
            generator_nodes: self.generator_nodes.clone(),
            revision: self.istio_revision.clone(),
            image_pull_secret: self.image_pull_secret.clone(),
            reads_nodes: !self.without_nodes,
            prometheus: self.prometheus.clone(),
            ..ClusterSettings::new(self.image.as_deref().unwrap_or(image), run)
        }
    }
}

impl OnClusterArgs {
    /// The same options as arguments of a run inside the cluster, except for the connection, which that run
    /// has itself, and for the mesh, which is in its experiment file.
    pub fn arguments(&self) -> Vec<String> {
        let Self {
            connection: _,
            image,
            image_pull_secret,
            namespace_prefix,
            existing_namespaces,
            generator_nodes,
            cluster_mesh: _,
            istio_revision,
            without_nodes,
            prometheus,
        } = self;
        let nodes = generator_nodes.as_ref().map(|(label, value)| format!("{label}={value}"));
        let values = [
            ("--on", Some("cluster".to_owned())),
            ("--image", image.clone()),
            ("--image-pull-secret", image_pull_secret.clone()),
            ("--namespace-prefix", Some(namespace_prefix.clone())),
            ("--generator-nodes", nodes),
            ("--istio-revision", istio_revision.clone()),
            ("--prometheus", prometheus.as_ref().map(ToString::to_string)),
        ];
        let flags = [(*existing_namespaces, "--existing-namespaces"), (*without_nodes, "--without-nodes")];
        let values = values.into_iter().filter_map(|(option, value)| Some(format!("{option}={}", value?)));
        let flags = flags.into_iter().filter(|(is_given, _)| *is_given).map(|(_, option)| option.to_owned());
        values.chain(flags).collect()
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((label, value)) if !label.is_empty() => Ok((label.to_owned(), value.to_owned())),
        _ => Err("a label and its value, such as load=true".to_owned()),
    }
}

/// Options of `meshmeter cluster check`.
#[derive(Debug, Args)]
pub struct CheckClusterArgs {
    /// Study or file of the run [default: no mesh is checked]
    #[arg(value_name = "STUDY|FILE", value_hint = ValueHint::FilePath)]
    pub experiment: Option<String>,

    /// Override a key of the experiment, as in `run`; may be given several times
    #[arg(long, value_name = "KEY=VALUE", requires = "experiment")]
    pub set: Vec<String>,

    /// Report an unavailable mode as missing; a run without this option measures the others
    #[arg(long, requires = "experiment")]
    pub require_all_modes: bool,

    #[command(flatten)]
    pub place: OnClusterArgs,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter cluster rbac`.
#[derive(Debug, Args)]
pub struct RbacArgs {
    /// Namespace of the run; may be given several times
    #[arg(long, value_name = "NAME", required = true)]
    pub namespace: Vec<String>,

    #[command(flatten)]
    pub subject: SubjectArgs,

    /// Runs use modes of Istio: its objects in these namespaces, and its own pods in istio-system
    #[arg(long)]
    pub istio: bool,

    /// Runs use the ambient modes too: like --istio, plus port forwards to the ztunnels in istio-system.
    /// Kubernetes cannot restrict port forwards to some pods of a namespace, so this is a right to the ports
    /// of all pods there
    #[arg(long)]
    pub ambient: bool,

    /// Runs use mode ingress, whose clients use TLS to a gateway: Secrets in these namespaces, and a Role to
    /// read them. Without this option, runs need `istio.ingress.tls: off`
    #[arg(long, requires = "istio")]
    pub gateway_tls: bool,

    /// Runs use Linkerd's proxies: its own pods in the namespace linkerd
    #[arg(long)]
    pub linkerd: bool,

    /// The cluster's network is Cilium: its own pods in kube-system
    #[arg(long)]
    pub cilium: bool,

    /// Runs create and delete their namespaces: a ClusterRole for all namespaces, since a Role is deleted
    /// with its namespace. Its holder can create pods in each namespace, with the Secrets and service accounts
    /// there
    #[arg(long)]
    pub namespaces: bool,

    /// Confirm that --gateway-tls with --namespaces is a right to all Secrets of the cluster
    #[arg(long, requires_all = ["gateway_tls", "namespaces"])]
    pub all_secrets: bool,

    /// Runs read usage from kubelets, and versions of nodes: a ClusterRole with nodes/proxy. Its holder can run
    /// commands in every container of the cluster. It is not needed with --prometheus
    #[arg(long)]
    pub nodes: bool,

    /// Runs read usage from a Prometheus through the API server: a Role with services/proxy in its namespace
    #[arg(long, value_name = "NAMESPACE/SERVICE:PORT")]
    pub prometheus: Option<PrometheusAddress>,

    /// Print the Roles for starting, following and ending detached runs in these namespaces, in which the
    /// accounts of the runs are. Anyone who may create Jobs there can use the rights of these accounts
    #[arg(long, conflicts_with_all = ["istio", "ambient", "gateway_tls", "linkerd", "cilium", "namespaces", "nodes", "prometheus"])]
    pub detach: bool,
}

/// Options of `meshmeter cluster attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Run, as named by `run --detach` [default: the only one]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Look only in this namespace, that of the run's account; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub namespace: Vec<String>,

    /// End the run with the results so far, instead of waiting for all of its trials
    #[arg(long)]
    pub stop: bool,

    /// Copy the run's directory here [default: runs/RUN]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Replace an earlier run in that directory
    #[arg(long, requires = "out")]
    pub overwrite: bool,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub automation: AutomationArgs,
}

/// Options of detached runs.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Run in a Job in the cluster, and return once it is under way; `meshmeter cluster attach` picks it up
    #[arg(long, help_heading = "Cluster")]
    pub detach: bool,

    /// Account whose rights a detached run has; its Job is in the namespace of the account
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = parse_account, requires = "detach", help_heading = "Cluster")]
    pub service_account: Option<(String, String)>,

    /// Time for which the results of a detached run wait for `cluster attach` after its end
    #[arg(long, value_name = "D", default_value = "24h", value_parser = check_duration, help_heading = "Cluster")]
    pub keep_for: String,

    /// Identifier of the run, set for the Job of a detached run
    #[arg(long, value_name = "RUN", hide = true)]
    pub run_identifier: Option<String>,
}

fn check_duration(text: &str) -> Result<String, String> {
    parse_duration(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Subject of a role binding.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SubjectArgs {
    /// Subject of the bindings: a user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Subject of the bindings: a group of users
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,

    /// Subject of the bindings: a service account
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = parse_account)]
    pub service_account: Option<(String, String)>,
}

fn parse_account(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("a namespace and a name, such as perf:meshmeter".to_owned()),
    }
}

impl SubjectArgs {
    /// The subject that was given.
    pub fn subject(&self) -> Subject {
        match (&self.user, &self.group, &self.service_account) {
            (Some(user), _, _) => Subject::User(user.clone()),
            (None, Some(group), _) => Subject::Group(group.clone()),
            (None, None, account) => {
                let (namespace, name) = account.clone().unwrap_or_default();
                Subject::ServiceAccount { namespace, name }
            }
        }
    }
}

/// Options of `meshmeter cluster clean`.
#[derive(Debug, Args)]
pub struct CleanArgs {
    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Remove what this run has left behind
    #[arg(long, value_name = "RUN", conflicts_with = "all")]
    pub run: Option<String>,

    /// Remove what all runs have left behind, including runs that are under way
    #[arg(long)]
    pub all: bool,

    /// Look only in this namespace; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub namespace: Vec<String>,
}
