//! Calibrations of this user's machines: one file per machine and pacing in the cache directory, named after them.

use components::user_cache;
use jiff::{Timestamp, ToSpan as _};
use results::{CALIBRATION_SCHEMA, CalibratedMachine, Calibration, Pacing};
use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, fs, io};

/// Older calibrations are not used: kernels, neighbours and settings change.
const MAX_AGE_DAYS: i64 = 30;

/// The calibration of this machine with this pacing; `None` if there is none, or it is too old or unreadable.
pub(in crate::commands::run) fn read(machine: &CalibratedMachine, pacing: Pacing) -> Option<Calibration> {
    let text = fs::read(path(machine, pacing, &|name| env::var_os(name))?).ok()?;
    let calibration = Calibration::from_json(text).ok()?;
    is_current(&calibration, machine, Timestamp::now()).then_some(calibration)
}

fn is_current(calibration: &Calibration, machine: &CalibratedMachine, now: Timestamp) -> bool {
    let made_at = calibration.made_at.parse::<Timestamp>();
    let oldest = now.checked_sub((24 * MAX_AGE_DAYS).hours());
    calibration.schema == CALIBRATION_SCHEMA
        && calibration.machine == *machine
        && made_at.is_ok_and(|made_at| oldest.is_ok_and(|oldest| made_at >= oldest))
}

/// Stores a calibration, replacing an earlier one.
pub(super) fn write(calibration: &Calibration) -> io::Result<()> {
    let path = path(&calibration.machine, calibration.pacing, &|name| env::var_os(name))
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "HOME is not set"))?;
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let text = serde_json::to_vec_pretty(calibration)?;
    report::folder::write_whole(&path, &text).map_err(io::Error::other)
}

fn path(
    machine: &CalibratedMachine,
    pacing: Pacing,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let CalibratedMachine { cpu_model, cpus, kernel } = machine;
    let name = format!("{cpu_model} {cpus} {kernel} {}", pacing.name());
    let name: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    Some(user_cache(variable)?.join("calibrations").join(format!("{name}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> CalibratedMachine {
        CalibratedMachine { cpu_model: "EPYC (7B13)".into(), cpus: 4, kernel: "6.18.0".into() }
    }

    #[test]
    fn a_calibration_is_used_for_its_machine_and_for_30_days() {
        let calibration = Calibration {
            schema: CALIBRATION_SCHEMA.to_owned(),
            made_at: "2026-11-22T10:00:00Z".to_owned(),
            machine: machine(),
            rate: 1000.0,
            connections: 4,
            window_s: 1.0,
            pacing: Pacing::Economical,
            repeats_planned: 5,
            modes: Vec::new(),
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert!(is_current(&calibration, &machine(), at("2026-12-22T09:00:00Z")));
        assert!(!is_current(&calibration, &machine(), at("2026-12-22T11:00:00Z")));
        let other = CalibratedMachine { cpus: 2, ..machine() };
        assert!(!is_current(&calibration, &other, at("2026-11-22T11:00:00Z")));
    }

    #[test]
    fn calibrations_are_in_the_users_cache() {
        let variable = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
        let expected = "/h/.cache/meshmeter/calibrations/EPYC--7B13--4-6-18-0-precise.json";
        assert_eq!(path(&machine(), Pacing::Precise, &variable), Some(PathBuf::from(expected)));
        assert_eq!(path(&machine(), Pacing::Precise, &|_| None), None);
    }
}
