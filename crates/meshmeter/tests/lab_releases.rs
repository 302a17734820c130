//! Releases of Istio, from a registry to a run. Images have the layout of Istio's, are built from the
//! installed components, and are served by a real registry. The command installs, runs, lists and removes
//! them.

mod command;
mod release_images;

use command::{NOBODY, meshmeter, said, stderr, stdout};
use components::Component;
use release_images::{image, installed, push_release};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use test_support::{Behaviour, Compression, HostileRegistry, LayerBuilder, Registry, RegistryOptions};

const VERSION: &str = "1.99.0-test";

/// Short, and valid even on a busy machine.
const EXPERIMENT: &str = "\
name: release
mesh: istio
modes: [sidecar]
load: {rate: [50], warmup: 200ms, duration: 1s, connections: 2}
repeats: 1
";

/// Verdict reasons that a busy machine may cause.
const OF_THE_MACHINE: [&str; 6] =
    ["other-processes", "steal", "schedule-lag", "generator", "saturated", "throughput"];

/// An own components directory, and a directory for everything else.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder =
            tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
        fs::create_dir(folder.path().join("components")).unwrap();
        fs::create_dir(folder.path().join("docker")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn meshmeter(&self, arguments: &[&str]) -> Command {
        let mut command = meshmeter();
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("MESHMETER_COMPONENTS", self.path("components"))
            .env("MESHMETER_RUNTIME_DIR", self.path("runtime"))
            .env("DOCKER_CONFIG", self.path("docker"))
            .env_remove("MESHMETER_REGISTRY");
        for component in ["ENVOY", "ISTIOD", "PILOT_AGENT", "ZTUNNEL"] {
            command.env_remove(format!("MESHMETER_{component}"));
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.meshmeter(arguments).output().expect("the binary runs")
    }

    /// Names in the components directory.
    fn components(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("components")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Links the installed package of a component into the components directory.
    fn link(&self, component: Component) {
        let program = installed(component);
        let package = program.parent().unwrap();
        symlink(package, self.path("components").join(package.file_name().unwrap())).unwrap();
    }

    /// Stores the credentials that a registry requires.
    fn log_in(&self, registry: &Registry) {
        fs::copy(registry.docker_config(), self.path("docker/config.json")).unwrap();
    }
}

/// Pushes a release of scripts that print a version, for tests that never run them.
fn push_scripts(registry: &Registry, version: &str) {
    let istio =
        format!("#!/bin/sh\necho 'version.BuildInfo{{Version:\"{version}\", GitRevision:\"abc\"}}'\n");
    let envoy = "#!/bin/sh\necho envoy version: abc/1.99.0-dev/Clean/RELEASE/BoringSSL\n";
    let program = |name: &str, text: &str| {
        LayerBuilder::new(Compression::Gzip).file(&format!("usr/local/bin/{name}"), text.as_bytes())
    };
    registry.push("istio/pilot", version, &image([program("pilot-discovery", &istio)]));
    let template =
        LayerBuilder::new(Compression::None).file("var/lib/istio/envoy/envoy_bootstrap_tmpl.json", b"{}");
    let proxy = [program("envoy", envoy), program("pilot-agent", &istio), template];
    registry.push("istio/proxyv2", version, &image(proxy));
    registry.push("istio/ztunnel", version, &image([program("ztunnel", &istio)]));
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn read_json(path: &Path) -> Value {
    json(&fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

#[test]
fn release_from_private_registry_is_installed_and_runs() {
    let registry = Registry::start(RegistryOptions { token: true, tls: true, ..RegistryOptions::default() });
    push_release(&registry, VERSION, &installed(Component::Envoy), None, 0);
    let scene = Scene::new();
    scene.link(Component::Etcd);
    scene.link(Component::ApiServer);
    let hub = format!("{}/istio", registry.address());
    let roots = registry.ca().unwrap();
    let install = [
        "lab",
        "install",
        "--istio",
        VERSION,
        "--registry",
        &hub,
        "--registry-cacert",
        roots.to_str().unwrap(),
    ];

    let refused = scene.run(&install);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("refuses access") && stderr(&refused).contains("docker login"));
    assert!(!scene.components().iter().any(|name| name.starts_with("istio-") || name.starts_with(".inst")));

    scene.log_in(&registry);
    let output = scene.run(&install);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("without ztunnel (") && said.contains("the ambient modes need"), "{said}");
    assert!(!said.contains("the pinned definitions"), "{said}");
    let there = scene.run(&install);
    assert!(stderr(&there).contains(&format!("istio {VERSION}: there")), "{}", stderr(&there));

    fs::write(scene.path("experiment.yaml"), EXPERIMENT).unwrap();
    let run = scene.run(&[
        "run",
        "experiment.yaml",
        "--istio",
        VERSION,
        "--offline",
        "--noise-floor",
        "100ms",
        "--out",
        "run",
    ]);
    let trials = fs::read_to_string(scene.path("run/trials.jsonl"));
    let trials = trials.unwrap_or_else(|error| panic!("{error}: {}", stderr(&run)));
    let trial = json(trials.lines().next().unwrap());
    // Status 1 if other programs disturbed the only trial.
    assert!(matches!(run.status.code(), Some(0 | 1)), "{}\n{}", stdout(&run), stderr(&run));
    for reason in trial["verdict"]["reasons"].as_array().unwrap() {
        let reason = reason.as_str().unwrap();
        assert!(OF_THE_MACHINE.iter().any(|of_machine| reason.starts_with(of_machine)), "{reason}");
    }
    assert_eq!(trial["path"]["proven"], true, "{}", trial["path"]);
    let versions = read_json(&scene.path("run/host.json"))["versions"].clone();
    let version = |name: &str| {
        let found = versions.as_array().unwrap().iter().find(|version| version["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("{name} is recorded: {versions}"))
    };
    for (name, image) in [
        ("istiod", "pilot"),
        ("pilot-agent", "proxyv2"),
        ("envoy", "proxyv2"),
        ("istio-files", "charts/base"),
    ] {
        let recorded = version(name);
        assert_eq!(recorded["image"]["reference"], format!("{hub}/{image}:{VERSION}"), "{recorded}");
        assert!(recorded["image"]["manifest_digest"].as_str().unwrap().starts_with("sha256:"));
        assert!(recorded.get("in_place_of").is_none());
    }
    assert!(version("etcd").get("image").is_none());
}

#[test]
fn releases_are_fetched_and_compared_in_one_run() {
    let registry = Registry::start(RegistryOptions::default());
    let scene = Scene::new();
    push_release(&registry, "1.98.0", &installed(Component::Envoy), None, 0);
    push_release(&registry, "1.99.0", &installed(Component::Envoy), None, 400);
    scene.link(Component::Etcd);
    scene.link(Component::ApiServer);
    fs::write(scene.path("experiment.yaml"), EXPERIMENT.replace("repeats: 1", "repeats: 2")).unwrap();
    let hub = format!("{}/istio", registry.address());
    let compared = "components.istio=[1.98.0, 1.99.0]";
    let arguments = ["run", "experiment.yaml", "--set", compared, "--registry", &hub, "--retakes", "0"];
    let run = scene.run(&[&arguments[..], &["--noise-floor", "100ms", "--out", "run"]].concat());
    let said = stderr(&run);
    assert!(matches!(run.status.code(), Some(0 | 1)), "{}\n{said}", stdout(&run));
    for version in ["1.98.0", "1.99.0"] {
        assert!(said.contains(&format!("istio {version}")), "what is fetched is said before: {said}");
    }

    let trials = fs::read_to_string(scene.path("run/trials.jsonl")).unwrap();
    let trials: Vec<Value> = trials.lines().map(json).collect();
    assert_eq!(trials.len(), 4);
    let mut order = Vec::new();
    for trial in &trials {
        assert_eq!(trial["path"]["proven"], true, "{}", trial["path"]);
        let version = trial["factors"]["components.istio"].as_str().unwrap();
        order.push(version);
        let programs = trial["versions"].as_array().unwrap();
        for (name, image) in [("istiod", "pilot"), ("envoy", "proxyv2")] {
            let program = programs.iter().find(|program| program["name"] == name);
            let program = program.unwrap_or_else(|| panic!("{name}: {programs:?}"));
            assert_eq!(program["image"]["reference"], format!("{hub}/{image}:{version}"));
        }
        let components = trial["components"].as_array().unwrap();
        let held = components.iter().filter(|component| component["role"] == "proxy").map(|proxy| {
            proxy["holdings"]["configuration"]["size_bytes"]
                .as_u64()
                .expect("each proxy tells its configuration")
        });
        let held: Vec<u64> = held.collect();
        let is_larger = version == "1.99.0";
        assert!(held.iter().all(|size_bytes| (*size_bytes > 80_000) == is_larger), "{version}: {held:?}");
    }
    order[..2].sort_unstable();
    order[2..].sort_unstable();
    assert_eq!(order, ["1.98.0", "1.99.0", "1.98.0", "1.99.0"], "each repeat has both");
    let summary = read_json(&scene.path("run/summary.json"));
    let differences = summary["factor_differences"].as_array().unwrap();
    let of_versions = |difference: &Value| (difference["from"].clone(), difference["to"].clone());
    assert!(
        differences.iter().any(|difference| of_versions(difference) == ("1.98.0".into(), "1.99.0".into())),
        "{differences:?}"
    );
}

#[test]
fn releases_are_installed_side_by_side_listed_and_removed() {
    let registry = Registry::start(RegistryOptions::default());
    for version in ["1.29.4", "1.30.1"] {
        push_scripts(&registry, version);
    }
    let scene = Scene::new();
    let hub = format!("{}/istio", registry.address());
    let install = |version: &str| {
        let mut command = scene.meshmeter(&["lab", "install", "--istio", version, "--json"]);
        command.env("MESHMETER_REGISTRY", &hub);
        command.output().expect("the binary runs")
    };
    // Two processes install the same release at once: one waits for the other.
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| install("1.29.4"));
        (install("1.29.4"), other.join().unwrap())
    });
    let already = |output: &Output| json(&stdout(output))[0]["already_there"].as_bool().unwrap();
    assert!(already(&first) != already(&second), "{}\n{}", stderr(&first), stderr(&second));
    let third = install("1.30.1");
    // Without a chart, the pinned definitions are used.
    assert_eq!(json(&stdout(&third))[0]["lacks"][0]["part"], "istio-files", "{}", stderr(&third));
    assert_eq!(scene.components(), [".lock", "istio-1.29.4", "istio-1.30.1"]);

    let listed = json(&stdout(&scene.run(&["lab", "status", "--components", "--json"])));
    let releases: Vec<&Value> =
        listed.as_array().unwrap().iter().filter(|component| component["name"] == "istio").collect();
    assert_eq!(releases.len(), 2, "{listed}");
    for release in releases {
        assert_eq!(release["state"], "installed");
        assert_eq!(release["images"].as_array().unwrap().len(), 3, "{release}");
        assert!(release["images"][0]["index_digest"].as_str().unwrap().starts_with("sha256:"));
    }
    let text = stdout(&scene.run(&["lab", "status", "--components"]));
    assert!(text.contains(&format!("{hub}/pilot:1.30.1  sha256:")), "{text}");

    let removed = scene.run(&["lab", "remove", "1.29.4"]);
    assert!(removed.status.success() && stdout(&removed).starts_with("istio 1.29.4 removed: "));
    assert_eq!(scene.components(), [".lock", "istio-1.30.1"]);
    let absent = scene.run(&["lab", "remove", "1.29.4"]);
    assert_eq!(absent.status.code(), Some(3));
    assert!(stderr(&absent).contains("hint: installed: 1.30.1"), "{}", stderr(&absent));
}

#[test]
fn etcd_and_api_server_are_extracted_from_images() {
    let registry = Registry::start(RegistryOptions::default());
    push_scripts(&registry, "1.30.1");
    for (component, tag) in [(Component::Etcd, "3.6.8-0"), (Component::ApiServer, "v1.36.3")] {
        let name = component.name();
        let program = LayerBuilder::new(Compression::Gzip)
            .file_from(&format!("usr/local/bin/{name}"), &installed(component));
        registry.push(&format!("kubernetes/{name}"), tag, &image([program]));
    }
    let scene = Scene::new();
    let hub = |path: &str| format!("{}/{path}", registry.address());
    let (istio, kubernetes) = (hub("istio"), hub("kubernetes"));
    let install = ["lab", "install", "--istio", "1.30.1", "--registry", &istio];
    let output = scene.run(&[&install[..], &["--registry-kubernetes", &kubernetes]].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("building"), "nothing is compiled: {said}");
    assert_eq!(scene.components(), [".lock", "etcd-3.6.8", "istio-1.30.1", "kube-apiserver-1.36.3"]);
    let listed = json(&stdout(&scene.run(&["lab", "status", "--components", "--json"])));
    for (name, image) in [("etcd", "etcd:3.6.8-0"), ("kube-apiserver", "kube-apiserver:v1.36.3")] {
        let component =
            listed.as_array().unwrap().iter().find(|component| component["name"] == name).unwrap();
        assert_eq!(component["state"], "installed", "{component}");
        assert_eq!(component["images"][0]["reference"], format!("{kubernetes}/{image}"), "{component}");
    }
}

#[test]
fn ctrl_c_ends_download_and_leaves_nothing() {
    let content = (0..4_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8);
    let content: Vec<u8> = content.collect();
    let artifact =
        image([LayerBuilder::new(Compression::None).file("usr/local/bin/pilot-discovery", &content)]);
    let layer = artifact.blobs.iter().max_by_key(|blob| blob.bytes.len()).unwrap().digest.clone();
    let registry = HostileRegistry::start(artifact).with(&layer, Behaviour::StallAfter(1_000_000));
    let scene = Scene::new();
    let hub = format!("{}/istio", registry.address());
    let mut command = scene.meshmeter(&["lab", "install", "--istio", "1.30.1", "--registry", &hub]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = said(&mut child);
    while !registry.requests().iter().any(|request| request.path().ends_with(&layer)) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let end: Vec<String> = lines.by_ref().filter(|line| line.starts_with("error: ")).collect();
    assert!(matches!(&end[..], [line] if line.contains("interrupted")), "{end:?}");
    assert_eq!(scene.components(), [".lock"]);
}

#[test]
fn unavailable_release_is_a_one_line_error_and_leaves_nothing() {
    let registry = Registry::start(RegistryOptions::default());
    push_scripts(&registry, "1.29.4");
    // Another image is published as 1.30.4.
    push_scripts(&registry, "1.30.4");
    let scene = Scene::new();
    fs::write(scene.path("experiment.yaml"), EXPERIMENT).unwrap();
    let hub = format!("{}/istio", registry.address());
    let down = format!("{NOBODY}/istio");
    let run =
        |arguments: &[&str]| scene.run(&[&["run", "experiment.yaml", "--out", "run"], arguments].concat());
    let cases = [
        (
            scene.run(&["lab", "install", "--istio", "1.29.4", "--registry", &down]),
            "cannot be reached",
            "--from-source",
        ),
        (
            scene.run(&["lab", "install", "--istio", "1.31.0", "--registry", &hub]),
            "not found",
            "releases lists",
        ),
        (
            scene.run(&["lab", "install", "--istio", "1.30.4", "--registry", &hub]),
            "is pinned: it is another image",
            "a tag of its own",
        ),
        (run(&["--istio", "1.29.4", "--registry", &down]), "cannot be reached", "--from-source"),
        (run(&["--istio", "1.29.4", "--offline"]), "--offline forbids", "lab install --istio 1.29.4"),
        (
            scene.run(&["lab", "up", "--mesh", "istio", "--istio", "1.29.4", "--offline"]),
            "--offline forbids",
            "lab install --istio 1.29.4",
        ),
        (
            scene.run(&["fleet", "--proxies", "2", "--istio", "1.29.4", "--offline"]),
            "--offline forbids",
            "lab install --istio 1.29.4",
        ),
    ];
    for (output, error, hint) in cases {
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        let line = |prefix: &str| {
            let mut lines = said.lines().filter(|line| line.starts_with(prefix));
            (lines.next().unwrap_or_default().to_owned(), lines.next().is_none())
        };
        let ((error_line, one_error), (hint_line, _)) = (line("error: "), line("hint: "));
        assert!(error_line.contains(error) && one_error, "{said}");
        assert!(hint_line.contains(hint), "{said}");
    }
    assert!(scene.components().iter().all(|name| name == ".lock"), "{:?}", scene.components());
    assert!(!scene.path("run").exists());
}
