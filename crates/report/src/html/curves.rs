//! Percentile curves of the cells, for the charts.

use results::{CellKey, Clock, Conditions, DecodeError, Factors, LatencyHistogram, LoadPoint, Mode};
use statistics::{CurvePoint, TrialsByCell};

/// Points between two consecutive nines.
const POINTS_PER_DECADE: usize = 24;
/// Percentiles that get a marker.
const MARKED: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The distributions of one mode under one load, over its valid trials.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Deployment mode.
    pub mode: Mode,
    /// Values of the factors.
    pub factors: Factors,
    /// The offered load.
    pub load: LoadPoint,
    /// Response time, or that until the first token of a stream, from the intended start.
    pub response: Vec<CurvePoint>,
    /// Service time, from the actual send.
    pub service: Vec<CurvePoint>,
    /// The response time at the usual percentiles, up to the end of the curve.
    pub marks: Vec<CurvePoint>,
}

impl Curve {
    /// The curve of one cell; `None` if it has no valid trial or too few requests.
    ///
    /// # Errors
    /// Returns an error if a trial's histogram cannot be decoded.
    pub fn of_cell(cell: CellKey<'_>, trials: &TrialsByCell<'_>) -> Result<Option<Self>, DecodeError> {
        if Clock::of_load(cell.conditions.load) == Clock::FirstEvent {
            return Self::over(cell, trials, Clock::FirstEvent, &LatencyHistogram::new());
        }
        let service = statistics::merged(trials, cell, Clock::ServiceTime)?;
        Self::over(cell, trials, Clock::ResponseTime, &service.unwrap_or_default())
    }

    /// The convergence of a cell's fleet; `None` if it has no valid trial or too few arrivals.
    ///
    /// # Errors
    /// Returns an error if a trial's histogram cannot be decoded.
    pub fn of_convergence(cell: CellKey<'_>, trials: &TrialsByCell<'_>) -> Result<Option<Self>, DecodeError> {
        Self::over(cell, trials, Clock::Convergence, &LatencyHistogram::new())
    }

    fn over(
        cell: CellKey<'_>,
        trials: &TrialsByCell<'_>,
        clock: Clock,
        service: &LatencyHistogram,
    ) -> Result<Option<Self>, DecodeError> {
        let Some(response) = &statistics::merged(trials, cell, clock)? else { return Ok(None) };
        // Requests without a response rank above all others: the curve ends where they start.
        let censored = statistics::censored(trials, cell, clock) as f64;
        let answered = response.count() as f64 / (response.count() as f64 + censored);
        let mut points = statistics::percentile_curve(response, POINTS_PER_DECADE);
        points.iter_mut().for_each(|point| point.percentile *= answered);
        if points.len() < 2 {
            return Ok(None);
        }
        Ok(Some(Self {
            mode: cell.mode,
            factors: cell.conditions.factors.clone(),
            load: cell.conditions.load.clone(),
            marks: marks(response, &points, answered),
            response: points,
            service: statistics::percentile_curve(service, POINTS_PER_DECADE),
        }))
    }

    /// Factors and load of the cell.
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }

    /// True if the service time is visibly a different curve: somewhere off by more than 3 % and 10 µs.
    pub fn service_differs(&self) -> bool {
        self.response.iter().zip(&self.service).any(|(response, service)| {
            let difference_us = (response.value_us - service.value_us).abs();
            difference_us > 10.0 && difference_us > 0.03 * response.value_us
        })
    }
}

/// `answered`: fraction of the requests that have a response.
fn marks(histogram: &LatencyHistogram, points: &[CurvePoint], answered: f64) -> Vec<CurvePoint> {
    let last = points.last().map_or(0.0, |point| point.percentile);
    MARKED
        .into_iter()
        .filter(|percentile| *percentile <= last + 1e-9)
        .map(|percentile| CurvePoint { percentile, value_us: histogram.percentile_us(percentile / answered) })
        .collect()
}
