//! Pods as the API shows them: which pods exist, whether they are ready, and their problems. Pure.

use serde_json::Value;
use std::collections::BTreeMap;

/// Reasons of a container that do not go away by waiting.
const HOPELESS: [&str; 9] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "CrashLoopBackOff",
    "RunContainerError",
];

/// Placeholder for the image that the mesh's webhook sets.
pub(crate) const IMAGE_OF_WEBHOOK: &str = "auto";
/// Hint about a pod that the webhook has not changed.
pub(crate) const NOT_INJECTED: &str = "the mesh's webhook left it as it is: look at the labels of the namespace (istio-injection, istio.io/rev, linkerd.io/inject), at \
     the selectors of the webhook, and whether its service answers";

/// A pod of the run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct PodState {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub app: String,
    pub index: Option<usize>,
    pub node: String,
    pub is_ready: bool,
    /// Restarts by container, sidecars included.
    pub restarts: BTreeMap<String, i64>,
    /// Images by container, sidecars included.
    pub images: BTreeMap<String, String>,
    pub problem: Option<Problem>,
}

/// Why a pod does not run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Problem {
    /// Words to follow the pod's name.
    pub how: String,
    pub container: Option<String>,
    pub hint: Option<&'static str>,
    /// True if waiting may help: a node may be added.
    pub may_pass: bool,
    /// True if another pod would fail the same way.
    pub is_lasting: bool,
}

impl PodState {
    pub fn read(pod: &Value) -> Self {
        let (metadata, status) = (&pod["metadata"], &pod["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let index = metadata["labels"]["batch.kubernetes.io/job-completion-index"].as_str();
        let is_ready = condition(status, "Ready").is_some_and(|ready| ready["status"] == "True");
        let restarts = containers(status)
            .map(|container| (text(&container["name"]), container["restartCount"].as_i64().unwrap_or(0)));
        let specified = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
        let images = specified.into_iter().flatten().flatten();
        let images = images.map(|container| (text(&container["name"]), text(&container["image"])));
        Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            app: text(&metadata["labels"]["app"]),
            index: index.and_then(|index| index.parse().ok()),
            node: text(&pod["spec"]["nodeName"]),
            is_ready,
            restarts: restarts.collect(),
            images: images.collect(),
            problem: problem(pod),
        }
    }

    /// Failure of the pod since then, as words to follow its name. `now` is absent if it is gone.
    pub fn failure(&self, now: Option<&Value>) -> Option<String> {
        let Some(now) = now else { return Some("is gone: its pod was deleted".to_owned()) };
        if now["metadata"]["uid"].as_str().unwrap_or_default() != self.uid {
            return Some("was replaced by another pod".to_owned());
        }
        for container in containers(&now["status"]) {
            let name = container["name"].as_str().unwrap_or_default();
            let restarts = container["restartCount"].as_i64().unwrap_or(0);
            if restarts > self.restarts.get(name).copied().unwrap_or(0) {
                let last = &container["lastState"]["terminated"];
                return Some(format!("was restarted: container {name} {}", ended(last)));
            }
            let terminated = &container["state"]["terminated"];
            if self.is_ready && !terminated.is_null() && terminated["exitCode"] != 0 {
                return Some(format!("lost its container {name}, which {}", ended(terminated)));
            }
        }
        if now["status"]["phase"] == "Failed" {
            let reason = now["status"]["reason"].as_str().unwrap_or("Failed");
            let message = now["status"]["message"].as_str().unwrap_or("no message");
            return Some(format!("has failed: {reason}: {message}"));
        }
        if !now["metadata"]["deletionTimestamp"].is_null() {
            return Some("is being deleted".to_owned());
        }
        let ready = condition(&now["status"], "Ready")?;
        (self.is_ready && ready["status"] != "True").then(|| {
            let reason = ready["reason"].as_str().or(ready["message"].as_str()).unwrap_or("no reason");
            format!("is no longer ready: {reason}")
        })
    }
}

fn containers(status: &Value) -> impl Iterator<Item = &Value> {
    ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .flat_map(|list| status[list].as_array().into_iter().flatten())
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// How a container ended, as words to follow its name.
fn ended(terminated: &Value) -> String {
    match (terminated["reason"].as_str(), terminated["exitCode"].as_i64()) {
        (Some("OOMKilled"), _) => "was killed at its memory limit (OOMKilled)".to_owned(),
        (Some(reason), Some(code)) => format!("ended with exit status {code} ({reason})"),
        _ => "ended".to_owned(),
    }
}

fn problem(pod: &Value) -> Option<Problem> {
    for container in containers(&pod["status"]) {
        let name = container["name"].as_str().unwrap_or_default();
        let waiting = &container["state"]["waiting"];
        if let Some(reason) = waiting["reason"].as_str().filter(|reason| HOPELESS.contains(reason)) {
            let message = waiting["message"].as_str().unwrap_or("no message");
            return Some(Problem {
                how: format!("cannot start its container {name}: {reason}: {message}"),
                container: Some(name.to_owned()),
                hint: if is_left_to_webhook(pod, name) { Some(NOT_INJECTED) } else { hint(reason) },
                may_pass: false,
                is_lasting: reason != "CrashLoopBackOff",
            });
        }
        let terminated = &container["state"]["terminated"];
        if !terminated.is_null() && terminated["exitCode"] != 0 {
            return Some(Problem {
                how: format!("does not run: its container {name} {}", ended(terminated)),
                container: Some(name.to_owned()),
                hint: None,
                may_pass: false,
                is_lasting: false,
            });
        }
    }
    let scheduled = condition(&pod["status"], "PodScheduled")?;
    (scheduled["status"] == "False").then(|| Problem {
        how: format!("is not scheduled: {}", scheduled["message"].as_str().unwrap_or("no message")),
        container: None,
        hint: Some("request less (resources), or use other nodes (--generator-nodes)"),
        may_pass: true,
        is_lasting: true,
    })
}

/// True if the mesh's webhook should have set the image of a container.
fn is_left_to_webhook(pod: &Value, container: &str) -> bool {
    let mut containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.any(|one| one["name"] == container && one["image"] == IMAGE_OF_WEBHOOK)
}

fn hint(reason: &str) -> Option<&'static str> {
    match reason {
        "ErrImagePull" | "ImagePullBackOff" | "ImageInspectError" | "ErrImageNeverPull"
        | "InvalidImageName" => Some("--image names an image that every node can pull"),
        _ => None,
    }
}

/// Why an object that creates pods creates none, such as a quota.
pub(crate) fn creation_failure(owner: &Value) -> Option<String> {
    let conditions = owner["status"]["conditions"].as_array().into_iter().flatten();
    let failed = conditions.filter(|condition| condition["status"] == "True");
    let mut failed =
        failed.filter(|condition| matches!(condition["type"].as_str(), Some("ReplicaFailure" | "Failed")));
    let condition = failed.next()?;
    Some(condition["message"].as_str().or(condition["reason"].as_str()).unwrap_or("no message").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Value) -> Value {
        json!({"metadata": {"name": "server-1", "namespace": "m", "uid": "u", "labels": {"app": "server"}}, "spec": {}, "status": status})
    }

    fn problem_of(status: &Value) -> String {
        PodState::read(&pod(status)).problem.map(|problem| problem.how).unwrap_or_default()
    }

    #[test]
    fn problems_are_one_line_each() {
        let waiting = |reason: &str| json!({"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": reason, "message": "why"}}}]});
        assert_eq!(
            problem_of(&waiting("ImagePullBackOff")),
            "cannot start its container a: ImagePullBackOff: why"
        );
        assert_eq!(problem_of(&waiting("ContainerCreating")), "");
        let hint = |image: &str| {
            let mut pod = pod(&waiting("ErrImagePull"));
            pod["spec"]["containers"] = json!([{"name": "a", "image": image}]);
            PodState::read(&pod).problem.unwrap().hint.unwrap()
        };
        assert!(hint("meshmeter:1").starts_with("--image names") && hint(IMAGE_OF_WEBHOOK) == NOT_INJECTED);
        let unscheduled =
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]});
        assert_eq!(problem_of(&unscheduled), "is not scheduled: 0/1 nodes");
        let killed = json!({"containerStatuses": [{"name": "a", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]});
        assert_eq!(
            problem_of(&killed),
            "does not run: its container a was killed at its memory limit (OOMKilled)"
        );
    }

    #[test]
    fn failures_since_start_of_deployment_are_detected() {
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "a", "restartCount": 1}]});
        let before = PodState::read(&pod(&ready));
        let failure = |status: &Value| {
            let now = pod(status);
            before.failure(Some(&now))
        };
        assert_eq!(failure(&ready), None);
        let restarted = json!({"containerStatuses": [{"name": "a", "restartCount": 2, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]});
        let how = "was restarted: container a was killed at its memory limit (OOMKilled)";
        assert_eq!(failure(&restarted).as_deref(), Some(how));
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "disk"});
        assert_eq!(failure(&evicted).as_deref(), Some("has failed: Evicted: disk"));
        let lost = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "NodeLost"}]});
        assert_eq!(failure(&lost).as_deref(), Some("is no longer ready: NodeLost"));
    }
}
