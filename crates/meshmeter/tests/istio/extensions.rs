//! Filters that an experiment adds to proxies: Lua and WebAssembly.

use crate::cases::LogFolder;
use crate::exchange::Target;
use crate::trial::{REQUESTS, bring_up, refused, run, run_proven, settings, switched};
use crate::wasm;
use experiment::MeshSettings;
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::LuaScript;
use lab::environment::LocalLab;
use results::Mode;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Counts the proxies that ran the script, and returns what was requested.
const SCRIPT: &str = r#"
-- What is noted on the way in is told on the way out.
function envoy_on_request(handle)
  local path = handle:headers():get(":path")
  handle:streamInfo():dynamicMetadata():set("test", "path", path)
end

function envoy_on_response(handle)
  local count = tonumber(handle:headers():get("x-proxies") or "0") + 1
  handle:headers():replace("x-proxies", tostring(count))
  handle:headers():replace("x-path", handle:streamInfo():dynamicMetadata():get("test")["path"])
end
"#;

fn with_lua(mode: Mode, script: LuaScript) -> DeploymentSpec {
    switched(mode, MeshSettings { lua: Some(script), ..settings() })
}

/// Proxies of a mode that read requests.
fn readers(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Sidecar => &["client-proxy", "server-proxy"],
        Mode::Ingress => &["ingress-gateway", "server-proxy"],
        _ => &["waypoint"],
    }
}

pub fn the_built_in_script_sets_its_header(lab: &LocalLab) {
    let logs = LogFolder::create();
    let deployment = bring_up(lab, &with_lua(Mode::Sidecar, LuaScript::BuiltIn), logs.path());
    let target = Target::of_client(lab, &deployment);
    let agent = [("user-agent", "a test")];
    let answer = target.get(deployment.client_pod(), "/", &agent).expect("an answer");
    assert_eq!((answer.status, answer.all("x-meshmeter-lua")), (200, vec!["a test"]));
}

pub fn every_proxy_runs_a_script(lab: &LocalLab) {
    script(lab, Mode::Sidecar);
    script(lab, Mode::Ingress);
}

pub fn a_waypoint_runs_a_script(lab: &LocalLab) {
    script(lab, Mode::AmbientWaypoint);
}

fn script(lab: &LocalLab, mode: Mode) {
    let logs = LogFolder::create();
    let spec = with_lua(mode, LuaScript::Inline(SCRIPT.to_owned()));
    let deployment = bring_up(lab, &spec, logs.path());
    let target = Target::of_client(lab, &deployment);
    let answer = target.get(deployment.client_pod(), "/some/path", &[]).expect("an answer");
    let proxies = readers(mode).len().to_string();
    assert_eq!((answer.all("x-proxies"), answer.all("x-path")), (vec![proxies.as_str()], vec!["/some/path"]));
    run_proven(lab, &spec, deployment, logs.path());
}

pub fn invalid_script_is_rejected(lab: &LocalLab) {
    broken_script(lab, Mode::Sidecar);
    broken_script(lab, Mode::Ingress);
}

pub fn waypoint_rejects_invalid_script(lab: &LocalLab) {
    broken_script(lab, Mode::AmbientWaypoint);
}

/// Is reported immediately, with the line that Envoy's Lua names.
fn broken_script(lab: &LocalLab, mode: Mode) {
    let script = "function envoy_on_request(handle)\n  local x = = 1\nend\n";
    let why = refused(lab, &with_lua(mode, LuaScript::Inline(script.to_owned())));
    check_refused_by(&why, readers(mode), "Listener");
    for part in [":2: unexpected symbol near '='", "`istio.lua`"] {
        assert!(why.contains(part), "{mode}: {part} is not in: {why}");
    }
}

/// Asserts that one of the proxies rejected its configuration, whichever was first.
pub fn check_refused_by(why: &str, proxies: &[&str], kind: &str) {
    let refused = |proxy: &&str| why.starts_with(&format!("configure {proxy}: it refused its {kind}: "));
    assert!(proxies.iter().any(refused), "it is none of {proxies:?} that refused its {kind}: {why}");
}

/// A script that loads but fails on every request has no effect.
pub fn script_that_fails_on_requests_is_detected(lab: &LocalLab) {
    let script = "function envoy_on_request(handle)\n  local nothing = nil\n  nothing:call()\nend\n";
    let logs = LogFolder::create();
    let spec = with_lua(Mode::Sidecar, LuaScript::Inline(script.to_owned()));
    let trial = run(bring_up(lab, &spec, logs.path()), logs.path(), &[]);
    assert_eq!(trial.answered(), REQUESTS);
    let reasons = trial.observation.evidence.path.reasons.join("\n");
    assert!(!trial.observation.evidence.path.proven, "{reasons}");
    for proxy in readers(Mode::Sidecar) {
        let reason = format!("{proxy} failed to run the Lua script {REQUESTS} times");
        assert!(reasons.contains(&reason), "{reason} is not in: {reasons}");
    }
}

fn with_wasm(mode: Mode, module: &Path) -> DeploymentSpec {
    switched(mode, MeshSettings { wasm: Some(module.to_owned()), ..settings() })
}

pub fn every_proxy_runs_a_module(lab: &LocalLab) {
    module(lab, Mode::Sidecar);
    module(lab, Mode::Ingress);
}

pub fn a_waypoint_runs_a_module(lab: &LocalLab) {
    module(lab, Mode::AmbientWaypoint);
}

/// The module is in a directory that the proxies' user cannot enter, and not readable for that user.
fn module(lab: &LocalLab, mode: Mode) {
    let folder = LogFolder::create();
    let file = folder.path().join("adds header.wasm");
    fs::write(&file, wasm::adds_a_header()).expect("it is writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let spec = with_wasm(mode, &file);
    let deployment = bring_up(lab, &spec, folder.path());
    let target = Target::of_client(lab, &deployment);
    let answer = target.get(deployment.client_pod(), "/", &[]).expect("an answer");
    assert_eq!(answer.all(wasm::HEADER.0), vec![wasm::HEADER.1; readers(mode).len()], "{mode}: {answer:?}");
    run_proven(lab, &spec, deployment, folder.path());
}

pub fn file_that_is_not_a_module_is_rejected(lab: &LocalLab) {
    let folder = LogFolder::create();
    for (name, content, words) in [
        ("text.wasm", Some(&b"no module\n"[..]), "it is not a WebAssembly module"),
        ("empty.wasm", Some(&[]), "it is not a WebAssembly module"),
        ("absent.wasm", None, "No such file"),
    ] {
        let module = folder.path().join(name);
        if let Some(content) = content {
            fs::write(&module, content).expect("it is writable");
        }
        let why = refused(lab, &with_wasm(Mode::Sidecar, &module));
        assert!(why.starts_with(&format!("read {}: {words}", module.display())), "{why}");
    }
}

pub fn modules_that_proxies_cannot_run_are_rejected(lab: &LocalLab) {
    let whole = wasm::adds_a_header();
    broken_module(lab, Mode::Sidecar, &whole[..60], "Failed to load Wasm code");
    broken_module(lab, Mode::Sidecar, &wasm::imports_what_there_is_not(), MISSING);
    broken_module(lab, Mode::Ingress, &wasm::imports_what_there_is_not(), MISSING);
}

pub fn waypoint_rejects_module_that_it_cannot_run(lab: &LocalLab) {
    broken_module(lab, Mode::AmbientWaypoint, &wasm::imports_what_there_is_not(), MISSING);
}

const MISSING: &str = "env.there_is_no_such_function";

fn broken_module(lab: &LocalLab, mode: Mode, content: &[u8], words: &str) {
    let folder = LogFolder::create();
    let file = folder.path().join("broken.wasm");
    fs::write(&file, content).expect("it is writable");
    let why = refused(lab, &with_wasm(mode, &file));
    check_refused_by(&why, readers(mode), "TypedExtensionConfig");
    assert!(why.contains(words), "{mode}: {words} is not in: {why}");
}
