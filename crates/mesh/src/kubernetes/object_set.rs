//! The objects of one deployment: written through this set, which then removes exactly those.
//! A lab has no controller that empties a namespace or handles finalizers, so the set does both. Writing or
//! removing n objects takes O(n) requests with bounded concurrency.

use super::admission::remove_admission_objects;
use super::client::ApiClient;
use super::object_ref::{ObjectKey, ObjectRef};
use super::rest_mapper::DEFINITION;
use super::workloads::{Workload, namespace};
use crate::Result;
use crate::wait::wait_for;
use experiment::environment::EnvironmentError;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

const NAMESPACE: &str = "Namespace";
/// The API serves a new kind within a second.
const SERVED_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct ObjectSet {
    api: Arc<ApiClient>,
    /// Namespaces in which all objects belong to this set.
    namespaces: HashSet<String>,
    keys: HashSet<ObjectKey>,
    /// References to the written objects, in the order written.
    written: Vec<ObjectRef>,
}

impl ObjectSet {
    pub fn new(api: Arc<ApiClient>) -> Self {
        Self { api, namespaces: HashSet::new(), keys: HashSet::new(), written: Vec::new() }
    }

    pub fn api(&self) -> &Arc<ApiClient> {
        &self.api
    }

    pub fn create_namespaces(&mut self, names: &[&str], labels: &[(&str, &str)]) -> Result<()> {
        let objects: Vec<Value> = names.iter().map(|name| namespace(name, labels)).collect();
        self.apply(&objects)?;
        self.namespaces.extend(names.iter().map(|name| (*name).to_owned()));
        Ok(())
    }

    /// Writes new objects, definitions and namespaces first, and returns them as stored by the API. An
    /// existing object is an error: removing the set would remove it too.
    pub fn apply(&mut self, objects: &[Value]) -> Result<Vec<Value>> {
        self.note(objects)?;
        // Other objects need their namespaces and kinds.
        let comes_first = |object: &&Value| object["kind"] == NAMESPACE || object["kind"] == DEFINITION;
        let (first, others): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(comes_first);
        let mut written = self.api.apply(&first)?;
        for definition in first.into_iter().filter(|object| object["kind"] == DEFINITION) {
            let what = format!("{} is served", ObjectRef::from_object(definition)?);
            wait_for(&what, SERVED_TIMEOUT, || {
                self.api.check_not_stopped()?;
                Ok(self.api.serves_defined_kind(definition).then_some(()))
            })?;
        }
        written.extend(self.api.apply(&others)?);
        Ok(written)
    }

    /// Writes the accounts and running pods of workloads. `on_progress` receives the number of objects
    /// written so far.
    pub fn create_pods(&mut self, workloads: &[&Workload], on_progress: &dyn Fn(usize)) -> Result<()> {
        let objects: Vec<Value> = workloads.iter().flat_map(|workload| workload.objects()).collect();
        self.create(&objects, on_progress)?;
        let statuses: Vec<Value> = workloads.iter().flat_map(|workload| workload.pod_statuses()).collect();
        self.api.set_status(&statuses, &|_| ())
    }

    /// Creates objects of built-in Kubernetes kinds in namespaces of this set; cheaper than [`Self::apply`].
    pub fn create(&mut self, objects: &[Value], on_progress: &dyn Fn(usize)) -> Result<()> {
        self.note(objects)?;
        self.api.create(objects, on_progress)
    }

    /// Adds objects to the set before they are written: if a batch is rejected, some of it may have been written.
    fn note(&mut self, objects: &[Value]) -> Result<()> {
        let references: Vec<ObjectRef> =
            objects.iter().map(ObjectRef::from_object).collect::<Result<_, _>>()?;
        let mut keys = HashSet::with_capacity(references.len());
        for reference in &references {
            let key = reference.key();
            if self.keys.contains(&key) || !keys.insert(key) {
                let hint = "objects of `istio.extra` cannot take the place of those that a trial is made of";
                let reason = "the trial has such an object already";
                return Err(EnvironmentError::new(format!("apply {reference}"), reason).with_hint(hint));
            }
        }
        let elsewhere: Vec<ObjectRef> =
            references.iter().filter(|object| !self.is_in_own_namespace(object)).cloned().collect();
        let existing = self.api.get_all(&elsewhere)?;
        if let Some((reference, _)) = elsewhere.iter().zip(&existing).find(|(_, existing)| existing.is_some())
        {
            let hint = "`istio.extra` brings new objects along; give this one another name";
            let reason = "the control plane has such an object already, and would lose it with the trial";
            return Err(EnvironmentError::new(format!("apply {reference}"), reason).with_hint(hint));
        }
        self.keys.extend(keys);
        self.written.extend(references);
        Ok(())
    }

    fn is_in_own_namespace(&self, object: &ObjectRef) -> bool {
        object.namespace.as_ref().is_some_and(|namespace| self.namespaces.contains(namespace))
    }

    /// Removes these objects of the set, last first.
    pub fn remove_some(&mut self, objects: &[Value]) -> Result<()> {
        let references: Vec<ObjectRef> =
            objects.iter().rev().map(ObjectRef::from_object).collect::<Result<_, _>>()?;
        self.api.delete(&references, &|_| ())?;
        let removed: HashSet<ObjectKey> = references.iter().map(ObjectRef::key).collect();
        self.keys.retain(|key| !removed.contains(key));
        self.written.retain(|reference| !removed.contains(&reference.key()));
        Ok(())
    }

    /// Removes all objects, last written first, namespaces last. Returns the first error after removing the others.
    pub fn remove(&mut self) -> Result<()> {
        let mut objects = std::mem::take(&mut self.written);
        if objects.is_empty() {
            return Ok(());
        }
        self.api.check_not_stopped()?;
        objects.reverse();
        let admission = remove_admission_objects(&self.api, &objects);
        let (namespaces, others): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|object| object.kind == NAMESPACE);
        let deleted = self.api.delete(&others, &|_| ());
        let namespaces_deleted = self.api.delete(&namespaces, &|_| ());
        // Objects in other namespaces that wait for a finalizer would still exist in the next deployment.
        // Finalizers cannot be removed once the namespace is gone.
        let elsewhere: Vec<ObjectRef> =
            others.into_iter().filter(|object| !self.is_in_own_namespace(object)).collect();
        let finalized = self.api.remove_finalizers(&elsewhere);
        let names: Vec<&str> = namespaces.iter().map(|namespace| namespace.name.as_str()).collect();
        let namespaces_finalized = self.api.finalize_namespaces(&names);
        self.keys.clear();
        self.namespaces.clear();
        admission.and(deleted).and(namespaces_deleted).and(finalized).and(namespaces_finalized)
    }
}

impl Drop for ObjectSet {
    fn drop(&mut self) {
        // Objects that cannot be removed disappear with the control plane.
        let _ = self.remove();
    }
}
