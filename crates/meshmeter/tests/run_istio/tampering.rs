//! Tampering that routes requests another way, or lets something else respond: it must make a trial invalid,
//! not fast.

use crate::process::Place;
use crate::run::{Scene, check_good};
use results::TrialOutcome;
use std::process::Command;
use std::time::Duration;

const RUN_TIMEOUT: Duration = Duration::from_secs(400);

/// Rules that are removed while connections are open. These connections may stay on their path, and then no
/// counter shows it.
pub fn rules_removed_in_the_window_are_detected() {
    remove_rules("sidecar");
}

pub fn ambient_rules_removed_in_the_window_are_detected() {
    remove_rules("ambient");
}

fn remove_rules(mode: &str) {
    let scene = Scene::new(&format!(
        "modes: [{mode}]\nrepeats: 3\nload: {{rate: 100, connections: 4, warmup: 100ms, duration: 8s, timeout: 2s}}\n"
    ));
    let mut run = scene.start("out");
    let mut generator = None;
    for pod in ["client", "server"] {
        let current = run.await_other(Place::Anywhere("load"), generator.as_ref());
        current.await_connections(4);
        let inside =
            if pod == "client" { current.clone() } else { run.await_process(Place::Anywhere("serve")) };
        let pid = inside.pid.to_string();
        let flush = Command::new("nsenter").args(["-t", &pid, "-n", "iptables", "-t", "nat", "-F"]).status();
        assert!(flush.expect("nsenter is installed").success());
        assert!(current.is_alive(), "the window is not over");
        generator = Some(current);
    }
    let ended = run.end_within(RUN_TIMEOUT);
    ended.check_status();
    let trials = ended.trials();
    for (trial, pod) in trials.iter().zip(["client", "server"]) {
        assert_eq!(trial.outcome, TrialOutcome::Finished, "{:?}", trial.verdict);
        assert!(!trial.path.proven && !trial.verdict.valid);
        let reason = format!("rules of pod {pod} were changed in the trial: ");
        assert!(trial.path.reasons.iter().any(|said| said.starts_with(&reason)), "{:?}", trial.path.reasons);
    }
    check_good(&trials[2]);
}

/// A server's sidecar that responds by itself: every request gets a response, seen by both proxies and
/// encrypted.
const ANSWERS_ITSELF: &str = r#"
modes: [sidecar]
repeats: 1
load: {rate: 100, connections: 4, warmup: 100ms, duration: 1s}
istio:
  workload-keys: ecdsa
  extra: |
    apiVersion: networking.istio.io/v1alpha3
    kind: EnvoyFilter
    metadata: {name: answers-itself}
    spec:
      workloadSelector: {labels: {app: server}}
      configPatches:
        - applyTo: HTTP_FILTER
          match:
            context: SIDECAR_INBOUND
            listener:
              filterChain:
                filter:
                  name: envoy.filters.network.http_connection_manager
                  subFilter: {name: envoy.filters.http.router}
          patch:
            operation: INSERT_BEFORE
            value:
              name: answers-itself
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
                default_source_code:
                  inline_string: |
                    function envoy_on_request(handle)
                      handle:respond({[":status"] = "200"}, "fast")
                    end
"#;

pub fn proxy_that_responds_by_itself_is_not_proof() {
    let scene = Scene::new(ANSWERS_ITSELF);
    let ended = scene.start("out").end_within(RUN_TIMEOUT);
    assert_eq!(ended.status, Some(1), "{}", ended.text());
    let trial = &ended.trials()[0];
    let requests = &trial.result.as_ref().expect("a result").requests;
    // On a busy machine some are never sent.
    assert_eq!(requests.status.get("200"), Some(&requests.sent), "{:?}", trial.verdict);
    assert!(requests.sent > 0, "{:?}", trial.verdict);
    let reasons = trial.path.reasons.join("\n");
    assert!(reasons.contains("server-proxy sent on 0 of the "), "{reasons}");
}
