//! Writes a population. Existing objects with the run's label are taken over: left alone if they are up to
//! date, updated if they are not, and removed if they are not part of the population. An interrupted write
//! can therefore simply be repeated. Everything that might be rejected is checked before the first write.

use super::{CHANGED_KINDS, FLEET_LABEL, KINDS, NAMESPACE, Population};
use crate::Result;
use crate::held::list_labelled;
use experiment::environment::EnvironmentError;
use mesh::kubernetes::access::Action;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::lists::Shown;
use mesh::kubernetes::object_ref::{Kind, ObjectKey, ObjectRef, group_version};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

const OPERATION: &str = "write the mesh of the fleet";
const VERBS: [&str; 5] = ["get", "list", "create", "patch", "delete"];
const ISTIO_GROUPS: &str = ".istio.io";
const GATEWAY_API_GROUP: &str = "gateway.networking.k8s.io/";
const PERMISSION_HINT: &str =
    "a fleet makes namespaces of its own and writes into them: an administrator grants this by a ClusterRole";

/// Result of a write.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Written {
    /// Number of objects of the population, by kind.
    pub objects: BTreeMap<String, usize>,
    pub created: usize,
    /// Objects that existed and were out of date.
    pub updated: usize,
    /// Objects with the run's label that are not part of the population.
    pub removed: usize,
}

/// Operations that bring an API up to date.
#[derive(Debug, Default)]
struct Differences {
    stale: Vec<ObjectRef>,
    namespaces: Vec<Value>,
    /// Created before pods: a cluster rejects a pod whose account does not exist.
    accounts: Vec<Value>,
    new: Vec<Value>,
    changed: Vec<Value>,
    statuses: Vec<Value>,
    /// Created last: istiod resolves endpoints by the pods that it knows.
    endpoints: Vec<Value>,
}

impl Population {
    /// Writes all objects. `on_progress` receives the number of requests done and their total.
    pub fn write(&self, api: &ApiClient, on_progress: &dyn Fn(usize, usize)) -> Result<Written> {
        let objects: Vec<Value> = self.namespaces().into_iter().chain(self.objects()).collect();
        check_api(api, &objects)?;
        let existing = existing(api, self.run_id())?;
        let mut written = Written::default();
        for object in &objects {
            *written.objects.entry(object["kind"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        let differences = self.differences(objects, &existing)?;
        check_no_foreign(api, &differences)?;
        let Differences { stale, namespaces, accounts, new, changed, statuses, endpoints } = differences;
        written.removed = stale.len();
        written.updated = changed.len();
        written.created = namespaces.len() + accounts.len() + new.len() + endpoints.len();
        let total = written.removed + written.updated + written.created + statuses.len();
        let mut done = 0;
        let mut progress = |count: usize| {
            let before = done;
            done += count;
            move |now: usize| on_progress(before + now, total)
        };
        api.delete(&stale, &progress(stale.len()))?;
        api.create_new(&namespaces, &progress(namespaces.len()))?;
        api.create_new(&accounts, &progress(accounts.len()))?;
        api.create_new(&new, &progress(new.len()))?;
        api.apply(&changed)?;
        progress(changed.len())(changed.len());
        api.set_status(&statuses, &progress(statuses.len()))?;
        api.create_new(&endpoints, &progress(endpoints.len()))?;
        Ok(written)
    }

    fn differences(&self, objects: Vec<Value>, existing: &HashMap<ObjectKey, Value>) -> Result<Differences> {
        let mut differences = Differences::default();
        let mut wanted = HashSet::with_capacity(objects.len());
        for object in objects {
            let key = ObjectRef::from_object(&object)?.key();
            match existing.get(&key) {
                Some(existing) if existing["status"]["phase"] == "Terminating" => {
                    let reason = format!("{} is being removed", ObjectRef::from_object(&object)?);
                    let hint = "write again once it is gone";
                    return Err(EnvironmentError::new(OPERATION, reason).with_hint(hint));
                }
                Some(existing) if object["kind"] == "Secret" || covers(existing, &object) => {}
                Some(_) => differences.changed.push(object),
                None if object["kind"] == "Namespace" => differences.namespaces.push(object),
                None if object["kind"] == "ServiceAccount" => differences.accounts.push(object),
                None if object["kind"] == "EndpointSlice" => differences.endpoints.push(object),
                None => differences.new.push(object),
            }
            wanted.insert(key);
        }
        for status in self.statuses() {
            let existing = existing.get(&ObjectRef::from_object(&status)?.key());
            if !existing.is_some_and(|existing| covers(&existing["status"], &status["status"])) {
                differences.statuses.push(status);
            }
        }
        let stale = existing.iter().filter(|(key, _)| !wanted.contains(*key) && key.1 != "Namespace");
        differences.stale = stale.map(|(_, object)| ObjectRef::from_object(object)).collect::<Result<_>>()?;
        Ok(differences)
    }
}

/// Returns an error unless the API responds, serves the kinds, and permits the verbs that writing, changing
/// and removing need.
fn check_api(api: &ApiClient, objects: &[Value]) -> Result<()> {
    api.version()?;
    let is_used =
        |kind: &Kind| objects.iter().any(|object| object["kind"] == kind.1 && object["apiVersion"] == kind.0);
    let kinds = std::iter::once(NAMESPACE)
        .chain(KINDS)
        .filter(|kind| CHANGED_KINDS.contains(&kind.1) || is_used(kind));
    let kinds: Vec<Kind> = kinds.collect();
    let served = api.served(&kinds)?;
    if let Some(missing) = kinds.iter().find(|kind| !served.contains_key(*kind)) {
        return Err(not_served(*missing));
    }
    let mut actions: Vec<Action> = served
        .iter()
        .flat_map(|((api_version, _), resource)| {
            VERBS.map(|verb| Action::new(verb, group_version(api_version).0, resource, ""))
        })
        .collect();
    if kinds.contains(&("v1", "Pod")) {
        actions.push(Action::new("patch", "", "pods", "status"));
    }
    let denied = api.denied(None, &actions)?;
    if denied.is_empty() {
        return Ok(());
    }
    let denied: Vec<String> = denied.iter().map(ToString::to_string).collect();
    let reason = format!("the kubeconfig's user may not {} in all namespaces", denied.join(", "));
    Err(EnvironmentError::new(OPERATION, reason).with_hint(PERMISSION_HINT))
}

fn not_served((api_version, kind): Kind) -> EnvironmentError {
    let reason = format!("the Kubernetes API has no kind {kind} in {api_version}");
    let error = EnvironmentError::new("check the kinds of the mesh", reason);
    if api_version.contains(ISTIO_GROUPS) {
        error.with_hint("Istio's definitions (CRDs) are not installed there: its chart `base` brings them")
    } else if api_version.starts_with(GATEWAY_API_GROUP) {
        error.with_hint("the Gateway API's definitions (CRDs) are not installed there")
    } else {
        error
    }
}

/// The objects with the run's label.
fn existing(api: &ApiClient, run_id: &str) -> Result<HashMap<ObjectKey, Value>> {
    let mut existing = HashMap::new();
    for kind in std::iter::once(NAMESPACE).chain(KINDS) {
        for object in list_labelled(api, kind, run_id, Shown::Whole)? {
            existing.insert(ObjectRef::from_object(&object)?.key(), object);
        }
    }
    Ok(existing)
}

/// Returns an error if an object that would be created exists without the run's label.
fn check_no_foreign(api: &ApiClient, differences: &Differences) -> Result<()> {
    let references =
        |objects: &[Value]| objects.iter().map(ObjectRef::from_object).collect::<Result<Vec<_>>>();
    let namespaces = references(&differences.namespaces)?;
    let new: HashSet<&str> = namespaces.iter().map(|namespace| namespace.name.as_str()).collect();
    let mut others = references(&differences.accounts)?;
    others.extend(references(&differences.new)?);
    others.extend(references(&differences.endpoints)?);
    // A namespace that does not exist contains nothing.
    others.retain(|object| object.namespace.as_deref().is_some_and(|namespace| !new.contains(namespace)));
    let all: Vec<ObjectRef> = namespaces.into_iter().chain(others).collect();
    let found = api.get_all(&all)?;
    let Some((reference, object)) =
        all.iter().zip(&found).find_map(|(at, found)| Some((at, found.as_ref()?)))
    else {
        return Ok(());
    };
    let (whose, hint) = match object["metadata"]["labels"][FLEET_LABEL].as_str() {
        Some(run) => (
            format!("belongs to run {run}"),
            "remove that run's mesh first, or write with its run ID to take it over",
        ),
        None => (
            "does not belong to a fleet".to_owned(),
            "a fleet changes nothing that it has not written: rename or remove it",
        ),
    };
    let reason = format!("{reference} exists already and {whose}");
    Err(EnvironmentError::new(OPERATION, reason).with_hint(hint))
}

/// True if an object of the API has every wanted field with the wanted value.
fn covers(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| covers(actual.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len()
                && actual.iter().zip(wanted).all(|(actual, wanted)| covers(actual, wanted))
        }
        (Value::Null, Value::Object(wanted)) => wanted.is_empty(),
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        _ => actual == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placement;
    use experiment::settings::fleet::FleetSettings;
    use serde_json::json;

    fn population() -> Population {
        let placement = Placement { run_id: "run-1".to_owned(), ..Placement::default() };
        let settings = FleetSettings {
            services: 4,
            pods: 8,
            namespaces: 2,
            proxies: 1,
            virtual_services: 2,
            ..FleetSettings::default()
        };
        Population::new(&settings, &placement).unwrap()
    }

    fn all(population: &Population) -> Vec<Value> {
        population.namespaces().into_iter().chain(population.objects()).collect()
    }

    fn in_api(population: &Population) -> HashMap<ObjectKey, Value> {
        let mut objects: HashMap<ObjectKey, Value> = all(population)
            .into_iter()
            .map(|mut object| {
                object["metadata"]["uid"] = json!("1");
                (ObjectRef::from_object(&object).unwrap().key(), object)
            })
            .collect();
        for status in population.statuses() {
            let key = ObjectRef::from_object(&status).unwrap().key();
            objects.get_mut(&key).unwrap()["status"] = status["status"].clone();
        }
        objects
    }

    #[test]
    fn differences_with_empty_api_are_everything() {
        let population = population();
        let differences = population.differences(all(&population), &HashMap::new()).unwrap();
        assert_eq!(
            (differences.namespaces.len(), differences.statuses.len(), differences.endpoints.len()),
            (2, 8, 4)
        );
        let further = differences.new.len() + differences.accounts.len();
        assert_eq!((differences.accounts.len(), further), (4, all(&population).len() - 2 - 4));
        assert!(differences.changed.is_empty() && differences.stale.is_empty());
    }

    #[test]
    fn differences_are_missing_changed_and_stale_objects() {
        let population = population();
        let mut existing = in_api(&population);
        let differences = population.differences(all(&population), &existing).unwrap();
        let counts = |differences: &Differences| {
            (
                differences.new.len(),
                differences.changed.len(),
                differences.statuses.len(),
                differences.stale.len(),
            )
        };
        assert_eq!(counts(&differences), (0, 0, 0, 0), "{differences:?}");
        let pod = ObjectRef::new("v1", "Pod", Some("fleet-1"), "service-1-1");
        let mut replacement = existing.remove(&pod.key()).unwrap();
        replacement["metadata"]["name"] = json!("service-1-9");
        existing.insert(ObjectRef::from_object(&replacement).unwrap().key(), replacement);
        let route = ObjectRef::new("networking.istio.io/v1", "VirtualService", Some("fleet-1"), "service-1");
        existing.get_mut(&route.key()).unwrap()["spec"]["http"][0]["name"] = json!("mark-000004");
        let differences = population.differences(all(&population), &existing).unwrap();
        assert_eq!(counts(&differences), (1, 1, 1, 1), "{differences:?}");
        assert_eq!(differences.stale[0].name, "service-1-9");
    }

    #[test]
    fn covers_ignores_fields_added_by_api() {
        let wanted = json!({"spec": {"ports": [{"port": 1}], "selector": {}}});
        assert!(covers(
            &json!({"spec": {"ports": [{"port": 1, "protocol": "TCP"}], "clusterIP": "1"}}),
            &wanted
        ));
        assert!(!covers(&json!({"spec": {"ports": [{"port": 1}, {"port": 2}]}}), &wanted));
        assert!(!covers(&json!({"spec": {"ports": [{"port": 3}]}}), &wanted));
    }
}
