//! Figures of a run in tables over all cells, the source of estimates and differences.

use super::estimates::{not_below_zero, percentiles, resolution_of, with_censored};
use super::totals::Sum;
use crate::figure_table::{Difference, FigureTable};
use crate::fleet;
use crate::noise::{Place, Values};
use crate::trials::{TrialsByCell, usable, usable_or_unanswered};
use experiment::plan::PlannedCell;
use results::{
    CellKey, ComparedFigure, ComponentUsage, Conditions, Estimate, Figure, FleetFigure, HistogramSummary,
    LoadResult, Percentiles, Role, TimeFigure, TrialRecord,
};
use std::collections::{BTreeMap, HashMap};

/// The tables of a run, one per figure.
pub(super) struct Tables<'a> {
    trials: &'a TrialsByCell<'a>,
    keys: Vec<CellKey<'a>>,
    positions: HashMap<CellKey<'a>, usize>,
    places: Vec<Place>,
    /// In the order of [`TimeFigure::ALL`].
    response: Vec<FigureTable>,
    /// In the order of [`TimeFigure::ALL`].
    service: Vec<FigureTable>,
    throughput: FigureTable,
    /// CPU of all components per role, and the same per 1000 requests/s.
    cpu: [(Role, FigureTable, FigureTable); SUMMED_ROLES.len()],
    /// CPU of each component, and the same per 1000 requests/s.
    components: HashMap<(&'a str, Role), [FigureTable; 2]>,
    /// Anonymous memory of all proxies.
    memory_anonymous: FigureTable,
    /// Size of the configuration of all proxies.
    configuration: FigureTable,
    /// Time until the last proxy uses a changed configuration, in microseconds.
    configured_last: FigureTable,
    /// Empty if no driver is a fleet.
    fleet: BTreeMap<FleetFigure, FigureTable>,
}

/// Roles whose components are summed.
pub(super) const SUMMED_ROLES: [Role; 3] = [Role::Proxy, Role::FilterService, Role::ControlPlane];

/// Reads one distribution of a result.
type Times = fn(&LoadResult) -> &HistogramSummary;
const RESPONSE: Times = |result| &result.response_time_us;
const SERVICE: Times = |result| &result.service_time_us;

impl<'a> Tables<'a> {
    pub(super) fn new(cells: &'a [PlannedCell], trials: &'a TrialsByCell<'a>) -> Self {
        let keys: Vec<CellKey<'a>> = cells.iter().map(PlannedCell::key).collect();
        let mut conditions: HashMap<Conditions<'_>, usize> = HashMap::new();
        let mut place = |cell: &'a PlannedCell| {
            let next = conditions.len();
            let conditions = *conditions.entry(cell.conditions()).or_insert(next);
            Place { mode: cell.mode as usize, conditions }
        };
        let mut tables = Self {
            trials,
            positions: keys.iter().enumerate().map(|(position, key)| (*key, position)).collect(),
            places: cells.iter().map(&mut place).collect(),
            keys,
            response: Vec::new(),
            service: Vec::new(),
            throughput: FigureTable::default(),
            cpu: SUMMED_ROLES.map(|role| (role, FigureTable::default(), FigureTable::default())),
            components: HashMap::new(),
            memory_anonymous: FigureTable::default(),
            configuration: FigureTable::default(),
            configured_last: FigureTable::default(),
            fleet: BTreeMap::new(),
        };
        tables.response = TimeFigure::ALL.into_iter().map(|figure| tables.times(RESPONSE, figure)).collect();
        tables.service = TimeFigure::ALL.into_iter().map(|figure| tables.times(SERVICE, figure)).collect();
        tables.throughput =
            tables.table(Figure::Throughput, |trial| Some(trial.result.as_ref()?.rate.completed));
        tables.cpu = SUMMED_ROLES.map(|role| {
            let cores = tables.table(Figure::Cpu, |trial| Some(Sum::for_role(role, trial)?.cpu_cores));
            let per_request = |trial: &TrialRecord| Sum::for_role(role, trial)?.cpu_cores_per_1000_rps();
            (role, cores, tables.table(Figure::Cpu, per_request))
        });
        tables.components = tables.component_tables();
        tables.memory_anonymous =
            tables.table(Figure::Memory, |trial| Sum::for_role(Role::Proxy, trial)?.memory_anonymous_bytes);
        // Both depend on the deployment only, not on the fate of the requests.
        tables.configuration = tables.table(Figure::Memory, configuration_bytes);
        tables.configured_last = tables.table(Figure::Memory, configured_last_us);
        if trials.all().iter().any(|trial| trial.fleet().is_some()) {
            tables.fleet = FleetFigure::ALL.map(|figure| (figure, tables.fleet_table(figure))).into();
        }
        tables
    }

    fn component_tables(&self) -> HashMap<(&'a str, Role), [FigureTable; 2]> {
        let mut usages: HashMap<(&str, Role), HashMap<usize, &ComponentUsage>> = HashMap::new();
        for trial in self.trials.all() {
            for usage in &trial.components {
                let of_component = usages.entry((usage.name.as_str(), usage.role)).or_default();
                of_component.entry(trial.index).or_insert(usage);
            }
        }
        let tables = |of_trials: HashMap<usize, &ComponentUsage>| {
            let cores = |trial: &TrialRecord| {
                Some((of_trials.get(&trial.index)?.cpu_cores(), trial.result.as_ref()?.rate.completed))
            };
            [
                self.table(Figure::Cpu, |trial| Some(cores(trial)?.0)),
                self.table(Figure::Cpu, |trial| {
                    let (cores, rate) = cores(trial)?;
                    (rate > 0.0).then(|| cores / rate * 1000.0)
                }),
            ]
        };
        usages.into_iter().map(|(component, of_trials)| (component, tables(of_trials))).collect()
    }

    fn table(&self, figure: Figure, read: impl Fn(&TrialRecord) -> Option<f64>) -> FigureTable {
        let values = |cell: &CellKey<'_>| -> Values {
            let trials = usable(self.trials.of(*cell), figure).into_iter();
            trials.filter_map(|trial| Some((trial.repeat, read(trial)?))).collect()
        };
        FigureTable::new(self.places.iter().copied().zip(self.keys.iter().map(values)).collect())
    }

    /// Table of a time figure. A cell has no values if the figure falls among requests without a response in
    /// one of its trials: the other trials do not represent it.
    fn times(&self, times: Times, figure: TimeFigure) -> FigureTable {
        let values = |cell: &CellKey<'_>| -> Values {
            let trials = usable_or_unanswered(self.trials.of(*cell), figure.figure(), times);
            let value = |trial: &TrialRecord| Some((trial.repeat, figure.of(times(trial.result.as_ref()?))?));
            trials.into_iter().map(value).collect::<Option<Values>>().unwrap_or_default()
        };
        FigureTable::new(self.places.iter().copied().zip(self.keys.iter().map(values)).collect())
    }

    /// Like [`Self::times`]: a cell has no values if the figure falls among proxies never reached in one of
    /// its trials.
    fn fleet_table(&self, figure: FleetFigure) -> FigureTable {
        let values = |cell: &CellKey<'_>| -> Values {
            let trials = usable(self.trials.of(*cell), figure.figure()).into_iter();
            let measured = trials.filter(|trial| fleet::was_measured(figure, trial));
            let value = |trial: &TrialRecord| Some((trial.repeat, fleet::value(figure, trial)?));
            measured.map(value).collect::<Option<Values>>().unwrap_or_default()
        };
        FigureTable::new(self.places.iter().copied().zip(self.keys.iter().map(values)).collect())
    }

    /// A figure of a cell's fleet.
    pub(super) fn of_fleet(&self, figure: FleetFigure, cell: CellKey<'_>) -> Option<Estimate> {
        let table = self.fleet.get(&figure)?;
        let position = self.position(cell)?;
        table.mean(position, resolution(figure, table.values(position).values())).map(not_below_zero)
    }

    /// The trials of a cell whose figure is usable.
    pub(super) fn trials(&self, cell: CellKey<'_>, figure: Figure) -> Vec<&'a TrialRecord> {
        usable(self.trials.of(cell), figure)
    }

    pub(super) fn position(&self, cell: CellKey<'_>) -> Option<usize> {
        self.positions.get(&cell).copied()
    }

    /// Response times of a cell.
    pub(super) fn response_times(&self, cell: CellKey<'_>) -> Option<Percentiles> {
        self.percentiles(cell, RESPONSE, &self.response)
    }

    /// Service times of a cell.
    pub(super) fn service_times(&self, cell: CellKey<'_>) -> Option<Percentiles> {
        self.percentiles(cell, SERVICE, &self.service)
    }

    fn percentiles(&self, cell: CellKey<'_>, times: Times, tables: &[FigureTable]) -> Option<Percentiles> {
        let position = self.position(cell)?;
        let mean = |figure: TimeFigure| {
            let table = &tables[TimeFigure::ALL.iter().position(|known| *known == figure)?];
            let values: Vec<f64> = table.values(position).values().copied().collect();
            table.mean(position, resolution_of(&values)).map(not_below_zero)
        };
        let results = |figure: Figure| -> Vec<&LoadResult> {
            let trials = usable_or_unanswered(self.trials.of(cell), figure, times).into_iter();
            trials.filter_map(|trial| trial.result.as_ref()).collect()
        };
        let of_figure = |figure: Figure| results(figure).into_iter().map(times).collect();
        Some(with_censored(percentiles(of_figure, mean)?, results))
    }

    /// Responses per second in a cell.
    pub(super) fn throughput(&self, cell: CellKey<'_>) -> Option<Estimate> {
        self.throughput.mean(self.position(cell)?, 0.0).map(not_below_zero)
    }

    /// The difference between the response times of two cells.
    pub(super) fn added(
        &self,
        with: CellKey<'_>,
        without: CellKey<'_>,
        figure: TimeFigure,
    ) -> Option<Difference> {
        let (with, without) = (self.position(with)?, self.position(without)?);
        let table = &self.response[TimeFigure::ALL.iter().position(|known| *known == figure)?];
        let values: Vec<f64> =
            table.values(with).values().chain(table.values(without).values()).copied().collect();
        // A difference has two readings, each rounded to the histogram's resolution.
        table.difference(with, without, resolution_of(&values) * 2.0)
    }

    /// Relative change in responses per second from `without` to `with`.
    pub(super) fn throughput_change(&self, with: CellKey<'_>, without: CellKey<'_>) -> Option<Difference> {
        self.throughput.change(self.position(with)?, self.position(without)?)
    }

    /// CPU of all components of a role in a cell, in cores.
    pub(super) fn cpu(&self, role: Role, cell: CellKey<'_>) -> Option<Estimate> {
        let (_, cores, _) = self.cpu.iter().find(|(of_role, ..)| *of_role == role)?;
        cores.mean(self.position(cell)?, 0.0).map(not_below_zero)
    }

    /// CPU of all components of a role in a cell, in cores per 1000 requests/s.
    pub(super) fn cpu_per_request(&self, role: Role, cell: CellKey<'_>) -> Option<Estimate> {
        let (.., per_request) = self.cpu.iter().find(|(of_role, ..)| *of_role == role)?;
        per_request.mean(self.position(cell)?, 0.0).map(not_below_zero)
    }

    /// CPU of a component in a cell, in cores, and in cores per 1000 requests/s.
    pub(super) fn component_cpu(&self, name: &str, role: Role, cell: CellKey<'_>) -> [Option<Estimate>; 2] {
        let Some((tables, position)) = self.components.get(&(name, role)).zip(self.position(cell)) else {
            return [None; 2];
        };
        tables.each_ref().map(|table| table.mean(position, 0.0).map(not_below_zero))
    }

    /// Change of the proxies' CPU against another cell.
    pub(super) fn proxy_cores_change(&self, with: CellKey<'_>, without: CellKey<'_>) -> Option<Difference> {
        let (_, cores, _) = self.cpu.iter().find(|(role, ..)| *role == Role::Proxy)?;
        cores.change(self.position(with)?, self.position(without)?)
    }

    /// Relative change in the proxies' CPU per request from `without` to `with`.
    pub(super) fn proxy_cpu_change(&self, with: CellKey<'_>, without: CellKey<'_>) -> Option<Difference> {
        let (.., per_request) = self.cpu.iter().find(|(role, ..)| *role == Role::Proxy)?;
        per_request.change(self.position(with)?, self.position(without)?)
    }

    /// The difference of a figure between two cells.
    pub(super) fn difference(
        &self,
        figure: ComparedFigure,
        with: CellKey<'_>,
        without: CellKey<'_>,
    ) -> Option<Difference> {
        if let Some(figure) = time(figure) {
            return self.added(with, without, figure);
        }
        let (with, without) = (self.position(with)?, self.position(without)?);
        if let Some((figure, table)) = self.of_fleets(figure) {
            let values = table.values(with).values().chain(table.values(without).values());
            return table.difference(with, without, resolution(figure, values) * 2.0);
        }
        self.compared(figure)?.difference(with, without, 0.0)
    }

    /// The relative change of a figure between two cells, as a fraction.
    pub(super) fn change(
        &self,
        figure: ComparedFigure,
        with: CellKey<'_>,
        without: CellKey<'_>,
    ) -> Option<Difference> {
        self.compared(figure)?.change(self.position(with)?, self.position(without)?)
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

    /// The table of a figure; `None` for a fleet figure if the run has no fleets.
    pub(super) fn compared(&self, figure: ComparedFigure) -> Option<&FigureTable> {
        if let Some(figure) = time(figure) {
            return self.response.get(TimeFigure::ALL.iter().position(|known| *known == figure)?);
        }
        match figure {
            ComparedFigure::RateCompleted => Some(&self.throughput),
            ComparedFigure::ProxiesMemoryAnonymousBytes => Some(&self.memory_anonymous),
            ComparedFigure::ProxiesConfigurationBytes => Some(&self.configuration),
            ComparedFigure::ConfiguredLastUs => Some(&self.configured_last),
            // The proxies come first in `SUMMED_ROLES`.
            ComparedFigure::ProxiesCpuCoresPer1000Rps => Some(&self.cpu[0].2),
            figure => self.of_fleets(figure).map(|(_, table)| table),
        }
    }

    fn of_fleets(&self, figure: ComparedFigure) -> Option<(FleetFigure, &FigureTable)> {
        let ComparedFigure::Fleet(figure) = figure else { return None };
        Some((figure, self.fleet.get(&figure)?))
    }
}

/// `None` if a proxy's configuration is unknown.
fn configuration_bytes(trial: &TrialRecord) -> Option<f64> {
    let proxies = trial.components.iter().filter(|usage| usage.role == Role::Proxy);
    let size =
        |usage: &ComponentUsage| Some(usage.holdings.as_ref()?.configuration.as_ref()?.size_bytes as f64);
    let sizes = proxies.map(size).collect::<Option<Vec<f64>>>()?;
    (!sizes.is_empty()).then(|| sizes.iter().sum())
}

fn configured_last_us(trial: &TrialRecord) -> Option<f64> {
    let last = trial.push.as_ref()?.in_force_s.values().copied().reduce(f64::max)?;
    Some(last * 1e6)
}

/// The smallest measurable difference between these values.
fn resolution<'a>(figure: FleetFigure, values: impl Iterator<Item = &'a f64>) -> f64 {
    if figure.is_time() { resolution_of(&values.copied().collect::<Vec<_>>()) } else { 0.0 }
}

fn time(figure: ComparedFigure) -> Option<TimeFigure> {
    match figure {
        ComparedFigure::ResponseTimeP50Us => Some(TimeFigure::P50),
        ComparedFigure::ResponseTimeP90Us => Some(TimeFigure::P90),
        ComparedFigure::ResponseTimeP99Us => Some(TimeFigure::P99),
        _ => None,
    }
}
