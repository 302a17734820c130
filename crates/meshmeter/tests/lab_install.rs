//! `meshmeter lab install` and `lab status` with a fake Go: output, Ctrl-C, and custom programs.

mod command;

use command::{meshmeter, said, stderr, stdout};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Builds a script that prints etcd's version, but only once `go-on` exists.
const GO: &str = r##"[ "$1" = version ] && exec echo go version go1.26.8 linux/amd64
if [ ! -e "${0%/*}/go-on" ]; then
  echo $$ > "${0%/*}/pid.new" && mv "${0%/*}/pid.new" "${0%/*}/pid"
  sleep 600
fi
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho etcd Version: 3.6.8\n' > "$2"
chmod +x "$2""##;

struct Scene {
    tools: tempfile::TempDir,
    components: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { tools: tempfile::tempdir().unwrap(), components: tempfile::tempdir().unwrap() };
        scene.program("go", GO);
        scene
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        test_support::program(self.tools.path(), name, script).into()
    }

    fn lab(&self, arguments: &[&str]) -> Command {
        let mut command = meshmeter();
        let path = format!("{}:/usr/bin:/bin", self.tools.path().display());
        command
            .arg("lab")
            .args(arguments)
            .env("PATH", path)
            .env("MESHMETER_COMPONENTS", self.components.path());
        for component in [
            "ENVOY",
            "ISTIOD",
            "PILOT_AGENT",
            "ZTUNNEL",
            "FERRETDB",
            "MONGOD",
            "FILTER_SERVICES",
            "RATELIMIT",
            "REDIS_SERVER",
        ] {
            command.env_remove(format!("MESHMETER_{component}"));
        }
        command
    }

    /// Asserts that nothing else is in the components directory.
    fn check_only(&self, expected: &[&str]) {
        let entries = fs::read_dir(self.components.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, expected);
    }

    fn go_on(&self) {
        fs::write(self.tools.path().join("go-on"), "").unwrap();
    }
}

fn await_pid(file: &Path) -> Pid {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(text) = fs::read_to_string(file) {
            return Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        }
        assert!(Instant::now() < deadline, "the build starts");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_ends_build_and_next_installation_completes_it() {
    let scene = Scene::new();
    let mut child = scene.lab(&["install", "etcd"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = said(&mut child);
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("etcd: building 3.6.8 (Go module go.etcd.io/etcd/server/v3 v3.6.8)")
    );
    let go = await_pid(&scene.tools.path().join("pid"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let end: Vec<String> = lines.collect();
    assert_eq!(end[0], "error: build etcd with go1.26.8: it was interrupted");
    assert!(end[1].contains("`meshmeter lab install` goes on from there"), "{end:?}");
    assert!(test_kill_process(go).is_err(), "nothing of the build runs on");

    scene.check_only(&[".lock"]);

    scene.go_on();
    let output = scene.lab(&["install", "etcd", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let installed: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(installed[0]["name"], "etcd");
    assert_eq!(installed[0]["already_there"], false);
    scene.check_only(&[".lock", "etcd-3.6.8"]);
}

#[test]
fn second_ctrl_c_leaves_nothing() {
    let scene = Scene::new();
    for signals in [[Signal::INT, Signal::INT], [Signal::TERM, Signal::INT], [Signal::HUP, Signal::HUP]] {
        let mut child = scene.lab(&["install", "etcd"]).stderr(Stdio::piped()).spawn().unwrap();
        let pid_file = scene.tools.path().join("pid");
        let go = await_pid(&pid_file);
        for signal in signals {
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        let said: Vec<String> = said(&mut child).collect();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{said:?}");
        assert!(test_kill_process(go).is_err(), "nothing of the build runs on");
        scene.check_only(&[".lock"]);
        fs::remove_file(pid_file).unwrap();
    }
}

#[test]
fn changed_program_is_reported_by_status_and_rebuilt() {
    let scene = Scene::new();
    scene.go_on();
    assert!(scene.lab(&["install", "etcd"]).status().unwrap().success());
    let etcd = || {
        let output = scene.lab(&["status", "--components", "--json"]).output().unwrap();
        let components: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        components.as_array().unwrap().iter().find(|component| component["name"] == "etcd").unwrap().clone()
    };
    let whole = etcd();
    assert_eq!((&whole["state"], &whole["version"]), (&"installed".into(), &"3.6.8".into()));
    let path = whole["path"].as_str().unwrap();
    assert_eq!(whole["size_bytes"], fs::metadata(path).unwrap().len());
    fs::write(path, "#!/bin/sh\necho mine\n").unwrap();
    let changed = etcd();
    assert_eq!(changed["state"], "flawed");
    assert_eq!(changed["trouble"], format!("{path} has changed since it was installed"));
    let output = scene.lab(&["install", "etcd"]).output().unwrap();
    assert!(stderr(&output).contains("has changed since it was installed; it is made again"));
    assert_eq!(etcd()["sha256"], whole["sha256"]);
}

#[test]
fn custom_programs_are_queried_for_their_version() {
    let scene = Scene::new();
    let istiod =
        scene.program("my-istiod", r#"echo 'version.BuildInfo{Version:"1.29.1", GitRevision:"8f2c"}'"#);
    scene.program("ztunnel", r#"echo 'version.BuildInfo{Version:"unknown", GitRevision:"15a147d"}'"#);
    let output = scene
        .lab(&["status", "--components", "--istiod", istiod.to_str().unwrap()])
        .env("MESHMETER_ENVOY", "/nowhere/envoy")
        .output()
        .unwrap();
    let text = stdout(&output);
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(line("istiod").contains("1.29.1") && line("istiod").contains("your own"), "{text}");
    assert!(line("ztunnel").contains("15a147d") && line("ztunnel").ends_with("your own, in PATH"), "{text}");
    assert!(
        line("envoy").contains("unusable") && text.contains("/nowhere/envoy: there is no such file"),
        "{text}"
    );
    assert!(line("pilot-agent").contains("absent"), "{text}");
}

#[test]
fn missing_go_is_reported_with_required_version() {
    let scene = Scene::new();
    fs::remove_file(scene.tools.path().join("go")).unwrap();
    let output = scene.lab(&["install", "etcd"]).env("PATH", scene.tools.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(said.contains("error: use go, which must be of version 1.26.0 or later: No such file"), "{said}");
    assert!(said.contains("hint: install Go 1.26.0 or later (https://go.dev/dl"), "{said}");
}

#[test]
fn registries_are_told_the_build() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let registry = format!("{}/istio", listener.local_addr().unwrap());
    let scene = Scene::new();
    let mut child =
        command::start(&mut scene.lab(&["install", "--istio", "1.30.1", "--registry", &registry]));
    // TLS is tried first: it begins with another byte than a request.
    let request = listener
        .incoming()
        .find_map(|client| {
            let mut client = BufReader::new(client.unwrap());
            let first = client.fill_buf().unwrap_or_default().first().copied();
            let lines = client.lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            (first == Some(b'G') || first == Some(b'H')).then(|| lines.collect::<Vec<_>>())
        })
        .unwrap();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let version = stdout(&meshmeter().arg("--version").output().unwrap());
    let build = version.split_once('(').map_or("", |(_, build)| build);
    // Sources without git have no commit.
    let commit =
        if build.starts_with("commit unknown") { "" } else { build.split([' ', ')']).next().unwrap_or("") };
    let agent =
        request.iter().find_map(|line| line.to_lowercase().strip_prefix("user-agent: ").map(str::to_owned));
    let agent = agent.unwrap_or_default();
    assert!(agent.starts_with("meshmeter/0.") && agent.contains(commit), "{agent:?}, {version}: {request:?}");
}
