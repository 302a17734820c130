//! Figures of a run in tables over all cells, the source of estimates and differences.

use super::estimates::{not_below_zero, percentiles, resolution_of, with_censored, with_unanswered};
use crate::figure_table::{Difference, FigureTable};
use crate::trials::{TrialsByCell, usable, usable_or_unanswered};
use noise::{Place, Values};
use results::{
    CellKey, Clock, ComponentUsage, Conditions, Estimate, Figure, HistogramSummary, LoadResult, Metric,
    OwnedCellKey, Percentiles, Role, TrialRecord,
};
use std::collections::HashMap;

/// The tables of a run, one per metric and what it is of.
pub(super) struct Tables<'a> {
    trials: &'a TrialsByCell<'a>,
    keys: Vec<CellKey<'a>>,
    positions: HashMap<CellKey<'a>, usize>,
    places: Vec<Place>,
    tables: HashMap<(Subject<'a>, Metric), FigureTable>,
}

/// Subject of a metric.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Subject<'a> {
    /// The whole path of the requests, or the fleet.
    Path,
    /// All components of a role together. Sums are made within each trial, so their intervals account for work that
    /// moves from one component to another.
    Role(Role),
    /// One component.
    Component(&'a str, Role),
}

/// Roles whose components are summed.
pub(super) const SUMMED_ROLES: [Role; 3] = [Role::Proxy, Role::FilterService, Role::ControlPlane];

/// Metrics of components whose noise is estimated from all cells.
const CPU: [Metric; 2] = [Metric::CpuCores, Metric::CpuCoresPer1000Rps];

impl<'a> Tables<'a> {
    pub(super) fn new(cells: &'a [OwnedCellKey], trials: &'a TrialsByCell<'a>) -> Self {
        let keys: Vec<CellKey<'a>> = cells.iter().map(OwnedCellKey::key).collect();
        let mut conditions: HashMap<Conditions<'_>, usize> = HashMap::new();
        let mut place = |cell: &'a OwnedCellKey| {
            let next = conditions.len();
            let conditions = *conditions.entry(cell.conditions()).or_insert(next);
            Place { mode: cell.mode as usize, conditions }
        };
        let mut tables = Self {
            trials,
            positions: keys.iter().enumerate().map(|(position, key)| (*key, position)).collect(),
            places: cells.iter().map(&mut place).collect(),
            keys,
            tables: HashMap::new(),
        };
        let is_measured = |metric: &Metric| trials.all().iter().any(|trial| metric.was_measured(trial));
        for metric in Metric::ALL.iter().copied().filter(is_measured) {
            tables.add(Subject::Path, metric, |trial| metric.read(trial));
        }
        for role in SUMMED_ROLES {
            tables.add(Subject::Role(role), Metric::CpuCores, |trial| trial.cpu_cores_of(role));
            let per_1000_rps = |trial: &TrialRecord| trial.per_1000_rps(trial.cpu_cores_of(role)?);
            tables.add(Subject::Role(role), Metric::CpuCoresPer1000Rps, per_1000_rps);
        }
        for ((name, role), of_trials) in usages(trials.all()) {
            for metric in CPU {
                tables.add(Subject::Component(name, role), metric, |trial| {
                    metric.read_of(trial, of_trials.get(&trial.index)?)
                });
            }
        }
        tables
    }

    /// Adds a table. A cell has no values if the metric was measured in one of its trials but falls among requests
    /// without a response or proxies never reached: the other trials do not represent it.
    fn add(&mut self, of: Subject<'a>, metric: Metric, read: impl Fn(&TrialRecord) -> Option<f64>) {
        let values = |cell: &CellKey<'_>| -> Values {
            let trials = self.measured(*cell, metric).into_iter();
            let value = |trial: &TrialRecord| Some((trial.repeat, read(trial)?));
            match metric.clock() {
                None => trials.filter_map(value).collect(),
                Some(_) => {
                    let measured = trials.filter(|trial| metric.was_measured(trial));
                    measured.map(value).collect::<Option<Values>>().unwrap_or_default()
                }
            }
        };
        let cells = self.places.iter().copied().zip(self.keys.iter().map(values)).collect();
        self.tables.insert((of, metric), FigureTable::new(cells));
    }

    /// The trials of a cell whose metric is usable, and those in which it falls among requests without a response.
    fn measured(&self, cell: CellKey<'_>, metric: Metric) -> Vec<&'a TrialRecord> {
        let (trials, figure) = (self.trials.of(cell), metric.spoiled_by());
        match metric.clock() {
            Some(clock) => usable_or_unanswered(trials, figure, |result| result.times(clock)),
            None => usable(trials, figure),
        }
    }

    /// The trials of a cell whose figure is usable.
    pub(super) fn trials(&self, cell: CellKey<'_>, figure: Figure) -> Vec<&'a TrialRecord> {
        usable(self.trials.of(cell), figure)
    }

    pub(super) fn position(&self, cell: CellKey<'_>) -> Option<usize> {
        self.positions.get(&cell).copied()
    }

    /// The table of a metric of the path; `None` if no trial measured it.
    pub(super) fn of_path(&self, metric: Metric) -> Option<&FigureTable> {
        self.tables.get(&(Subject::Path, metric))
    }

    /// Estimate of a metric in a cell.
    pub(super) fn mean(&self, of: Subject<'a>, metric: Metric, cell: CellKey<'_>) -> Option<Estimate> {
        let (table, position) = (self.tables.get(&(of, metric))?, self.position(cell)?);
        table.mean(position, resolution(metric, table.values(position).values())).map(not_below_zero)
    }

    /// Times of a cell by a clock of loads.
    pub(super) fn percentiles(&self, cell: CellKey<'_>, clock: Clock) -> Option<Percentiles> {
        let mean = |figure: Figure| self.mean(Subject::Path, clock.metric(figure)?, cell);
        let results = |figure: Figure| -> Vec<&LoadResult> {
            let trials = self.trials.of(cell);
            let trials = usable_or_unanswered(trials, figure, |result| result.times(clock)).into_iter();
            trials.filter_map(|trial| trial.result.as_ref()).collect()
        };
        let of_figure = |figure: Figure| -> Vec<&HistogramSummary> {
            results(figure).into_iter().filter_map(|result| result.times(clock)).collect()
        };
        let percentiles = percentiles(of_figure, mean)?;
        Some(match clock {
            of_streams if of_streams.is_of_streams() => with_unanswered(percentiles, &of_figure(Figure::P50)),
            _ => with_censored(percentiles, results),
        })
    }

    /// The difference of a metric of the path between two cells.
    pub(super) fn difference(
        &self,
        metric: Metric,
        with: CellKey<'_>,
        without: CellKey<'_>,
    ) -> Option<Difference> {
        let (with, without) = (self.position(with)?, self.position(without)?);
        let table = self.of_path(metric)?;
        let values = table.values(with).values().chain(table.values(without).values());
        // A difference has two readings, each rounded to the histogram's resolution.
        table.difference(with, without, resolution(metric, values) * 2.0)
    }

    /// The relative change of a metric between two cells, as a fraction.
    pub(super) fn change(
        &self,
        of: Subject<'a>,
        metric: Metric,
        with: CellKey<'_>,
        without: CellKey<'_>,
    ) -> Option<Difference> {
        self.tables.get(&(of, metric))?.change(self.position(with)?, self.position(without)?)
    }

    /// True if two cells ran the same programs of the mesh, by their digests.
    pub(super) fn ran_same_programs(&self, one: CellKey<'_>, other: CellKey<'_>) -> bool {
        let digests = |cell: CellKey<'_>| -> Option<Vec<(&str, &str)>> {
            let versions = &self.trials.of(cell).first()?.versions;
            let mut digests = versions
                .iter()
                .map(|version| Some((version.name.as_str(), version.sha256.as_deref()?)))
                .collect::<Option<Vec<_>>>()?;
            digests.sort_unstable();
            Some(digests)
        };
        digests(one).filter(|digests| !digests.is_empty()).is_some_and(|found| Some(found) == digests(other))
    }
}

/// Every component of the trials, with its usage by the index of the trial.
fn usages(trials: &[TrialRecord]) -> HashMap<(&str, Role), HashMap<usize, &ComponentUsage>> {
    let mut usages: HashMap<(&str, Role), HashMap<usize, &ComponentUsage>> = HashMap::new();
    for trial in trials {
        for usage in &trial.components {
            let of_component = usages.entry((usage.name.as_str(), usage.role)).or_default();
            of_component.entry(trial.index).or_insert(usage);
        }
    }
    usages
}

/// The smallest measurable difference between these values.
fn resolution<'a>(metric: Metric, values: impl Iterator<Item = &'a f64>) -> f64 {
    if metric.clock().is_some() { resolution_of(&values.copied().collect::<Vec<_>>()) } else { 0.0 }
}
