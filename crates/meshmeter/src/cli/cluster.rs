//! Options of `meshmeter cluster`, and of what runs on a cluster.

use super::AutomationArgs;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use cluster::connection::Connection;
use cluster::prometheus::PrometheusAddress;
use cluster::rights::Subject;
use cluster::settings::{ClusterSettings, DEFAULT_PREFIX, MeshName};
use experiment::units::parse_duration;
use std::path::PathBuf;

/// Kubernetes clusters: what a run needs there, and what runs have left behind
///
/// `meshmeter run STUDY --on cluster` measures on a cluster (docs/cluster.md). A run writes ordinary objects into namespaces
/// of its own, all with the label meshmeter.dev/run, and changes nothing else.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// The verbs of `meshmeter cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Check what a run needs on a cluster, and write nothing
    ///
    /// Looks at the API server, every right of this user, the namespaces and their quotas, and the mesh. Whether the image can
    /// be pulled shows when pods start: a run then ends with one line that says so.
    ///
    /// Modes of the experiment that cannot run here are named; a run leaves them out.
    ///
    /// Exit status: 0 where a run can start, 3 where something is missing.
    #[command(
        after_help = "Examples:\n  meshmeter cluster check --image registry.example.com/meshmeter:1\n  \
                            meshmeter cluster check mesh-modes --context staging --image registry.example.com/meshmeter:1"
    )]
    Check(Box<CheckClusterArgs>),
    /// Follow a run that goes on in the cluster (`run --on cluster --detach`), and copy its results at its end
    ///
    /// Shows its progress as in the foreground. Ctrl-C detaches again, and the run goes on; --stop ends it with the results so
    /// far. At the end the run folder is copied, and the Job completes. A run that ended while nobody was attached is still
    /// there, for as long as its --keep-for said.
    ///
    /// Exit status: that of the run; 130 where Ctrl-C detached.
    #[command(
        after_help = "Examples:\n  meshmeter cluster attach\n  meshmeter cluster attach mesh-modes-20261122-201500 --namespace perf --out runs/modes\n  \
                      meshmeter cluster attach mesh-modes-20261122-201500 --stop"
    )]
    Attach(Box<AttachArgs>),
    /// Print the Roles that a run needs, with their bindings
    ///
    /// In the given namespaces alone, unless --namespaces or --nodes asks for more: then with a ClusterRole that holds no more
    /// than that.
    #[command(
        after_help = "Examples:\n  meshmeter cluster rbac --namespace perf --service-account perf:meshmeter | kubectl apply -f -\n  \
                      meshmeter cluster rbac --namespace perf --user jane --istio --nodes"
    )]
    Rbac(RbacArgs),
    /// Remove what runs have left behind: what carries their label, and nothing else
    ///
    /// Without --run or --all it says what there is.
    #[command(
        after_help = "Examples:\n  meshmeter cluster clean\n  meshmeter cluster clean --run mesh-modes-20261122-201500"
    )]
    Clean(CleanArgs),
}

/// Which cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct ConnectionArgs {
    /// Leads to the cluster [default: KUBECONFIG, else ~/.kube/config, else the account of the pod that this runs in]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,
}

impl ConnectionArgs {
    /// Which cluster.
    pub fn connection(&self) -> Connection {
        Connection { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

/// Where on a cluster a run takes place.
#[derive(Clone, Debug, Args)]
pub struct OnClusterArgs {
    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Image of Meshmeter, as the cluster's nodes pull it [default: in a pod of the cluster its own]
    #[arg(long, value_name = "IMAGE", help_heading = "Cluster")]
    pub image: Option<String>,

    /// Pull the image with this Secret, which is in each namespace of the run
    #[arg(long, value_name = "NAME", requires = "existing_namespaces", help_heading = "Cluster")]
    pub image_pull_secret: Option<String>,

    /// Namespace of the run; of a topology with several namespaces what comes before each, with a hyphen
    #[arg(long, value_name = "NAME", default_value = DEFAULT_PREFIX, help_heading = "Cluster")]
    pub namespace_prefix: String,

    /// The namespaces exist already, and stay: takes no right to namespaces
    #[arg(long, help_heading = "Cluster")]
    pub existing_namespaces: bool,

    /// Run generators on nodes with this label, also where it is their taint, and what is measured on others
    #[arg(long, value_name = "LABEL=VALUE", value_parser = parse_label, help_heading = "Cluster")]
    pub generator_nodes: Option<(String, String)>,

    /// The mesh of the cluster: with linkerd the mode `sidecar` is its proxies, with cilium the mode `none` is its network
    #[arg(long, value_name = "MESH", value_enum, default_value_t = MeshArg::Istio, help_heading = "Cluster")]
    pub cluster_mesh: MeshArg,

    /// Revision of istiod (istio.io/rev), or a tag of one [default: the cluster's default one]
    #[arg(long, value_name = "REVISION", help_heading = "Cluster")]
    pub istio_revision: Option<String>,

    /// Read no nodes and no kubelets, which takes rights to all nodes: without --prometheus, services and proxies then have no
    /// usage in the report
    #[arg(long, help_heading = "Cluster")]
    pub without_nodes: bool,

    /// Read usage of services and proxies from a Prometheus that scrapes the cluster's kubelets, instead of from these: its
    /// URL, or a Service that the API server leads to
    #[arg(long, value_name = "URL|NAMESPACE/SERVICE:PORT", value_hint = ValueHint::Url, help_heading = "Cluster")]
    pub prometheus: Option<PrometheusAddress>,
}

/// A mesh that a cluster may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum MeshArg {
    /// Istio
    Istio,
    /// Linkerd
    Linkerd,
    /// Cilium
    Cilium,
}

impl OnClusterArgs {
    /// Settings of a run of this identifier. `image` stands where none was given.
    pub fn settings(&self, run: &str, image: &str) -> ClusterSettings {
        ClusterSettings {
            namespace_prefix: self.namespace_prefix.clone(),
            existing_namespaces: self.existing_namespaces,
            generator_nodes: self.generator_nodes.clone(),
            mesh: match self.cluster_mesh {
                MeshArg::Istio => MeshName::Istio,
                MeshArg::Linkerd => MeshName::Linkerd,
                MeshArg::Cilium => MeshName::Cilium,
            },
            revision: self.istio_revision.clone(),
            image_pull_secret: self.image_pull_secret.clone(),
            reads_nodes: !self.without_nodes,
            prometheus: self.prometheus.clone(),
            ..ClusterSettings::new(self.image.as_deref().unwrap_or(image), run)
        }
    }
}

impl OnClusterArgs {
    /// The same options as arguments of a run in the cluster, which has a connection of its own.
    pub fn arguments(&self) -> Vec<String> {
        let Self {
            connection: _,
            image,
            image_pull_secret,
            namespace_prefix,
            existing_namespaces,
            generator_nodes,
            cluster_mesh,
            istio_revision,
            without_nodes,
            prometheus,
        } = self;
        let mesh = cluster_mesh.to_possible_value().map(|value| value.get_name().to_owned());
        let nodes = generator_nodes.as_ref().map(|(label, value)| format!("{label}={value}"));
        let values = [
            ("--on", Some("cluster".to_owned())),
            ("--image", image.clone()),
            ("--image-pull-secret", image_pull_secret.clone()),
            ("--namespace-prefix", Some(namespace_prefix.clone())),
            ("--generator-nodes", nodes),
            ("--cluster-mesh", mesh),
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
    /// The run's study or file [default: no mesh is looked for]
    #[arg(value_name = "STUDY|FILE", value_hint = ValueHint::FilePath)]
    pub experiment: Option<String>,

    /// Change a key of the experiment, as of the run; may be given several times
    #[arg(long, value_name = "KEY=VALUE", requires = "experiment")]
    pub set: Vec<String>,

    /// Name a mode that cannot run here as missing, instead of leaving it out as a run does
    #[arg(long, requires = "experiment")]
    pub require_all_modes: bool,

    #[command(flatten)]
    pub place: OnClusterArgs,

    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter cluster rbac`.
#[derive(Debug, Args)]
pub struct RbacArgs {
    /// A namespace of the run; may be given several times
    #[arg(long, value_name = "NAME", required = true)]
    pub namespace: Vec<String>,

    #[command(flatten)]
    pub subject: SubjectArgs,

    /// Runs have modes of Istio: its objects in these namespaces, and its own pods in istio-system
    #[arg(long)]
    pub istio: bool,

    /// Runs have the ambient modes too: as --istio, and port forwards to ztunnels, which are in istio-system. Kubernetes tells
    /// pods of a namespace not apart there: it is a right to the ports of all of them
    #[arg(long)]
    pub ambient: bool,

    /// Runs have mode ingress, whose clients speak TLS with a gateway: Secrets in these namespaces, and a Role to read them.
    /// Without it: runs with `istio.ingress.tls: off`
    #[arg(long, requires = "istio")]
    pub gateway_tls: bool,

    /// Runs have Linkerd's proxies: its own pods in the namespace linkerd
    #[arg(long)]
    pub linkerd: bool,

    /// The cluster's network is Cilium: its own pods in kube-system
    #[arg(long)]
    pub cilium: bool,

    /// Runs create and delete their namespaces: a ClusterRole for all namespaces, since a Role goes with its namespace
    #[arg(long)]
    pub namespaces: bool,

    /// Runs read usage from kubelets, and versions of nodes: a ClusterRole with nodes/proxy
    #[arg(long)]
    pub nodes: bool,

    /// Runs read usage from a Prometheus through the API server: a Role with services/proxy in its namespace
    #[arg(long, value_name = "NAMESPACE/SERVICE:PORT")]
    pub prometheus: Option<PrometheusAddress>,

    /// Print the Roles that somebody needs to start, follow and end detached runs in these namespaces, which are those of
    /// accounts that runs have the rights of. Whoever may create Jobs there may use the rights of these accounts
    #[arg(long, conflicts_with_all = ["istio", "ambient", "gateway_tls", "linkerd", "cilium", "namespaces", "nodes", "prometheus"])]
    pub detach: bool,
}

/// Options of `meshmeter cluster attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// The run, as `run --detach` named it [default: the only one]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Look in this namespace alone, that of the run's account; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub namespace: Vec<String>,

    /// End the run with the results so far, instead of waiting for all of its trials
    #[arg(long)]
    pub stop: bool,

    /// Copy the run's folder here [default: runs/RUN]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Replace an earlier run in that folder
    #[arg(long, requires = "out")]
    pub overwrite: bool,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub automation: AutomationArgs,
}

/// Leaving a run to the cluster.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Leave the run to a Job in the cluster, and return once it is under way; `meshmeter cluster attach` picks it up
    #[arg(long, help_heading = "Cluster")]
    pub detach: bool,

    /// Account whose rights a detached run has, and in whose namespace its Job is
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = parse_account, requires = "detach", help_heading = "Cluster")]
    pub service_account: Option<(String, String)>,

    /// How long the results of a detached run wait for `cluster attach`, from its end
    #[arg(long, value_name = "D", default_value = "24h", value_parser = check_duration, help_heading = "Cluster")]
    pub keep_for: String,

    /// Identifier of the run, which the Job of a detached run is given
    #[arg(long, value_name = "RUN", hide = true)]
    pub run_identifier: Option<String>,
}

fn check_duration(text: &str) -> Result<String, String> {
    parse_duration(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Who is allowed something.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SubjectArgs {
    /// Who runs: a user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Who runs: a group of users
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,

    /// Who runs: an account of the cluster
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
    /// The one that was given.
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

    /// Remove what this run has left
    #[arg(long, value_name = "RUN", conflicts_with = "all")]
    pub run: Option<String>,

    /// Remove what all runs have left, also of those that are under way
    #[arg(long)]
    pub all: bool,

    /// Look in this namespace alone; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub namespace: Vec<String>,
}
