//! Reasons why pods do not start, one line each, from the pods, the objects that create them, and their
//! events.

use crate::Result;
use crate::lists::{list_objects, list_warnings};
use crate::pods::{PodState, creation_failure};
use crate::retry::{API_TIMEOUT, retry};
use experiment::environment::EnvironmentError;
use mesh::kubernetes::client::ApiClient;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Time that a pod may wait to be scheduled.
const SCHEDULING_TIMEOUT: Duration = Duration::from_secs(60);
/// Time after which warnings of a pod that has not started end the wait: kubelets retry what failed once.
const WARNING_TIMEOUT: Duration = Duration::from_secs(30);
const LOG_LINES: usize = 20;
/// Warnings of a pod whose containers cannot be created.
const POD_WARNINGS: [&str; 3] = ["FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume"];

/// Kinds that create pods.
const MAKERS: [(&str, &str); 2] = [("batch/v1", "Job"), ("apps/v1", "Deployment")];
/// Kinds that create the pod of a detached run. The user who starts it may lack rights on the others.
const MAKERS_OF_RUNNERS: [(&str, &str); 1] = [MAKERS[0]];

/// The last log lines of a container in a pod (namespace and name). Of its current and its previous run
/// (`of_previous`), it is the first that has any; empty if none can be read.
pub(crate) fn log_tail(
    api: &ApiClient,
    (namespace, pod): (&str, &str),
    container: &str,
    of_previous: [bool; 2],
) -> Vec<String> {
    let read = |of_previous: bool| {
        let operation = format!("read the log of {container} in pod {namespace}/{pod}");
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}&tailLines={LOG_LINES}&previous={of_previous}"
        );
        api.get_text(&operation, &path).ok().filter(|text| !text.is_empty())
    };
    let text = of_previous.into_iter().find_map(read).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// Pods that are to start, selected by the label of their run.
pub(crate) struct Startup<'a> {
    api: &'a ApiClient,
    namespaces: &'a [String],
    selector: &'a str,
    makers: &'static [(&'static str, &'static str)],
    began: Instant,
}

impl<'a> Startup<'a> {
    pub fn new(api: &'a ApiClient, namespaces: &'a [String], selector: &'a str) -> Self {
        Self { api, namespaces, selector, makers: &MAKERS, began: Instant::now() }
    }

    /// Startup of the pod of a detached run.
    pub fn for_runner(api: &'a ApiClient, namespaces: &'a [String], selector: &'a str) -> Self {
        Self { makers: &MAKERS_OF_RUNNERS, ..Self::new(api, namespaces, selector) }
    }

    /// Returns an error if one of these pods, or one that does not exist yet, will not start.
    pub fn check(&self, pods: &[PodState]) -> Result<()> {
        pods.iter().try_for_each(|pod| self.check_pod(pod))?;
        self.namespaces.iter().try_for_each(|namespace| self.check_namespace(namespace, pods))
    }

    fn check_pod(&self, pod: &PodState) -> Result<()> {
        let Some(problem) = &pod.problem else { return Ok(()) };
        if problem.may_pass && self.began.elapsed() < SCHEDULING_TIMEOUT {
            return Ok(());
        }
        let PodState { namespace, name, .. } = pod;
        let error =
            EnvironmentError::new(format!("start pod {namespace}/{name}"), format!("it {}", problem.how));
        let error = match problem.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
        let error = if problem.is_lasting { error.lasting() } else { error };
        let Some(container) = &problem.container else { return Err(error) };
        let lines = log_tail(self.api, (namespace, name), container, [false, true]);
        Err(error.about_component(name.clone(), lines))
    }

    /// Checks the owners of pods. If a quota or a policy prevents their pods, Deployments have a condition,
    /// but Jobs only an event.
    fn check_namespace(&self, namespace: &str, pods: &[PodState]) -> Result<()> {
        let mut makers = Vec::new();
        for (api_version, kind) in self.makers {
            let list = || list_objects(self.api, (api_version, kind), Some(namespace), self.selector);
            makers.extend(retry(API_TIMEOUT, list)?);
        }
        for maker in &makers {
            if let Some(reason) = creation_failure(maker) {
                return Err(refused(namespace, maker, &reason));
            }
        }
        // If the user may not read events, the wait ends with its timeout.
        for event in list_warnings(self.api, namespace).unwrap_or_default() {
            let (subject, reason) = (&event["involvedObject"], event["reason"].as_str().unwrap_or_default());
            let message = event["message"].as_str().unwrap_or("no message");
            let maker = makers.iter().find(|maker| maker["metadata"]["uid"] == subject["uid"]);
            if let Some(maker) = maker.filter(|_| reason == "FailedCreate") {
                return Err(refused(namespace, maker, message));
            }
            let pod = pods.iter().find(|pod| !pod.is_ready && subject["uid"] == pod.uid.as_str());
            let is_warning = POD_WARNINGS.contains(&reason) && self.began.elapsed() > WARNING_TIMEOUT;
            if let Some(pod) = pod.filter(|_| is_warning) {
                let what = format!("it cannot be created: {reason}: {message}");
                return Err(
                    EnvironmentError::new(format!("start pod {namespace}/{}", pod.name), what).lasting()
                );
            }
        }
        Ok(())
    }
}

fn refused(namespace: &str, owner: &Value, reason: &str) -> EnvironmentError {
    let name = owner["metadata"]["name"].as_str().unwrap_or_default();
    let operation = format!("start the pods of {namespace}/{name}");
    let error = EnvironmentError::new(operation, reason).lasting();
    match admission_hint(reason) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Hint for a pod that the API rejected, according to the API's message.
fn admission_hint(reason: &str) -> Option<&'static str> {
    let hints = [
        (
            "exceeded quota",
            "a ResourceQuota of the namespace leaves too little: request less, or have it raised",
        ),
        ("failed quota", "a ResourceQuota of the namespace requires `resources` of every pod: set them"),
        ("usage per", "a LimitRange of the namespace bounds `resources`: keep to it, or have it changed"),
        ("violates PodSecurity", "the namespace's Pod Security level refuses what was added to the pods"),
        ("denied the request", "an admission webhook of the cluster refused the pods"),
    ];
    hints.into_iter().find(|(words, _)| reason.contains(words)).map(|(_, hint)| hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::{DETACHED, Rule};
    use serde_json::json;

    #[test]
    fn startup_of_runner_needs_only_rights_to_detach() {
        let allowed: Vec<String> =
            DETACHED.iter().flat_map(Rule::actions).map(|action| action.to_string()).collect();
        for (api_version, kind) in MAKERS_OF_RUNNERS {
            let (group, _) = api_version.split_once('/').unwrap();
            let action = format!("list {}s.{group}", kind.to_lowercase());
            assert!(allowed.contains(&action), "{action} is not in {allowed:?}");
        }
    }

    #[test]
    fn rejected_pods_report_owner_reason_and_hint() {
        let owner = json!({"metadata": {"name": "server"}});
        let reason = "pods \"server-x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
        let error = refused("perf", &owner, reason);
        assert_eq!(error.operation, "start the pods of perf/server");
        assert!(error.lasts());
        assert!(
            error.nearest_hint().unwrap().starts_with("a ResourceQuota of the namespace leaves too little")
        );
        let limited = "pods \"a\" is forbidden: maximum memory usage per Container is 1Mi, but limit is 2Mi";
        assert!(refused("perf", &owner, limited).nearest_hint().unwrap().contains("LimitRange"));
        assert_eq!(refused("perf", &owner, "out of luck").nearest_hint(), None);
    }
}
