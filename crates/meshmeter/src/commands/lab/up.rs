//! `meshmeter lab up`: keeps a lab up to look around in, until Ctrl-C.

use super::opened::OpenedControlPlane;
use super::text;
use crate::cli::UpArgs;
use crate::commands::releases;
use crate::commands::run::{drivers, files::FilesBeside, progress};
use crate::failure::Failure;
use crate::output::{json, print};
use experiment::environment::EnvironmentError;
use experiment::environment::deploy::Argument;
use experiment::environment::deploy::{ComponentFailure, Deployment as _, Environment as _, HealthProbe};
use experiment::{Experiment, MeshKind, Override, Plan, PlannedTrial};
use lab::deployment::LabDeployment;
use lab::environment::{LocalLab, Programs};
use lab::istio::ControlPlane;
use lab::registry::{Access, ControlPlaneAccess, LabStatus, ProxyAccess};
use lab::{Entered, Lab};
use mesh::names::ISTIOD_DEBUG_PORT;
use std::io::IsTerminal as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Poll interval for the state of the lab and for a request to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Components are checked every this many polls, that is, once per second.
const POLLS_PER_SECOND: u32 = 10;

/// Directory for logs, inside the lab's.
const LOGS: &str = "logs";

pub fn run(args: &UpArgs) -> Result<ExitCode, Failure> {
    let trial = what_to_bring_up(args)?;
    if let Some(status) = releases::provide(releases::named([&trial.spec.components]), &args.releases)? {
        return Ok(status);
    }
    let mut ports = None;
    let reserve = || ports = (args.mesh == MeshKind::Istio).then(OpenedControlPlane::reserve_ports);
    match lab::enter_after(&format!("lab up --mesh {} --mode {}", args.mesh, args.mode), reserve)? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => match hold(args, &trial, &lab, ports.transpose()?) {
            // The step that was interrupted failed because of the interruption; its error would mislead.
            Err(_) if lab.stop_requested() => Err(Failure::broken("interrupted before the lab was up")),
            // Logs are removed with the lab, so no hint points to them.
            Err(failure) => Err(failure.without_hint_of(&lab.private_dir().join(LOGS).to_string_lossy())),
            result => result,
        },
    }
}

/// The first trial of a run with these options.
fn what_to_bring_up(args: &UpArgs) -> Result<PlannedTrial, Failure> {
    let (mesh, mode) = (args.mesh, args.mode);
    if !mesh.makes(mode) {
        let modes: Vec<&str> = mesh.modes().map(|mode| mode.name()).collect();
        return Err(Failure::usage(format!("`--mesh {mesh}` has no mode {mode}"))
            .with_hint(format!("it has {}", modes.join(", "))));
    }
    let sets = args.set.iter().map(Override::set);
    let overrides: Vec<Override> = sets.chain(releases::setting(args.istio.as_slice())).collect();
    let experiment =
        Experiment::parse_with(&args.experiment(), "lab up", &overrides, &FilesBeside::experiment("lab-up"))
            .map_err(|error| Failure::usage(error.render(std::io::stderr().is_terminal())))?;
    if experiment.modes != [mode] || experiment.mesh != mesh {
        let reason = "`--set` does not choose what a lab holds, which is one mode of one mesh";
        return Err(Failure::usage(reason).with_hint("choose with --mesh and --mode"));
    }
    if let Some(factor) = experiment.factors.first() {
        return Err(Failure::usage("`--set` requires several deployments, and a lab holds one")
            .with_hint(format!("give `{}` one value", factor.key)));
    }
    let nothing = || Failure::usage("`--set` leaves no load to bring a lab up for");
    Plan::new(&experiment, 0).trials.into_iter().next().ok_or_else(nothing)
}

/// `ports` of the machine are for the control plane.
fn hold(
    args: &UpArgs,
    trial: &PlannedTrial,
    lab: &Lab,
    ports: Option<[TcpListener; 2]>,
) -> Result<ExitCode, Failure> {
    let meshmeter =
        std::env::current_exe().map_err(|error| EnvironmentError::new("find this program's file", error))?;
    let programs = Programs { meshmeter: meshmeter.clone(), overrides: (&args.overrides).into() };
    let mut place = LocalLab::new(lab.clone(), programs)?;
    place.progress = progress::in_lines();
    let logs = lab.create_private_dir(LOGS, lab::ContainerUser::Lab)?;
    place.control_plane_logs = logs.join("control-plane");
    let mut deployment = place.bring_up(&trial.spec, &logs)?;
    let control_plane = place.running_control_plane();
    let opened = match (&control_plane, deployment.namespace(), ports) {
        (Some(control_plane), Some(namespace), Some(ports)) => {
            Some(OpenedControlPlane::open(lab, control_plane, namespace, ports)?)
        }
        _ => None,
    };
    let commands = Commands { program: called_as(&meshmeter), lab: lab.id().to_owned() };
    let in_pod = commands.in_pod(deployment.client_pod().name());
    let access = Access {
        url: deployment.url(),
        load: in_pod
            .with([meshmeter.to_string_lossy().into_owned()])
            .with(load(trial, &deployment, &logs)?)
            .0,
        components: place.host().versions,
        proxies: proxies(&commands, &deployment),
        control_plane: match (control_plane, &opened) {
            (Some(control_plane), Some(opened)) => {
                Some(control_plane_access(&commands, &control_plane, opened, &deployment, &lab.status()?))
            }
            _ => None,
        },
        logs,
    };
    lab.note_access(&access)?;
    let status = lab.status()?;
    print(&if args.json { json(&status) } else { text::lab_up(&status) })?;
    wait_until_the_end(lab, &mut deployment)
}

fn wait_until_the_end(lab: &Lab, deployment: &mut LabDeployment<'_>) -> Result<ExitCode, Failure> {
    let mut polls = 0_u32;
    while !lab.stop_requested() {
        thread::sleep(POLL_INTERVAL);
        polls = polls.wrapping_add(1);
        if !polls.is_multiple_of(POLLS_PER_SECOND) {
            continue;
        }
        if let Some(ComponentFailure { component, how }) = deployment.health(HealthProbe::Polled) {
            return Err(EnvironmentError::new(format!("keep {component} up"), format!("it {how}")).into());
        }
        // Other commands find the lab by this directory.
        if !lab.private_dir().exists() {
            let reason = format!("its folder {} was removed", lab.private_dir().display());
            return Err(EnvironmentError::new(format!("keep lab {} up", lab.id()), reason).into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How the user would invoke this program again.
fn called_as(program: &Path) -> PathBuf {
    match std::env::args_os().next().map(PathBuf::from) {
        // Found through PATH.
        Some(name) if name.components().count() == 1 => name,
        // As typed, the path may be relative to a directory that the user leaves.
        _ => program.to_owned(),
    }
}

/// A load as the mode needs it: modest, and over within seconds.
fn load(
    trial: &PlannedTrial,
    deployment: &LabDeployment<'_>,
    folder: &Path,
) -> Result<Vec<String>, EnvironmentError> {
    let mut words: Vec<String> = ["load", "--rate", "100", "--duration", "10s"].map(str::to_owned).to_vec();
    for argument in trial.spec.topology.target().map(drivers::protocol_arguments).unwrap_or_default() {
        words.push(match argument {
            Argument::Text(text) => text,
            Argument::File { prefix, name, content } => {
                let path = folder.join(name);
                std::fs::write(&path, content)
                    .map_err(|error| EnvironmentError::new(format!("write {}", path.display()), error))?;
                format!("{prefix}{}", path.display())
            }
        });
    }
    words.extend(deployment.client_arguments());
    words.push(deployment.url());
    Ok(words)
}

/// Builds commands that run in pods.
struct Commands {
    program: PathBuf,
    lab: String,
}

/// Arguments of a command.
struct Words(Vec<String>);

impl Commands {
    fn in_pod(&self, pod: &str) -> Words {
        let program = self.program.to_string_lossy().into_owned();
        let words = ["lab", "exec", "--lab", &self.lab, pod, "--"].map(str::to_owned);
        Words(std::iter::once(program).chain(words).collect())
    }
}

impl Words {
    fn with(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.0.extend(words);
        self
    }

    /// Adds `curl` with these arguments, silent except for errors.
    fn curl(self, arguments: impl IntoIterator<Item = String>) -> Vec<String> {
        self.with(["curl", "-sS"].map(str::to_owned)).with(arguments).0
    }
}

fn proxies(commands: &Commands, deployment: &LabDeployment<'_>) -> Vec<ProxyAccess> {
    let proxy = |(name, pod, admin): (&str, &str, &mesh::admin::Admin)| ProxyAccess {
        name: name.to_owned(),
        pod: pod.to_owned(),
        config_dump: commands.in_pod(pod).curl(admin.curl_arguments("/config_dump?include_eds")),
    };
    deployment.admin_interfaces().map(proxy).collect()
}

fn control_plane_access(
    commands: &Commands,
    control_plane: &ControlPlane,
    opened: &OpenedControlPlane,
    deployment: &LabDeployment<'_>,
    lab: &LabStatus,
) -> ControlPlaneAccess {
    let name = control_plane.pod().name();
    let pod = lab.pods.iter().find(|pod| pod.name == name);
    let debug = format!("http://localhost:{ISTIOD_DEBUG_PORT}/debug/syncz");
    ControlPlaneAccess {
        kubeconfig: opened.kubeconfig.clone(),
        api: format!("https://{}", opened.api.address()),
        discovery: opened.discovery.address().to_string(),
        namespace: deployment.namespace().unwrap_or_default().to_owned(),
        proxy_status: commands.in_pod(name).curl([debug]),
        enter: pod.map(|pod| pod.enter.clone()).unwrap_or_default(),
    }
}
