//! `meshmeter lab install`.

use super::component_text;
use crate::cli::InstallArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{json, print, tell};
use components::{
    Component, DefaultIstio, InstallNews, InstallObserver, InstallRequest, Installation, KUBERNETES_HUB,
    Lack, Overrides, Package, ReleaseName, ReleaseRequest, default_istio, find, install, installable,
    set_default_istio,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two lines while a component is built, if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Output of `--json` per package.
#[derive(Serialize)]
struct InstalledPackage<'a> {
    name: &'static str,
    version: &'a str,
    /// Path of the program, or of the first file.
    path: &'a Path,
    already_there: bool,
    /// Parts that the release could not provide.
    #[serde(skip_serializing_if = "<[Lack]>::is_empty")]
    lacks: &'a [Lack],
}

pub fn run(args: &InstallArgs) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new(interrupt::on_patient_signals()?);
    let (request, default) = request(args, &progress)?;
    let installations = install(&request, &mut progress);
    progress.clear();
    let installations = installations?;
    if let Some(default) = default {
        set_default_istio(default.as_ref())?;
    }
    print(&if args.json {
        let packages: Vec<_> = installations.iter().map(installed_package).collect();
        json(&packages)
    } else {
        component_text::installations(&installations)
    })?;
    if !request.releases.is_empty() {
        say_what_is_missing(&progress);
    }
    Ok(ExitCode::SUCCESS)
}

/// What to install, and the version of Istio to make the default, if that is to change.
fn request(
    args: &InstallArgs,
    progress: &Progress,
) -> Result<(InstallRequest, Option<Option<ReleaseName>>), Failure> {
    let hub = args.hub.hub()?;
    let charts = args.hub.charts(&hub)?;
    let kubernetes =
        args.registry_kubernetes.as_deref().map(|prefix| args.hub.other_hub(prefix)).transpose()?;
    let request = |releases: Vec<ReleaseRequest>, wanted: &dyn Fn(Component) -> bool| InstallRequest {
        releases,
        components: installable().filter(|component| wanted(*component)).collect(),
        kubernetes: kubernetes.clone(),
    };
    let from_kubernetes = |component: Component| {
        kubernetes.is_some() && matches!(component, Component::Etcd | Component::ApiServer)
    };
    if !args.istio.is_empty() {
        let release = |name: &ReleaseName| ReleaseRequest {
            name: name.clone(),
            hub: hub.clone(),
            charts: charts.clone(),
            with_ztunnel: !args.without_ztunnel,
        };
        let releases = args.istio.iter().map(release).collect();
        let wanted = |component| args.components.contains(&component) || from_kubernetes(component);
        return Ok((request(releases, &wanted), None));
    }
    if !args.components.is_empty() {
        return Ok((request(Vec::new(), &|component| args.components.contains(&component)), None));
    }
    let from_source = || Ok((request(Vec::new(), &|_| true), Some(None)));
    if args.from_source {
        return from_source();
    }
    match default_istio(&hub, &charts)? {
        DefaultIstio::Release(release) => {
            progress.line(&format!("istio: release {} of {hub}, as it was tested", release.name));
            let default = release.name.clone();
            let wanted = |component| !matches!(component, Component::Istiod | Component::PilotAgent);
            Ok((request(vec![*release], &wanted), Some(Some(default))))
        }
        DefaultIstio::NoneTested => {
            progress.line(
                "istio: built from the pinned source; no release was tested with this version yet, and `--istio VERSION` takes any",
            );
            from_source()
        }
        DefaultIstio::OutOfReach { release, reason } => {
            progress.line(&format!(
                "istio: built from the pinned source; the tested release {release} is not available: {reason}"
            ));
            from_source()
        }
    }
}

/// Reports what `mesh: istio` needs in addition to a release and does not find.
fn say_what_is_missing(progress: &Progress) {
    let pinned = Overrides::default().without_release();
    let missing = |components: &[Component]| -> Vec<&'static str> {
        let missing = components.iter().filter(|component| find(**component, &pinned).is_err());
        missing.map(|component| component.name()).collect()
    };
    let kubernetes = missing(&[Component::Etcd, Component::ApiServer]);
    if !kubernetes.is_empty() {
        progress.line(&format!(
            "`mesh: istio` needs {} too: `meshmeter lab install {}` builds them, and with `--registry-kubernetes {KUBERNETES_HUB}` \
             they come out of images",
            kubernetes.join(" and "),
            kubernetes.join(" "),
        ));
    }
    let ambient = missing(&[Component::AmbientIptables, Component::IstioFiles]);
    if !ambient.is_empty() {
        progress.line(&format!(
            "the ambient modes need {} too, which no image has: `meshmeter lab install {}` builds that with Go",
            ambient.join(" and "),
            ambient.join(" "),
        ));
    }
}

fn installed_package(installation: &Installation) -> InstalledPackage<'_> {
    let Installation { name, version, path, already_there, lacks } = installation;
    InstalledPackage { name, version, path, already_there: *already_there, lacks }
}

/// A live line on a terminal, occasional plain lines otherwise.
pub(super) struct Progress {
    stop: Arc<AtomicBool>,
    bar: Option<ProgressBar>,
    /// Elapsed time of the current component at which the next plain line is due.
    next_line: Duration,
    waiting_told: bool,
}

impl Progress {
    pub(super) fn new(stop: Arc<AtomicBool>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is constant");
            ProgressBar::new_spinner().with_style(style)
        });
        Self { stop, bar, next_line: LINE_INTERVAL, waiting_told: false }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Prints a line that stays.
    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tell!("{text}")),
            None => tell!("{text}"),
        }
    }

    fn working(&mut self, package: Package<'_>, elapsed: Duration, last_line: &str) {
        let text = format!("{package}: {}", component_text::seconds_text(elapsed));
        match &self.bar {
            Some(bar) if last_line.is_empty() => bar.set_message(text),
            Some(bar) => bar.set_message(format!("{text}  {last_line}")),
            None if elapsed >= self.next_line => {
                tell!("{text}");
                self.next_line += LINE_INTERVAL;
            }
            None => {}
        }
        if let Some(bar) = &self.bar {
            bar.tick();
        }
    }
}

impl InstallObserver for Progress {
    fn news(&mut self, news: InstallNews<'_>) {
        match news {
            InstallNews::Waiting if !self.waiting_told => {
                self.waiting_told = true;
                self.line("waiting for another installation to end");
            }
            InstallNews::Waiting => {}
            InstallNews::Present(package) => self.line(&format!("{package}: there")),
            InstallNews::Flawed { package, flaw } => {
                self.line(&format!("{package}: {flaw}; it is made again"));
            }
            InstallNews::Started { package, announcement } => {
                self.next_line = LINE_INTERVAL;
                self.line(&format!("{package}: {announcement}"));
            }
            InstallNews::Working { package, elapsed, last_line } => {
                self.working(package, elapsed, last_line);
            }
            InstallNews::Lacks { package, lack } => {
                self.line(&format!("{package}: {}", component_text::lack_text(lack)));
            }
            InstallNews::Finished { package, elapsed, size_bytes } => self.line(&format!(
                "{package}: installed after {}, {}",
                component_text::seconds_text(elapsed),
                component_text::size_text(size_bytes)
            )),
        }
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
