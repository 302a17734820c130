//! `meshmeter lab up`: a lab to look around in, until Ctrl-C.

use super::{json, print, text};
use crate::cli::UpArgs;
use crate::failure::Failure;
use experiment::environment::{Arrangement as _, ArrangementSpec, EnvironmentError};
use lab::arrangement::{LocalLab, Programs};
use lab::registry::LabStatus;
use lab::{Entered, Lab};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Time between two looks at whether all is well and nobody has asked us to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks after which components are asked about: a second.
const LOOKS_A_SECOND: u32 = 10;

/// What `--json` prints.
#[derive(Serialize)]
struct LabUp<'a> {
    /// What a client in the client's pod requests.
    url: &'a str,
    /// Folder of the components' logs.
    logs: &'a std::path::Path,
    /// How the control plane is reached, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    control_plane: Option<&'a ControlPlaneUp>,
    #[serde(flatten)]
    lab: &'a LabStatus,
}

/// How a control plane is reached from the machine.
#[derive(Serialize)]
struct ControlPlaneUp {
    /// The administrator's kubeconfig, for programs in the lab's network.
    kubeconfig: PathBuf,
    /// The beginning of a command that runs in that network, beside the control plane.
    enter: Vec<String>,
}

impl ControlPlaneUp {
    fn of(place: &LocalLab, lab: &LabStatus) -> Option<Self> {
        let running = place.running_control_plane()?;
        let pod = lab.pods.iter().find(|pod| pod.name == running.pod().name())?;
        Some(Self { kubeconfig: running.kubeconfig().to_owned(), enter: pod.enter.clone() })
    }

    fn render(&self, rendered: &mut String) {
        let (enter, kubeconfig) = (self.enter.join(" "), self.kubeconfig.display());
        let _ = writeln!(
            rendered,
            "objects: {enter} kubectl --kubeconfig={kubeconfig} get all --all-namespaces\n\
             istiod's debug pages: {enter} curl localhost:15014/debug/syncz\n\
             Envoy's admin pages, in a pod: curl localhost:15000/config_dump"
        );
    }
}

pub fn run(args: &UpArgs) -> Result<ExitCode, Failure> {
    match lab::enter(&format!("lab up --mesh {} --mode {}", args.mesh, args.mode))? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => hold(args, &lab),
    }
}

fn hold(args: &UpArgs, lab: &Lab) -> Result<ExitCode, Failure> {
    let meshmeter =
        std::env::current_exe().map_err(|error| EnvironmentError::new("find this program's file", error))?;
    let mut place = LocalLab::new(lab.clone(), Programs { meshmeter, overrides: (&args.overrides).into() })?;
    let logs = lab.create_private_dir("logs", lab::ContainerUser::Lab)?;
    place.keep_control_plane_logs_in(logs.join("control-plane"));
    let spec = ArrangementSpec::new(args.mesh, args.mode);
    let mut arrangement = place.bring_up(&spec, &logs)?;
    let status = lab.status()?;
    let control_plane = ControlPlaneUp::of(&place, &status);
    let url = arrangement.url();
    print(&if args.json {
        json(&LabUp { url: &url, logs: &logs, control_plane: control_plane.as_ref(), lab: &status })
    } else {
        render(&url, control_plane.as_ref(), &status)
    })?;
    let mut looks = 0_u32;
    while !lab.stop_requested() {
        thread::sleep(LOOK_EVERY);
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS_A_SECOND)
            && let Some((component, how)) = arrangement.failed_component()
        {
            return Err(EnvironmentError::new(format!("keep {component} up"), format!("it {how}")).into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn render(url: &str, control_plane: Option<&ControlPlaneUp>, lab: &LabStatus) -> String {
    let mut rendered = format!("lab {} is up\n", lab.id);
    text::pods(&mut rendered, &lab.pods);
    if let Some(control_plane) = control_plane {
        control_plane.render(&mut rendered);
    }
    let _ = writeln!(rendered, "from the client's pod, request {url}\nCtrl-C takes it down");
    rendered
}
