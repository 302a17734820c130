//! Where CPU time went, by the stacks that a run with `--profile` sampled: `logs/trial-007/COMPONENT.folded`, a line per stack
//! from the outermost frame (`thread;function;function 12`) with its number of samples.
//!
//! Samples become cores: a thread that runs has [`SAMPLES_PER_S`] per second. These are cores of samples, which see less than the
//! CPU counters: a component's CPU is in its usage. [`read`] adds up the trials of a run or of a comparison's arms;
//! [`html::charts::flames`](crate::html::charts::flames) draws them.

use crate::folder::{LOGS_FOLDER, RunFolder};
use experiment::plan::ComparisonArm;
use results::{Factors, OwnedCellKey, TrialOutcome, TrialRecord};
use statistics::words;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Samples per second of CPU time.
pub const SAMPLES_PER_S: f64 = 99.0;
/// Extension of the files.
pub const EXTENSION: &str = "folded";
/// Maximum size of a file; further stacks are left out.
const MAX_BYTES: u64 = 64 << 20;

/// Stacks of a component in a cell, of the base and of the head; a run has a head alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Name of the component.
    pub component: String,
    /// Mode and load, and factors outside a comparison.
    pub place: String,
    /// True if it has a base.
    pub is_compared: bool,
    /// Cores of the base and of the head by stack, of samples.
    pub stacks: BTreeMap<String, [f64; 2]>,
}

/// A function's own CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnTime {
    /// The innermost frame.
    pub function: String,
    /// Cores of the base and of the head.
    pub cores: [f64; 2],
}

impl Profile {
    /// Cores of the base and of the head.
    #[must_use]
    pub fn cores(&self) -> [f64; 2] {
        self.stacks.values().fold([0.0; 2], |sum, cores| [sum[0] + cores[0], sum[1] + cores[1]])
    }

    /// Functions by their own time, those first that changed most; without a base, those first that take most.
    #[must_use]
    pub fn own_times(&self) -> Vec<OwnTime> {
        let mut functions: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        for (stack, cores) in &self.stacks {
            let own = functions.entry(stack.rsplit(';').next().unwrap_or_default()).or_default();
            *own = [own[0] + cores[0], own[1] + cores[1]];
        }
        let mut times: Vec<OwnTime> = functions
            .into_iter()
            .map(|(function, cores)| OwnTime { function: function.to_owned(), cores })
            .collect();
        times.sort_by(|one, other| (other.change().abs()).total_cmp(&one.change().abs()));
        times
    }
}

impl OwnTime {
    /// Cores that the head has more than the base.
    #[must_use]
    pub fn change(&self) -> f64 {
        self.cores[1] - self.cores[0]
    }
}

/// Sums over trials, before they are divided by their time.
#[derive(Default)]
struct Sums {
    is_compared: bool,
    seconds: [f64; 2],
    samples: BTreeMap<String, [f64; 2]>,
}

/// Profiles by cell and component, of trials that finished on a proven path: noise of the machine, to which sampling adds, takes
/// time and moves little of it from one function to another. Trials without files have none.
#[must_use]
pub fn read(folder: &Path, trials: &[TrialRecord]) -> Vec<Profile> {
    let mut sums: BTreeMap<(String, String), Sums> = BTreeMap::new();
    let is_used = |trial: &&TrialRecord| trial.outcome == TrialOutcome::Finished && trial.path.proven;
    for trial in trials.iter().filter(is_used) {
        let arm = ComparisonArm::from_factors(&trial.factors);
        let side = usize::from(arm.is_none_or(|arm| arm == ComparisonArm::Head));
        let factors = if arm.is_some() { Factors::new() } else { trial.factors.clone() };
        let cell = OwnedCellKey { mode: trial.mode, factors, load: trial.load.clone() };
        let own = folder.join(LOGS_FOLDER).join(RunFolder::trial_label(trial.index));
        for component in &trial.components {
            let file = own.join(format!("{}.{EXTENSION}", component.name.replace('/', "--")));
            let Ok(text) = text(&file) else { continue };
            let sum = sums.entry((words::place(cell.key()), component.name.clone())).or_default();
            sum.is_compared |= arm.is_some();
            sum.seconds[side] += component.window_s;
            for (stack, samples) in text.lines().filter_map(line) {
                sum.samples.entry(stack.to_owned()).or_default()[side] += samples as f64;
            }
        }
    }
    let profile = |((place, component), sum): ((String, String), Sums)| {
        let per_core = sum.seconds.map(|seconds| seconds * SAMPLES_PER_S);
        let cores = |samples: [f64; 2]| {
            [0, 1].map(|side| if per_core[side] > 0.0 { samples[side] / per_core[side] } else { 0.0 })
        };
        let stacks = sum.samples.into_iter().map(|(stack, samples)| (stack, cores(samples))).collect();
        Profile { component, place, is_compared: sum.is_compared, stacks }
    };
    sums.into_iter().map(profile).filter(|profile| !profile.stacks.is_empty()).collect()
}

fn text(file: &Path) -> io::Result<String> {
    // A pipe would wait for its writer.
    if !fs::symlink_metadata(file)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Stack and number of samples of a line. Frames may contain spaces.
fn line(line: &str) -> Option<(&str, u64)> {
    let (stack, samples) = line.rsplit_once(' ')?;
    Some((stack, samples.parse().ok()?)).filter(|(stack, samples)| !stack.is_empty() && *samples > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{ComponentUsage, FactorValue, PathProof, Role};

    fn trial(index: usize, arm: Option<&str>) -> TrialRecord {
        let text = include_str!("../../../fuzz/corpus/trials/run").lines().next().unwrap();
        let factors = arm.map(|arm| ("arm".to_owned(), FactorValue::Text(arm.to_owned())));
        TrialRecord {
            index,
            factors: factors.into_iter().collect(),
            components: vec![ComponentUsage::new("server-proxy", Role::Proxy, 10.0)],
            ..TrialRecord::from_json(text).unwrap()
        }
    }

    fn folder(files: &[(usize, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (index, text) in files {
            let own = folder.path().join(LOGS_FOLDER).join(RunFolder::trial_label(*index));
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("server-proxy.folded"), text).unwrap();
        }
        folder
    }

    #[test]
    fn samples_of_a_cells_trials_become_cores() {
        let folder = folder(&[(0, "wrk;main;a b(int) 99\nwrk;main 198\n"), (1, "wrk;main;a b(int) 297\n")]);
        let unproven = TrialRecord { path: PathProof::default(), ..trial(1, None) };
        let trials = [trial(0, None), TrialRecord { index: 1, ..trial(0, None) }, trial(2, None), unproven];
        let [profile] = &read(folder.path(), &trials)[..] else { panic!("one cell and component") };
        assert_eq!((profile.component.as_str(), profile.is_compared), ("server-proxy", false));
        let stack = |stack: &str| profile.stacks[stack][1];
        assert!((stack("wrk;main;a b(int)") - 0.2).abs() < 1e-9 && (stack("wrk;main") - 0.1).abs() < 1e-9);
        assert_eq!(profile.own_times()[0].function, "a b(int)");
        assert!((profile.cores()[1] - 0.3).abs() < 1e-9, "{profile:?}");
    }

    #[test]
    fn arms_are_two_sides_and_what_changed_most_comes_first() {
        let base = "wrk;parse 99\nwrk;send 990\nwrk;gone 10\n";
        let folder = folder(&[(0, base), (1, "wrk;parse 495\nwrk;send 990\n"), (2, base)]);
        let trials = [trial(0, Some("base")), trial(1, Some("head")), trial(2, Some("control"))];
        let [profile] = &read(folder.path(), &trials)[..] else { panic!("one cell and component") };
        assert!(profile.is_compared);
        let times = profile.own_times();
        let functions: Vec<&str> = times.iter().map(|time| time.function.as_str()).collect();
        assert_eq!(functions, ["parse", "gone", "send"]);
        assert!((times[0].change() - 0.4).abs() < 1e-9 && times[2].change().abs() < 1e-9, "{times:?}");
    }

    #[test]
    fn damaged_and_foreign_files_show_what_they_have() {
        let folder =
            folder(&[(0, "no number\n 5\nwrk;main -1\nwrk;main 3\nwrk;main 99999999999999999999999\n")]);
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("logs/trial-000/server.folded"))
            .unwrap();
        let [profile] = &read(folder.path(), &[trial(0, None)])[..] else { panic!("one cell and component") };
        assert_eq!(profile.stacks.len(), 1, "{profile:?}");
        assert!(read(Path::new("/absent"), &[trial(0, None)]).is_empty());
    }
}
