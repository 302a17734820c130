//! Checks before a run: rights, the mesh, quotas, free namespaces, and nodes for generators.

use crate::Result;
use crate::connection::Connected;
use crate::finding::{CheckOutcome, Finding};
use crate::gateway;
use crate::lists::list_objects;
use crate::placement::check_nodes;
use crate::plug::{MeshPlug, Need, SharedComponent, SharedProxy};
use crate::prometheus::{CPU_METRIC, Prometheus, PrometheusAddress};
use crate::quota::Demand;
use crate::rights::{CILIUM_NAMESPACE, Parts, Rights, Rule};
use crate::settings::{ClusterSettings, RUN_LABEL};
use experiment::environment::DeploymentSpec;
use mesh::kubernetes::access::Action;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::linkerd;
use mesh::names::SYSTEM_NAMESPACE;
use serde_json::Value;
use std::collections::BTreeSet;

/// Requirements of deployments beyond the meshes of their modes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Resources of the largest deployment, which quotas must leave available.
    demand: Demand,
    gateway_tls: bool,
    installed: Vec<Need>,
    /// Objects that the run writes to the namespaces.
    objects: BTreeSet<ObjectRef>,
}

impl Needs {
    /// Adds the requirements of a deployment with these objects.
    pub fn add(&mut self, spec: &DeploymentSpec, objects: &[Value]) {
        let in_namespaces = objects.iter().filter(|object| object["kind"] != "Namespace");
        self.objects.extend(in_namespaces.filter_map(|object| ObjectRef::from_object(object).ok()));
        self.demand.raise_to(&Demand::from_objects(objects));
        self.gateway_tls |= gateway::has_secrets(spec);
        self.installed.extend(gateway::need(spec));
    }
}

/// Checks everything that a run in these namespaces needs. `plugs` are the plugs of its modes.
pub fn check(
    cluster: &Connected,
    settings: &ClusterSettings,
    namespaces: &[String],
    plugs: &[Box<dyn MeshPlug>],
    needs: &Needs,
) -> Vec<Finding> {
    let mut findings = vec![Finding::right(format!(
        "Kubernetes {} responds (context {})",
        cluster.version, cluster.context
    ))];
    let rights = Rights::new(settings, parts(plugs, needs));
    findings.extend(check_rights(cluster, &rights, namespaces));
    for namespace in namespaces {
        findings.push(check_namespace(cluster, settings, namespace));
        findings.extend(check_quotas(cluster, namespace, &needs.demand));
    }
    if settings.existing_namespaces {
        let objects: Vec<ObjectRef> = needs.objects.iter().cloned().collect();
        // A user who may not read them learns so from the check of rights.
        findings.extend(others_objects(cluster, settings, &objects).unwrap_or_default());
    }
    for need in plugs.iter().flat_map(|plug| plug.needs()).chain(needs.installed.iter().cloned()) {
        findings.push(match need.check(&cluster.api) {
            Ok(true) => Finding::right(format!("{} exists", need.object)),
            Ok(false) => {
                let text = format!("this user may not look for {}; pods show whether it exists", need.object);
                Finding::new(CheckOutcome::Less, text, None)
            }
            Err(error) => Finding::of_error(CheckOutcome::Missing, &error),
        });
    }
    findings.extend(check_nodes(cluster, settings));
    findings.extend(settings.prometheus.as_ref().map(|address| check_prometheus(cluster, address)));
    // Modes of the same mesh need the same things.
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert(finding.text.clone()));
    findings
}

fn parts(plugs: &[Box<dyn MeshPlug>], needs: &Needs) -> Parts {
    let shared: Vec<SharedComponent> = plugs.iter().flat_map(|plug| plug.shared()).collect();
    let is_in = |namespace: &str| shared.iter().any(|shared| shared.namespace == Some(namespace));
    Parts {
        istio: is_in(SYSTEM_NAMESPACE),
        linkerd: is_in(linkerd::NAMESPACE),
        cilium: is_in(CILIUM_NAMESPACE),
        ambient: shared.iter().any(|shared| shared.proxy == Some(SharedProxy::Ztunnel)),
        gateway_tls: needs.gateway_tls,
    }
}

fn check_rights(cluster: &Connected, rights: &Rights, namespaces: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for namespace in namespaces {
        findings.extend(check_rules(cluster, &rights.in_namespaces, Some(namespace)));
    }
    for (namespace, rules) in &rights.in_mesh {
        findings.extend(check_rules(cluster, rules, Some(namespace)));
    }
    if let Some((namespace, rule)) = &rights.in_prometheus {
        findings.extend(check_rules(cluster, &[*rule], Some(namespace)));
    }
    findings.extend(check_rules(cluster, &rights.in_cluster, None));
    findings
}

fn check_rules(cluster: &Connected, rules: &[Rule], namespace: Option<&str>) -> Vec<Finding> {
    let place = namespace.map_or_else(|| "in the cluster".to_owned(), |name| format!("in namespace {name}"));
    let mut findings = Vec::new();
    let mut is_all = true;
    for rule in rules {
        let denied = match cluster.api.denied(namespace, &rule.actions()) {
            Ok(denied) => denied,
            Err(error) => {
                return vec![Finding::of_error(CheckOutcome::Missing, &error)];
            }
        };
        if denied.is_empty() {
            continue;
        }
        is_all = false;
        let actions: Vec<String> = denied.iter().map(Action::to_string).collect();
        let text = format!("this user may not {place}: {}", actions.join(", "));
        findings.push(match rule.lost_without {
            Some(lost) => Finding::new(CheckOutcome::Less, format!("{text}; the run lacks {lost}"), None),
            None => Finding::new(
                CheckOutcome::Missing,
                text,
                Some("`meshmeter cluster rbac` prints the Roles that an administrator can apply"),
            ),
        });
    }
    if is_all && !rules.is_empty() {
        findings.push(Finding::right(format!("this user has every right that is needed {place}")));
    }
    findings
}

/// Queries a Prometheus for its number of series of container CPU.
fn check_prometheus(cluster: &Connected, address: &PrometheusAddress) -> Finding {
    match Prometheus::new(address, &cluster.api).and_then(|prometheus| prometheus.count(CPU_METRIC)) {
        Ok(0) => Finding::new(
            CheckOutcome::Missing,
            format!("Prometheus at {address} has no {CPU_METRIC}"),
            Some("it must scrape the cluster's kubelets, at /metrics/cadvisor"),
        ),
        Ok(series) => Finding::right(format!("Prometheus at {address} has {series} series of {CPU_METRIC}")),
        Err(error) => Finding::of_error(CheckOutcome::Missing, &error),
    }
}

/// Checks a namespace. A namespace of someone else is never written to, unless the user says that this is
/// intended.
pub fn check_namespace(cluster: &Connected, settings: &ClusterSettings, name: &str) -> Finding {
    let existing = match cluster.api.get(&ObjectRef::new("v1", "Namespace", None, name)) {
        Ok(existing) => existing,
        // A user who may not read namespaces learns so from the check of rights.
        Err(_) if settings.existing_namespaces => {
            return Finding::right(format!("namespace {name} is used unchanged"));
        }
        Err(error) => return Finding::of_error(CheckOutcome::Missing, &error),
    };
    match (existing, settings.existing_namespaces) {
        (None, false) => Finding::right(format!("namespace {name} is free")),
        (Some(_), true) => Finding::right(format!("namespace {name} exists")),
        (None, true) => Finding::new(
            CheckOutcome::Missing,
            format!("there is no namespace {name}"),
            Some("create it, or leave out --existing-namespaces"),
        ),
        (Some(namespace), false) => occupied(name, &namespace, settings),
    }
}

fn occupied(name: &str, namespace: &Value, settings: &ClusterSettings) -> Finding {
    let run = namespace["metadata"]["labels"][RUN_LABEL].as_str();
    if run == Some(&settings.run) {
        return Finding::right(format!("namespace {name} is this run's"));
    }
    let is_ending = namespace["status"]["phase"] == "Terminating";
    let (text, hint) = match run {
        _ if is_ending => (
            format!("namespace {name} is still being deleted"),
            "wait until it is gone, or use another --namespace-prefix".to_owned(),
        ),
        Some(run) => (
            format!("namespace {name} is that of the run {run}"),
            format!("if that run is over: meshmeter cluster clean --run {run}"),
        ),
        None => (
            format!("namespace {name} exists already and is not Meshmeter's"),
            "use another --namespace-prefix, or confirm with --existing-namespaces".to_owned(),
        ),
    };
    Finding::new(CheckOutcome::Missing, text, Some(&hint))
}

/// Findings on objects that exist already and do not belong to this run. The run neither changes nor deletes
/// them.
pub fn others_objects(
    cluster: &Connected,
    settings: &ClusterSettings,
    objects: &[ObjectRef],
) -> Result<Vec<Finding>> {
    let existing = cluster.api.get_all(objects)?;
    let existing = objects.iter().zip(&existing).filter_map(|(reference, object)| {
        let run = object.as_ref()?["metadata"]["labels"][RUN_LABEL].as_str();
        (run != Some(&settings.run)).then_some((reference, run))
    });
    Ok(existing.map(|(reference, run)| taken(reference, run)).collect())
}

/// `run` is the run that owns the object, if Meshmeter created it.
fn taken(object: &ObjectRef, run: Option<&str>) -> Finding {
    let (text, hint) = match run {
        Some(run) => (
            format!("{object} is that of the run {run}"),
            format!(
                "if that run is over: meshmeter cluster clean --run {run} --namespace {}",
                object.namespace.as_deref().unwrap_or_default()
            ),
        ),
        None => (
            format!("{object} exists already and is not Meshmeter's"),
            "take another namespace, or other names of workloads: a run changes nothing that is not its own"
                .to_owned(),
        ),
    };
    Finding::new(CheckOutcome::Missing, text, Some(&hint))
}

/// Findings on quotas that leave too little. The check of rights reports a missing right to list quotas.
fn check_quotas(cluster: &Connected, namespace: &str, demand: &Demand) -> Vec<Finding> {
    let quotas = list_objects(&cluster.api, ("v1", "ResourceQuota"), Some(namespace), "").unwrap_or_default();
    let hint = "request less (resources, replicas), or have the quota raised";
    let lacks = quotas.iter().flat_map(|quota| demand.lacks_in(namespace, quota));
    lacks.map(|lack| Finding::new(CheckOutcome::Missing, lack, Some(hint))).collect()
}
