//! Permissions that a user needs for a run: one list, which `rbac` prints as Roles and `check` queries the
//! API for.

use crate::prometheus::PrometheusAddress;
use crate::settings::ClusterSettings;
use mesh::kubernetes::access::Action;
use mesh::linkerd::NAMESPACE as LINKERD_NAMESPACE;
use mesh::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Prefix of the names of Roles and RoleBindings; the subject follows.
const NAME: &str = "meshmeter";
const NAME_TO_DETACH: &str = "meshmeter-detach";
/// A separate name, since the Prometheus may be in a namespace of the run.
const NAME_TO_QUERY: &str = "meshmeter-prometheus";

/// Verbs on some resources of one API group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    pub group: &'static str,
    pub resources: &'static [&'static str],
    pub verbs: &'static [&'static str],
    /// Consequence of lacking it; if absent, the run is impossible.
    pub lost_without: Option<&'static str>,
}

const fn needed(
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Rule {
    Rule { group, resources, verbs, lost_without: None }
}

const WRITTEN: &[&str] = &["get", "list", "create", "patch", "delete"];

/// In each namespace of a run.
const IN_NAMESPACES: [Rule; 6] = [
    needed("", &["services", "serviceaccounts", "configmaps"], WRITTEN),
    needed("apps", &["deployments"], WRITTEN),
    needed("batch", &["jobs"], WRITTEN),
    needed("", &["pods", "pods/log", "events"], &["get", "list"]),
    needed("", &["pods/portforward"], &["get", "create"]),
    Rule {
        group: "",
        resources: &["resourcequotas"],
        verbs: &["list"],
        lost_without: Some("a look at quotas before it begins: what they refuse shows when pods start"),
    },
];

/// Istio objects in each namespace of a run. Runs without a mesh write none.
const OF_ISTIO: [Rule; 4] = [
    needed("security.istio.io", &["peerauthentications", "authorizationpolicies"], WRITTEN),
    needed("networking.istio.io", &["destinationrules", "gateways", "sidecars", "virtualservices"], WRITTEN),
    needed("extensions.istio.io", &["trafficextensions"], WRITTEN),
    needed("gateway.networking.k8s.io", &["gateways", "httproutes"], WRITTEN),
];

/// Gateway certificates in each namespace of a run, and the Role with which a gateway's account reads them.
/// RBAC lets nobody grant a permission that they do not have.
const OF_GATEWAY_TLS: [Rule; 2] = [
    needed("", &["secrets"], &["get", "list", "watch", "create", "patch", "delete"]),
    needed("rbac.authorization.k8s.io", &["roles", "rolebindings"], WRITTEN),
];

/// In the namespace of the mesh.
const IN_MESH_NAMESPACE: [Rule; 1] = [Rule {
    group: "",
    resources: &["pods"],
    verbs: &["get", "list"],
    lost_without: Some("usage of the control plane and of node proxies, and their versions"),
}];

/// Further permissions for ambient mode: to find ztunnels and read their configuration and counters.
const OF_ZTUNNELS: [Rule; 3] = [
    needed("", &["pods"], &["get", "list"]),
    needed("", &["pods/portforward"], &["get", "create"]),
    needed("apps", &["daemonsets"], &["get"]),
];

/// Namespace of Cilium's own pods.
pub(crate) const CILIUM_NAMESPACE: &str = "kube-system";

const NAMESPACES: Rule = needed("", &["namespaces"], WRITTEN);

const NODES: Rule = Rule {
    group: "",
    resources: &["nodes"],
    verbs: &["get", "list"],
    lost_without: Some("kernels, systems and kubelets of the nodes in the report"),
};

const KUBELETS: Rule = Rule {
    group: "",
    resources: &["nodes/proxy"],
    verbs: &["get"],
    lost_without: Some(
        "CPU, memory, network and throttling of services and proxies; generators measure themselves",
    ),
};

/// In the namespace of a Prometheus that is reached through the API server.
const PROMETHEUS: Rule = needed("", &["services/proxy"], &["get"]);

/// In the namespace of the detached runs' account: to start, follow and end them. A user who may create Jobs
/// there may use the rights of that account.
pub const DETACHED: [Rule; 5] = [
    needed("batch", &["jobs"], WRITTEN),
    needed("", &["configmaps"], &["get", "create", "patch", "delete"]),
    needed("", &["serviceaccounts"], &["get"]),
    needed("", &["pods", "pods/log", "events"], &["get", "list"]),
    needed("", &["pods/portforward"], &["get", "create"]),
];

/// Parts of a run that need permissions of their own, apart from services and drivers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Parts {
    /// Istio's objects.
    pub istio: bool,
    /// Modes with ztunnels.
    pub ambient: bool,
    /// Gateways whose clients speak TLS.
    pub gateway_tls: bool,
    /// Linkerd's proxies.
    pub linkerd: bool,
    /// Cilium as the network.
    pub cilium: bool,
}

/// Permissions that a run needs, by where they apply.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rights {
    /// In each namespace of the run.
    pub in_namespaces: Vec<Rule>,
    /// In the namespace of each mesh.
    pub in_mesh: BTreeMap<&'static str, Vec<Rule>>,
    /// In the namespace of a Prometheus.
    pub in_prometheus: Option<(String, Rule)>,
    /// In the whole cluster.
    pub in_cluster: Vec<Rule>,
    /// A Role would be deleted with a namespace that the run deletes, so rights in its namespaces become
    /// rights in all.
    pub creates_namespaces: bool,
}

impl Rights {
    pub fn new(settings: &ClusterSettings, parts: Parts) -> Self {
        let mut rights = Self { in_namespaces: IN_NAMESPACES.to_vec(), ..Self::default() };
        if parts.istio || parts.ambient {
            rights.in_namespaces.extend(OF_ISTIO);
        }
        if parts.ambient {
            rights.in_mesh.insert(SYSTEM_NAMESPACE, OF_ZTUNNELS.to_vec());
        } else if parts.istio {
            rights.in_mesh.insert(SYSTEM_NAMESPACE, IN_MESH_NAMESPACE.to_vec());
        }
        let others = [(parts.linkerd, LINKERD_NAMESPACE), (parts.cilium, CILIUM_NAMESPACE)];
        let others = others.into_iter().filter(|(is_there, _)| *is_there);
        rights.in_mesh.extend(others.map(|(_, namespace)| (namespace, IN_MESH_NAMESPACE.to_vec())));
        if parts.gateway_tls {
            rights.in_namespaces.extend(OF_GATEWAY_TLS);
        }
        if !settings.existing_namespaces {
            rights.in_cluster.push(NAMESPACES);
            rights.creates_namespaces = true;
        }
        if settings.reads_nodes {
            rights.in_cluster.push(NODES);
            rights.in_cluster.extend(settings.reads_kubelets().then_some(KUBELETS));
        }
        if let Some(PrometheusAddress::Service { namespace, .. }) = &settings.prometheus {
            rights.in_prometheus = Some((namespace.clone(), PROMETHEUS));
        }
        rights
    }
}

impl Rule {
    /// Every verb on every resource.
    pub fn actions(&self) -> Vec<Action> {
        let actions = self.resources.iter().flat_map(|resource| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            self.verbs.iter().map(move |verb| Action::new(verb, self.group, resource, subresource))
        });
        actions.collect()
    }

    fn object(&self) -> Value {
        json!({"apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs})
    }
}

/// Subject of a RoleBinding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

impl Subject {
    /// Suffix of the names of its Roles, without characters that names must not contain.
    fn name_suffix(&self) -> String {
        let part = match self {
            Self::User(name) => format!("user.{name}"),
            Self::Group(name) => format!("group.{name}"),
            Self::ServiceAccount { namespace, name } => format!("account.{namespace}.{name}"),
        };
        part.replace(['/', '%'], "-")
    }

    fn object(&self) -> Value {
        let of_group = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
        match self {
            Self::User(name) => of_group("User", name),
            Self::Group(name) => of_group("Group", name),
            Self::ServiceAccount { namespace, name } => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
        }
    }
}

/// Roles and their bindings: in these namespaces, in those of meshes and of a Prometheus, and in the cluster
/// if cluster-wide rights are needed.
pub fn roles(rights: &Rights, namespaces: &[String], subject: &Subject) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut in_cluster = rights.in_cluster.clone();
    if rights.creates_namespaces {
        in_cluster.extend(&rights.in_namespaces);
    } else {
        for namespace in namespaces {
            objects.extend(role(Some(namespace), NAME, &rights.in_namespaces, subject));
        }
    }
    objects.extend(
        rights.in_mesh.iter().flat_map(|(namespace, rules)| role(Some(namespace), NAME, rules, subject)),
    );
    if let Some((namespace, rule)) = &rights.in_prometheus {
        objects.extend(role(Some(namespace), NAME_TO_QUERY, &[*rule], subject));
    }
    objects.extend(role(None, NAME, &in_cluster, subject));
    objects
}

/// Roles to start, follow and end detached runs in these namespaces, in addition to those of the account that
/// they run with.
pub fn roles_to_detach(namespaces: &[String], subject: &Subject) -> Vec<Value> {
    let role = |namespace: &String| role(Some(namespace), NAME_TO_DETACH, &DETACHED, subject);
    namespaces.iter().flat_map(role).collect()
}

fn role(namespace: Option<&str>, name: &str, rules: &[Rule], subject: &Subject) -> Vec<Value> {
    if rules.is_empty() {
        return Vec::new();
    }
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let name = format!("{name}.{}", subject.name_suffix());
    let api = "rbac.authorization.k8s.io";
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let rules: Vec<Value> = rules.iter().map(Rule::object).collect();
    vec![
        json!({
            "apiVersion": format!("{api}/v1"), "kind": format!("{prefix}Role"),
            "metadata": metadata, "rules": rules,
        }),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": format!("{prefix}RoleBinding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": format!("{prefix}Role"), "name": name},
            "subjects": [subject.object()],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_namespaced_unless_cluster_rights_are_needed() {
        let settings = ClusterSettings {
            existing_namespaces: true,
            reads_nodes: false,
            ..ClusterSettings::new("meshmeter:1", "run-1")
        };
        let subject = Subject::User("jane".to_owned());
        let namespaces = ["a".to_owned(), "b".to_owned()];
        let kinds = |rights: &Rights| -> Vec<String> {
            let objects = roles(rights, &namespaces, &subject);
            objects.iter().map(|object| object["kind"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let least = Rights::new(&settings, Parts::default());
        assert_eq!(kinds(&least), ["Role", "RoleBinding", "Role", "RoleBinding"]);
        let everything = Parts { istio: true, gateway_tls: true, ..Parts::default() };
        let wide = Rights::new(&ClusterSettings::new("meshmeter:1", "run-1"), everything);
        assert_eq!(kinds(&wide), ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]);
        let detached = roles_to_detach(&namespaces, &subject);
        assert!(detached.iter().all(|role| role["metadata"]["name"] == "meshmeter-detach.user.jane"));
        assert_eq!(detached.len(), 4);
    }

    #[test]
    fn prometheus_replaces_kubelet_rights() {
        let of = |prometheus: &str| {
            let prometheus = Some(prometheus.parse().unwrap());
            let settings = ClusterSettings { prometheus, ..ClusterSettings::new("meshmeter:1", "run-1") };
            Rights::new(&settings, Parts::default())
        };
        let inside = of("monitoring/prometheus:9090");
        assert!(inside.in_cluster.contains(&NODES) && !inside.in_cluster.contains(&KUBELETS));
        let written = roles(&inside, &[], &Subject::User("jane".to_owned()));
        assert_eq!(
            written[0]["metadata"],
            json!({"name": "meshmeter-prometheus.user.jane", "namespace": "monitoring"})
        );
        assert_eq!(written[0]["rules"][0]["resources"], json!(["services/proxy"]));
        assert_eq!(of("http://prometheus.monitoring:9090").in_prometheus, None);
    }

    #[test]
    fn ztunnels_need_more_rights_only_in_mesh_namespace() {
        let settings = ClusterSettings::new("meshmeter:1", "run-1");
        let of = |parts| Rights::new(&settings, parts);
        let istio = of(Parts { istio: true, ..Parts::default() });
        let ambient = of(Parts { ambient: true, ..Parts::default() });
        assert_eq!((&istio.in_namespaces, &istio.in_cluster), (&ambient.in_namespaces, &ambient.in_cluster));
        let in_mesh = &ambient.in_mesh[SYSTEM_NAMESPACE];
        let actions = in_mesh.iter().flat_map(Rule::actions);
        let actions: Vec<String> = actions.map(|action| action.to_string()).collect();
        let expected = [
            "get pods",
            "list pods",
            "get pods/portforward",
            "create pods/portforward",
            "get daemonsets.apps",
        ];
        assert_eq!(actions, expected);
        assert!(in_mesh.iter().all(|rule| rule.lost_without.is_none()), "no trial runs without them");
    }

    #[test]
    fn pods_of_other_meshes_are_read_in_their_namespaces() {
        let settings = ClusterSettings::new("meshmeter:1", "run-1");
        let rights = Rights::new(&settings, Parts { linkerd: true, cilium: true, ..Parts::default() });
        let namespaces: Vec<&str> = rights.in_mesh.keys().copied().collect();
        assert_eq!(namespaces, ["kube-system", "linkerd"]);
        assert_eq!(rights.in_namespaces, IN_NAMESPACES, "it writes no objects of a mesh");
    }

    #[test]
    fn right_to_list_quotas_is_optional() {
        let quotas = IN_NAMESPACES.iter().find(|rule| rule.resources.contains(&"resourcequotas")).unwrap();
        assert_eq!((quotas.verbs, quotas.lost_without.is_some()), (&["list"][..], true));
    }

    #[test]
    fn roles_of_two_subjects_have_different_names() {
        let rights = Rights::new(&ClusterSettings::new("meshmeter:1", "run-1"), Parts::default());
        let account = |namespace: &str| Subject::ServiceAccount {
            namespace: namespace.to_owned(),
            name: "meshmeter".to_owned(),
        };
        let user = |name: &str| Subject::User(name.to_owned());
        let name = |subject: &Subject| roles(&rights, &[], subject)[0]["metadata"]["name"].clone();
        assert_eq!(name(&account("perf")), "meshmeter.account.perf.meshmeter");
        assert_eq!(name(&account("shop")), "meshmeter.account.shop.meshmeter");
        assert_eq!(name(&user("https://issuer/jane")), "meshmeter.user.https:--issuer-jane");
    }

    #[test]
    fn actions_cover_every_verb_on_every_resource() {
        let actions: Vec<String> = IN_NAMESPACES[4].actions().iter().map(ToString::to_string).collect();
        assert_eq!(actions, ["get pods/portforward", "create pods/portforward"]);
    }
}
