//! Margins of equivalence: the user's, what the machine resolves by its calibration, or a default.

use super::judge::Tests;
use crate::calibration::variance_between_trials;
use results::{CalibratedFigure, CalibratedSpread, Calibration, MarginSource, Metric, Mode, ModeCalibration};

/// Margin without a calibration and without one of the user: less than the smallest regression that people look for, 5 %.
pub const DEFAULT_MARGIN: f64 = 0.03;
/// Smallest margin by calibration: less matters to nobody.
const MIN_MARGIN: f64 = 0.01;
/// Margins by calibration are rounded up to multiples of this.
const MARGIN_STEP: f64 = 0.005;

/// Source of the margins of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Margins {
    /// `--margin`, a fraction.
    pub user: Option<f64>,
    /// Calibration of the machine.
    pub calibration: Option<Calibration>,
    /// Measured window of the trials, seconds.
    pub window_s: f64,
}

impl Margins {
    /// Margin of a figure of a mode in a comparison with this many repeats.
    pub(super) fn of(
        &self,
        metric: Metric,
        mode: Mode,
        tests: &Tests,
        repeats: usize,
    ) -> (f64, MarginSource) {
        if let Some(user) = self.user {
            return (user, MarginSource::User);
        }
        match self.deviation(metric, mode) {
            Some(deviation) => {
                let resolvable = tests.resolvable_margin(deviation, repeats);
                let rounded = (resolvable / MARGIN_STEP).ceil() * MARGIN_STEP;
                (rounded.clamp(MIN_MARGIN, 1.0), MarginSource::Calibration)
            }
            None => (DEFAULT_MARGIN, MarginSource::Default),
        }
    }

    /// Standard deviation of the relative difference between two trials of a repeat, by the calibration.
    fn deviation(&self, metric: Metric, mode: Mode) -> Option<f64> {
        let figure = match metric {
            Metric::ResponseTimeP50Us => CalibratedFigure::P50Us,
            Metric::ResponseTimeP99Us => CalibratedFigure::P99Us,
            Metric::ProxiesCpuCoresPer1000Rps => CalibratedFigure::CpuCores,
            _ => return None,
        };
        let calibration = self.calibration.as_ref()?;
        let spread_of = |mode: &ModeCalibration| -> Option<CalibratedSpread> {
            mode.spreads.iter().find(|spread| spread.figure == figure && spread.mean > 0.0).copied()
        };
        let same = calibration.modes.iter().find(|own| own.mode == mode);
        // Modes that are not calibrated have proxies: the calibrated one that varies most stands for them.
        let others = calibration.modes.iter().filter(|own| own.mode != Mode::None && mode != Mode::None);
        let relative = |spread: CalibratedSpread| {
            let window_s = self.window_s.max(f64::MIN_POSITIVE);
            variance_between_trials(&spread, calibration.window_s, window_s).sqrt() / spread.mean
        };
        match same.and_then(spread_of) {
            Some(spread) => Some(relative(spread)),
            None => others.filter_map(spread_of).map(relative).reduce(f64::max),
        }
    }
}
