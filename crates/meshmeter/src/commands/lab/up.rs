//! `meshmeter lab up`: a lab to look around in, until Ctrl-C.

use super::{json, print, text};
use crate::cli::UpArgs;
use crate::failure::Failure;
use experiment::MeshKind;
use experiment::environment::{Arrangement as _, ArrangementSpec, EnvironmentError};
use lab::arrangement::{LocalLab, Programs};
use lab::registry::LabStatus;
use lab::{Entered, Lab};
use serde::Serialize;
use std::fmt::Write as _;
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
    #[serde(flatten)]
    lab: &'a LabStatus,
}

pub fn run(args: &UpArgs) -> Result<ExitCode, Failure> {
    match lab::enter(&format!("lab up --mode {}", args.mode))? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => hold(args, &lab),
    }
}

fn hold(args: &UpArgs, lab: &Lab) -> Result<ExitCode, Failure> {
    let meshmeter =
        std::env::current_exe().map_err(|error| EnvironmentError::new("find this program's file", error))?;
    let place = LocalLab::new(lab.clone(), Programs { meshmeter, overrides: (&args.overrides).into() })?;
    let logs = lab.create_private_dir("logs", lab::ContainerUser::Lab)?;
    let spec = ArrangementSpec::new(MeshKind::Envoy, args.mode);
    let mut arrangement = place.bring_up(&spec, &logs)?;
    let status = lab.status()?;
    let url = arrangement.url();
    print(&if args.json {
        json(&LabUp { url: &url, logs: &logs, lab: &status })
    } else {
        render(&url, &status)
    })?;
    let mut looks = 0_u32;
    while !lab.stop_requested() {
        thread::sleep(LOOK_EVERY);
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS_A_SECOND)
            && let Some((component, status)) = arrangement.failed_component()
        {
            return Err(EnvironmentError::new(
                format!("keep {component} up"),
                format!("it ended with {status}"),
            )
            .into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn render(url: &str, lab: &LabStatus) -> String {
    let mut rendered = format!("lab {} is up\n", lab.id);
    text::pods(&mut rendered, &lab.pods);
    let _ = writeln!(rendered, "from the client's pod, request {url}\nCtrl-C takes it down");
    rendered
}
