//! All settings at once, with each protocol.

use crate::cases::LogFolder;
use crate::trial::{REQUESTS, bring_up, run, settings, switched};
use crate::wasm;
use experiment::environment::{AccessLog, DeploymentSpec, ProxySettings};
use experiment::mesh_settings::{AuthorizationSettings, BackgroundSettings, LuaScript};
use experiment::{MeshSettings, Protocol};
use lab::environment::LocalLab;
use results::Mode;
use std::fs;
use std::path::Path;
use std::time::Duration;

pub fn all_settings_work_together(lab: &LocalLab) {
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Grpc] {
        together(lab, Mode::Sidecar, protocol);
        together(lab, Mode::Ingress, protocol);
    }
}

pub fn all_settings_work_together_in_a_waypoint(lab: &LocalLab) {
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Grpc] {
        together(lab, Mode::AmbientWaypoint, protocol);
    }
}

fn every_switch(module: &Path) -> MeshSettings {
    MeshSettings {
        tracing_fraction: Some(1.0),
        authorization: AuthorizationSettings { paths: 11, identities: 11, jwt: true },
        lua: Some(LuaScript::BuiltIn),
        wasm: Some(module.to_owned()),
        retries: Some(1),
        timeout: Some(Duration::from_secs(4)),
        sidecar_scope: true,
        background_services: BackgroundSettings { services: 20, endpoints: 2 },
        ..settings()
    }
}

fn together(lab: &LocalLab, mode: Mode, protocol: Protocol) {
    let what = format!("{mode}, {protocol}");
    let folder = LogFolder::create();
    let module = folder.path().join("adds-a-header.wasm");
    fs::write(&module, wasm::adds_a_header()).expect("it is writable");
    let proxy = ProxySettings { access_log: AccessLog::Json, ..ProxySettings::default() };
    let spec = DeploymentSpec { proxy, ..switched(mode, every_switch(&module)) }.with_protocol(protocol);
    let deployment = bring_up(lab, &spec, folder.path());
    let mut client_arguments = deployment.client_arguments();
    client_arguments.extend(of_protocol(protocol, folder.path()));
    let trial = run(deployment, folder.path(), &client_arguments);
    trial.check_path(&what);
    let checker = if mode == Mode::AmbientWaypoint { "waypoint" } else { "server-proxy" };
    // One filter denies requests without a token, another allows those that match a rule.
    assert_eq!(trial.rise(checker, ".rbac.allowed"), 2 * REQUESTS, "{what}");
    assert_eq!(trial.rise(checker, ".jwt_authn.allowed"), REQUESTS, "{what}");
    let errors = &trial.result().requests.errors;
    assert!(errors.is_empty(), "{what}: {errors:?}");
}

/// Options that the generator needs in addition to the URL, as in a run.
fn of_protocol(protocol: Protocol, folder: &Path) -> Option<String> {
    match protocol {
        Protocol::Http2 => Some("--http=2".to_owned()),
        Protocol::Grpc => {
            let file = folder.join("echo.proto");
            fs::write(&file, service::ECHO_PROTO).expect("it is writable");
            Some(format!("--proto={}", file.display()))
        }
        Protocol::Http1 | Protocol::Tcp => None,
    }
}
