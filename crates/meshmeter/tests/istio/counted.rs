//! Trials that also read the service's own counters.

use crate::cases::LogFolder;
use crate::trial::{Trial, bring_up, finish, load};
use experiment::Protocol;
use experiment::environment::DeploymentSpec;
use lab::environment::LocalLab;
use serde_json::Value;

/// Port on which the service listens and exposes its counters (`docs/service.md`).
const SERVICE_PORT: u16 = 8080;
const COUNTERS_PATH: &str = "/meshmeter/counters";

/// Runs a trial whose requests have this query. Also returns the service's counters at its end.
pub fn counted(lab: &LocalLab, spec: &DeploymentSpec, query: &str) -> (Trial, Value) {
    let logs = LogFolder::create();
    let mut deployment = bring_up(lab, spec, logs.path());
    let mut client_arguments = deployment.client_arguments();
    match spec.topology.target().expect("it has a driver").protocol {
        Protocol::Http2 => client_arguments.push("--http=2".to_owned()),
        Protocol::Grpc => {
            // gRPC reflection would be a call to the service that is not part of the load.
            let file = logs.path().join("echo.proto");
            std::fs::write(&file, service::ECHO_PROTO).expect("the folder is there");
            client_arguments.push(format!("--proto={}", file.display()));
        }
        Protocol::Http1 | Protocol::Tcp => {}
    }
    let url = deployment.url() + query;
    let result = load(&mut deployment, logs.path(), url, &client_arguments);
    let server = deployment.server_pod().admin("server", SERVICE_PORT);
    let counters = server.get_json(COUNTERS_PATH).expect("the service answers");
    (finish(deployment, result), counters)
}

/// Requests that the service received over a protocol, by the protocol's name in its counters.
pub fn requests(counters: &Value, protocol: &str) -> u64 {
    counters["protocols"][protocol]["requests"].as_u64().expect("the service counts every protocol")
}
