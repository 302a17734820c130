//! `meshmeter doctor --calibrate` in a real lab, with as few and as short trials as it takes.

mod command;

use command::{meshmeter, stderr, stdout};
use experiment::schema::{CalibratedFigure, Calibration, Pacing};

#[test]
fn a_calibration_finds_known_effects_again() {
    let cache = tempfile::tempdir().unwrap();
    let arguments =
        ["doctor", "--calibrate", "--modes", "none", "--repeats", "2", "--duration", "100ms", "--json"];
    let output =
        meshmeter().env("XDG_CACHE_HOME", cache.path()).args(arguments).output().expect("the binary runs");
    // A busy machine may leave no figure usable; nothing else may go wrong.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let calibration: Calibration = serde_json::from_str(&stdout(&output)).expect("a calibration");
    assert_eq!((calibration.repeats_planned, calibration.modes.len()), (2, 1));
    assert_ne!(calibration.pacing, Pacing::Auto, "one way of waiting for all trials");
    let mode = &calibration.modes[0];
    let known: Vec<f64> = mode
        .known
        .iter()
        .filter(|known| known.figure == CalibratedFigure::P50Us)
        .map(|known| known.truth)
        .collect();
    assert_eq!(known, [20.0, 50.0, 100.0, 200.0]);
    // On a busy machine figures are spoiled; where they are not, the service computed.
    let cpu = mode.known.iter().rfind(|known| known.figure == CalibratedFigure::CpuCores).unwrap();
    if let Some(found) = cpu.estimate {
        assert!(found.estimate > 0.02, "{found:?} of {}", cpu.truth);
    }
    assert!(!cache.path().join("meshmeter/calibrations").exists(), "two repeats are too few to keep");
}
