//! Sampling in the trial's own window: what each component, the kernel, everything else and the watching itself used.
//!
//! Counters are read twice, when the window opens and when it closes, and never in between: nothing polls while the
//! generator measures. Read [`Window`] first; [`component`] reads one component, [`container`] its processes, [`machine`] the rest of the machine,
//! [`observer`] this process, and [`process`] holds the parsers that they share.
//!
//! What this leaves out: time series within the window, and anything that needs tracing or performance counters.

pub mod component;
pub mod container;
pub mod machine;
pub mod observer;
pub mod process;

use self::component::{ComponentReading, Watched};
use self::machine::MachineReading;
use self::observer::ObserverReading;
use experiment::environment::EnvironmentError;
use experiment::schema::{ComponentUsage, MachineUsage, Role};
use std::path::{Path, PathBuf};

/// The name under which the kernel's share is listed.
pub const KERNEL: &str = "kernel";

/// Where the whole machine is seen, and which part of it is the lab.
#[derive(Clone, Debug)]
pub struct Vantage {
    /// A mount of proc that shows every process of the machine.
    pub outer_proc: PathBuf,
    /// The lab's topmost process, as numbered there: it and all that descend from it are the lab.
    pub lab_root: i32,
    /// Clock ticks a second, the unit of `/proc`.
    pub ticks_per_second: u64,
}

impl Vantage {
    /// The machine as this mount of proc shows it; the lab is this process and what it started.
    ///
    /// # Errors
    /// Where `outer_proc` does not show this process.
    pub fn new(outer_proc: &Path) -> Result<Self, EnvironmentError> {
        // `self` is a link to our number in the PID namespace that the mount belongs to.
        let own = std::fs::read_link(outer_proc.join("self")).map_err(|error| {
            EnvironmentError::new(format!("find this process in {}", outer_proc.display()), error)
        })?;
        let lab_root = own.to_str().and_then(|number| number.parse().ok()).ok_or_else(|| {
            EnvironmentError::new(
                format!("find this process in {}", outer_proc.display()),
                format!("its number is shown as {}", own.display()),
            )
        })?;
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        Ok(Self { outer_proc: outer_proc.to_path_buf(), lab_root, ticks_per_second })
    }
}

/// The measured window: readings of everything at its opening.
#[derive(Debug)]
pub struct Window {
    vantage: Vantage,
    observer: ObserverReading,
    components: Vec<(Watched, ComponentReading)>,
    machine: MachineReading,
}

/// What was used in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowUsage {
    /// Every component, then the kernel's share and the observer.
    pub components: Vec<ComponentUsage>,
    /// The machine as a whole.
    pub machine: MachineUsage,
}

impl Window {
    /// Reads everything as the window opens. The components come first, so that their windows are nearest to the
    /// generator's.
    ///
    /// # Errors
    /// Where a component is gone or the machine cannot be read.
    pub fn open(vantage: Vantage, watched: Vec<Watched>) -> Result<Self, EnvironmentError> {
        let observer = observer::read(vantage.ticks_per_second)
            .map_err(|error| EnvironmentError::new("read meshmeter's own counters", error))?;
        let mut components = Vec::with_capacity(watched.len());
        for watched in watched {
            let reading = read_component(&watched, None, &vantage)?;
            components.push((watched, reading));
        }
        let machine = read_machine(&vantage)?;
        Ok(Self { vantage, observer, components, machine })
    }

    /// Reads everything again as the window closes.
    ///
    /// # Errors
    /// Where a component is gone or the machine cannot be read.
    pub fn close(self) -> Result<WindowUsage, EnvironmentError> {
        let mut components = Vec::with_capacity(self.components.len() + 2);
        for (watched, open) in &self.components {
            let close = read_component(watched, Some(open), &self.vantage)?;
            components.push(watched.usage(open, &close, self.vantage.ticks_per_second));
        }
        let machine = read_machine(&self.vantage)?;
        let observer = observer::read(self.vantage.ticks_per_second)
            .map_err(|error| EnvironmentError::new("read meshmeter's own counters", error))?;
        components.push(observer::usage(&self.observer, &observer));
        let lab_cores = components.iter().map(ComponentUsage::cpu_cores).sum();
        let machine = machine::usage(&self.machine, &machine, lab_cores, self.vantage.ticks_per_second);
        components.push(kernel_usage(&machine));
        Ok(WindowUsage { components, machine })
    }
}

fn read_component(
    watched: &Watched,
    open: Option<&ComponentReading>,
    vantage: &Vantage,
) -> Result<ComponentReading, EnvironmentError> {
    watched
        .read(open, vantage.ticks_per_second)
        .map_err(|error| EnvironmentError::new(format!("read the counters of {}", watched.name), error))
}

fn read_machine(vantage: &Vantage) -> Result<MachineReading, EnvironmentError> {
    machine::read(&vantage.outer_proc, vantage.lab_root)
        .map_err(|error| EnvironmentError::new("read the machine's counters", error))
}

/// The kernel's share as a component, so that the components of a trial add up to the machine.
fn kernel_usage(machine: &MachineUsage) -> ComponentUsage {
    ComponentUsage {
        cpu_system_s: machine.kernel_cores * machine.window_s,
        ..ComponentUsage::of(KERNEL, Role::Kernel, machine.window_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_busy_is_accounted_for_once() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let watched = Watched {
            name: "server".to_owned(),
            role: Role::App,
            pod: "server".to_owned(),
            pid: busy.id().cast_signed(),
            cgroup: None,
            interface: None,
        };
        let window = Window::open(Vantage::new(Path::new("/proc")).unwrap(), vec![watched]).unwrap();
        // The window is time itself here, not a wait for something.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let usage = window.close();
        busy.kill().unwrap();
        busy.wait().unwrap();
        let usage = usage.unwrap();
        let names: Vec<_> = usage.components.iter().map(|usage| usage.name.as_str()).collect();
        assert_eq!(names, ["server", "meshmeter", "kernel"]);
        assert!(usage.components[0].cpu_cores() > 0.0, "{usage:?}");
        let sum: f64 = usage.components.iter().map(ComponentUsage::cpu_cores).sum();
        let (all, busy) = (sum + usage.machine.other_processes_cores, usage.machine.busy_cores);
        // Equal, unless the kernel's tick sampling saw less than the processes' exact times.
        assert!(all >= busy - 1e-6, "{usage:?}");
    }
}
