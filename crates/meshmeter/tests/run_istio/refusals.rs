//! Prerequisites of a run: each missing one is an error that names it and has a hint, with status 3, and
//! nothing is left behind.

use crate::run::{Ended, Scene};
use results::Host;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Longer than any of these runs takes.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(300);

const EXPERIMENT: &str =
    "modes: [none, sidecar]\nrepeats: 1\nload: {rate: 100, connections: 4, warmup: 100ms, duration: 500ms}\n";

/// A program that claims to be this version of Istio's, and can do nothing else.
const OLD: &str = r#"[ "$1" = version ] && exec echo 'version.BuildInfo{Version:"1.2.3", GitRevision:"8f2c"}'
echo this old program knows no such thing >&2
exit 7"#;

fn check(scene: &Scene, ended: &Ended, parts: &[&str]) {
    let text = ended.text();
    assert_eq!(ended.status, Some(3), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(!scene.path("m").exists(), "the runtime folder is left");
}

pub fn a_wrong_program_is_named() {
    let scene = Scene::new(EXPERIMENT);
    let other = scene.program("other", "echo nginx version: nginx/1.22");
    let no_program = scene.path("no-program");
    fs::write(&no_program, "").expect("it is writable");
    let nowhere = scene.path("nowhere");
    for (option, variable) in [
        ("--envoy", "MESHMETER_ENVOY"),
        ("--istiod", "MESHMETER_ISTIOD"),
        ("--pilot-agent", "MESHMETER_PILOT_AGENT"),
        ("--ztunnel", "MESHMETER_ZTUNNEL"),
        ("--ferretdb", "MESHMETER_FERRETDB"),
        ("--mongod", "MESHMETER_MONGOD"),
        ("--filter-services", "MESHMETER_FILTER_SERVICES"),
        ("--ratelimit", "MESHMETER_RATELIMIT"),
        ("--redis-server", "MESHMETER_REDIS_SERVER"),
    ] {
        for (path, why) in [
            (&other, "printed no version of"),
            (&no_program, "Permission denied"),
            (&nowhere, "there is no such file"),
        ] {
            let run = scene.start_with("out", scene.meshmeter().arg("run").arg(option).arg(path));
            let ended = run.end_within(COMMAND_TIMEOUT);
            let named = format!("use {} at {}", &option[2..], path.display());
            check(&scene, &ended, &[&named, why, "hint: ", variable]);
            assert!(!ended.folder.exists(), "a run that could not begin has a folder");
        }
    }
}

pub fn a_program_that_is_too_old_is_named() {
    let scene = Scene::new(EXPERIMENT);
    let old = scene.program("old", OLD);
    let run = scene.start_with("old-out", scene.meshmeter().arg("run").arg("--istiod").arg(old));
    check(
        &scene,
        &run.end_within(COMMAND_TIMEOUT),
        &["istiod", "exit status: 7", "this old program knows no such thing"],
    );
}

/// A database that starts but does not serve: its trials fail with its name and its last output.
pub fn a_database_that_does_not_come_up_is_named() {
    let scene = Scene::new(
        "mesh: envoy\nmodes: [none]\ntopology: booking\nrepeats: 1\nload: {rate: 100, duration: 500ms}\n",
    );
    let words = "the data directory is of another version";
    let text = format!("[ \"$1\" = --version ] && exec echo db version v7.0.5\necho {words} >&2\nexit 62");
    let database = scene.program("mongod", &text);
    let run = scene.start_with("out", scene.meshmeter().arg("run").arg("--mongod").arg(database));
    let ended = run.end_within(COMMAND_TIMEOUT);
    assert_eq!(ended.status, Some(3), "{}", ended.text());
    let trials = ended.trials();
    let reason = &trials[0].verdict.reasons[0];
    assert!(reason.starts_with("failed: ") && reason.contains("db has died"), "{reason}");
    assert!(reason.contains(words) || ended.text().contains(words), "{}", ended.text());
    let host = fs::read(ended.folder.join("host.json")).expect("a run that began has one");
    let host: Host = serde_json::from_slice(&host).expect("facts of the machine");
    let database = host.versions.iter().find(|version| version.name == "mongod").expect("it is listed");
    assert_eq!((database.version.as_str(), database.named_by.as_deref()), ("7.0.5", Some("option")));
}

pub fn a_program_that_hangs_is_named() {
    let scene = Scene::new(EXPERIMENT);
    let hanging = scene.program("hanging", "exec sleep 600");
    let run = scene.start_with("out", scene.meshmeter().arg("run").arg("--pilot-agent").arg(hanging));
    check(
        &scene,
        &run.end_within(COMMAND_TIMEOUT),
        &["use pilot-agent at", "it hangs", "hint: ", "MESHMETER_PILOT_AGENT"],
    );
}

pub fn missing_prerequisites_are_named() {
    let scene = Scene::new(EXPERIMENT);
    let without = |name: &str, variable: &str, value: &str, parts: &[&str]| {
        let run = scene.start_with(name, scene.meshmeter().env(variable, value).arg("run"));
        check(&scene, &run.end_within(COMMAND_TIMEOUT), parts);
    };
    without("b", "MESHMETER_COMPONENTS", "/nowhere", &["/nowhere", "hint: ", "lab install"]);
    without("c", "MESHMETER_COMPONENTS", "/dev/null", &["/dev/null", "hint: ", "lab install"]);
    without("experiment.yaml/d", "LANG", "C", &["experiment.yaml/d", "Not a directory", "hint: "]);
    let run = scene.start_with("e", &mut where_mounted(&scene, "/usr/sbin", "4k", "PATH=/usr/bin:/bin"));
    check(&scene, &run.end_within(COMMAND_TIMEOUT), &["iptables", "hint: "]);
}

/// The command, with an empty disk of `bytes` bytes mounted on this existing directory.
fn where_mounted(scene: &Scene, folder: &str, bytes: &str, variable: &str) -> Command {
    let mut command = scene.meshmeter();
    let program = command.get_program().to_owned();
    let mount = format!("mount -t tmpfs -o size={bytes} none {folder} && {variable} exec \"$0\" \"$@\"");
    let mut wrapped = Command::new("unshare");
    wrapped.args(["--mount", "sh", "-c", &mount]).arg(program).current_dir(scene.path(""));
    for (name, value) in command.env("LANG", "C").get_envs() {
        wrapped.env(name, value.expect("only set"));
    }
    wrapped.arg("run");
    wrapped
}

pub fn a_full_disk_is_named() {
    let scene = Scene::new(EXPERIMENT);
    fs::create_dir(scene.path("full")).expect("it is writable");
    for bytes in ["4k", "64k"] {
        let run = scene.start_with("full/out", &mut where_mounted(&scene, "full", bytes, ""));
        check(&scene, &run.end_within(COMMAND_TIMEOUT), &["No space left on device", "full/out"]);
    }
    let variable = "MESHMETER_RUNTIME_DIR=$PWD/full/m";
    let run = scene.start_with("out", &mut where_mounted(&scene, "full", "16k", variable));
    check(&scene, &run.end_within(COMMAND_TIMEOUT), &["No space left on device"]);
}

pub fn missing_rights_are_named() {
    let scene = Scene::new(EXPERIMENT);
    for capability in ["net_admin", "sys_admin"] {
        let command = scene.meshmeter();
        let program = command.get_program().to_owned();
        let mut wrapped = Command::new("setpriv");
        let dropped = format!("-{capability}");
        wrapped.args(["--bounding-set", &dropped, "--inh-caps", &dropped]).arg(program);
        for (name, value) in command.get_envs() {
            wrapped.env(name, value.expect("only set"));
        }
        wrapped.current_dir(scene.path(""));
        let run = scene.start_with("out", wrapped.arg("run"));
        check(&scene, &run.end_within(COMMAND_TIMEOUT), &["hint: "]);
    }
}
