//! Runs through ingress gateways: one that istiod's webhook injects into a Deployment of the run, and one
//! that istiod deploys for the Gateway API.

use crate::cluster::{OneNodeCluster, SAMPLED_WINDOW};
use crate::injected::check_path;
use crate::runs::{kubeconfig_of, meshmeter};
use crate::study::{finish, trials};
use cluster::settings::RUN_LABEL;
use results::{Role, TrialRecord};
use std::fs;

const GATEWAY: &str = "ingress-gateway";

/// Runs one trial in the namespace `name`. `istio`: keys of `istio.ingress`; `times`: keys of `load`.
fn run(cluster: &OneNodeCluster, name: &str, istio: &str, times: &str, arguments: &[&str]) -> TrialRecord {
    let directory = cluster.folder().join(name);
    fs::create_dir_all(&directory).unwrap();
    let experiment = format!(
        "name: {name}\nquestion: Does a gateway lead into the mesh?\ntopology: pair\nmesh: istio\nmodes: [ingress]\n\
         istio: {{ingress: {{{istio}}}}}\ngateway: {{cpu: 500m, workers: 1}}\n\
         load: {{rate: 50, {times}}}\nrepeats: 1\nretakes: 0\n"
    );
    fs::write(directory.join("experiment.yaml"), experiment).unwrap();
    let folder = directory.join("run");
    let mut command = meshmeter(cluster);
    command.arg("run").arg(directory.join("experiment.yaml")).arg("--out").arg(&folder);
    command.args(["--on=cluster", "--image=localhost/meshmeter:test", "--namespace-prefix", name]);
    finish(command.args(arguments));
    trials(&folder).remove(0)
}

/// Every request passed the gateway and then the sidecar, encrypted between them.
fn check(trial: &TrialRecord) {
    check_path(trial, &[GATEWAY, "server-proxy"]);
    let [gateway] = &trial.gateways[..] else { panic!("{:?}", trial.gateways) };
    assert_eq!((gateway.name.as_str(), &gateway.targets[..]), (GATEWAY, &["server".to_owned()][..]));
    let whole_trial = gateway.whole_trial.as_ref().unwrap();
    assert!(gateway.requests > 0 && whole_trial.requests >= gateway.requests, "{gateway:?}");
}

/// Run by a user with exactly the rights that such a run needs.
pub fn istios_api_has_a_gateway_with_certificates(cluster: &OneNodeCluster) {
    let name = "gateway-istio";
    let in_namespace = format!("--namespace={name}");
    cluster.kubectl(&["create", "namespace", name]);
    cluster.kubectl(&["create", "serviceaccount", "runner", &in_namespace]);
    let account = format!("{name}:runner");
    let rbac = ["cluster", "rbac", &in_namespace, "--service-account", &account, "--istio", "--gateway-tls"];
    let file = cluster.folder().join("gateway-roles.yaml");
    fs::write(&file, meshmeter(cluster).args(rbac).output().unwrap().stdout).unwrap();
    cluster.kubectl(&["apply", "--filename", file.to_str().unwrap()]);
    let token = cluster.kubectl(&["create", "token", "runner", &in_namespace]);
    let kubeconfig = cluster.folder().join("gateway-runner");
    fs::write(&kubeconfig, kubeconfig_of(cluster, &format!("  user: {{token: {}}}", token.trim()))).unwrap();
    let own = ["--existing-namespaces", "--without-nodes", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let trial = run(cluster, name, "api: istio, tls: mutual", "warmup: 500ms, duration: 2s", &own);
    check(&trial);
    let kinds =
        "deployments,services,secrets,roles,rolebindings,gateways.networking.istio.io,virtualservices";
    let left = cluster.kubectl(&["get", kinds, &in_namespace, "--output=name", "--selector", RUN_LABEL]);
    assert_eq!(left.trim(), "");
}

/// Its usage is measured, and its limit applies.
pub fn the_gateway_api_has_a_gateway_that_istiod_deploys(cluster: &OneNodeCluster) {
    let kubeconfig = cluster.folder().join("kubeconfig");
    let times = format!("warmup: 1s, duration: {SAMPLED_WINDOW}");
    let own = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let trial = run(cluster, "gateway-kubernetes", "api: kubernetes, tls: off", &times, &own);
    check(&trial);
    assert_eq!(trial.gateways[0].tls_connections, 0, "{:?}", trial.gateways);
    let gateway = trial.components.iter().find(|component| component.name == GATEWAY);
    let gateway = gateway.unwrap_or_else(|| panic!("{:?}", trial.components));
    assert_eq!(gateway.role, Role::Proxy);
    assert!(gateway.cpu_user_s + gateway.cpu_system_s > 0.0 && gateway.throttling.is_some(), "{gateway:?}");
}
