//! Objects that have a say in what the API takes: webhooks and policies that an experiment brings along.
//!
//! One that refuses everything would outlive its trial, since it refuses to have the trial's objects deleted, and would
//! meet the next. The API asks none of them about themselves, so they go first ([`take_away`]), and nobody else is asked for
//! anything before the API is seen to take objects again.

use super::api::Api;
use super::object::Reference;
use crate::wait::wait_for;
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::ExtraObjects;
use serde_json::{Value, json};
use std::time::Duration;

/// The group of their kinds.
const GROUP: &str = "admissionregistration.k8s.io/";

/// The API hears within milliseconds that one is gone.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// The error with the names of the experiment's own objects that may be why the API refused something, or was long in
/// answering; as it is where there are none, or it has a hint already.
pub(super) fn with_objects_that_have_a_say(
    error: EnvironmentError,
    extra: Option<&ExtraObjects>,
) -> EnvironmentError {
    let objects = extra.into_iter().flat_map(|extra| &extra.objects);
    let with_a_say = objects.filter_map(|object| Reference::of(object).ok()).filter(has_a_say);
    let names: Vec<String> = with_a_say.map(|reference| reference.to_string()).collect();
    if names.is_empty() || error.hint.is_some() {
        return error;
    }
    let verb = if names.len() == 1 { "has" } else { "have" };
    error.with_hint(format!("of `istio.extra`, {} {verb} a say in what the API takes", names.join(", ")))
}

/// Whether an object has a say in what the API takes.
fn has_a_say(reference: &Reference) -> bool {
    reference.api_version.starts_with(GROUP)
}

/// Deletes those of these objects that have a say in what the API takes, and waits until the API takes again what every trial
/// begins with. Where there are none, nothing is asked.
///
/// # Errors
/// Where the API does not delete one, or goes on refusing: with its words.
pub(super) fn take_away(api: &Api, objects: &[Reference]) -> Result<(), EnvironmentError> {
    let with_a_say: Vec<Reference> =
        objects.iter().filter(|reference| has_a_say(reference)).cloned().collect();
    if with_a_say.is_empty() {
        return Ok(());
    }
    api.delete(&with_a_say)?;
    let mut refused = None;
    let waited = wait_for("the lab's API takes objects again", GONE_WITHIN, || {
        api.check_goes_on()?;
        refused = probes().iter().find_map(|probe| api.would_take(probe).err());
        Ok(refused.is_none().then_some(()))
    });
    waited.map_err(|error| match refused {
        Some(reason) => EnvironmentError::new(error.operation, reason),
        None => error,
    })
}

/// An object of each kind that a trial begins with. None is made.
fn probes() -> [Value; 4] {
    let object = |kind: &str, namespace: Option<&str>| {
        let mut object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "asked-for-but-never-made"}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        object
    };
    let default = Some("default");
    let mut service = object("Service", default);
    service["spec"] = json!({"ports": [{"port": 80}]});
    let mut pod = object("Pod", default);
    pod["spec"] = json!({"containers": [{"name": "app", "image": "app"}]});
    [object("Namespace", None), object("ServiceAccount", default), service, pod]
}
