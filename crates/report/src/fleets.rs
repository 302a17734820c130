//! Fleets of simulated proxies by cell: the same figures for the terminal and for HTML.

use crate::conditions::ConditionLabels;
use crate::format::{self, Interval, SizeUnit, TimeUnit};
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{Cell, Estimate, FleetOutageSummary, FleetSummary, FleetTimes, Metric, Summary};
use serde::Serialize;
use std::collections::BTreeSet;

/// Stages of istiod's own chain, in the order in which a change passes them, with their display names.
const STAGES: [(&str, &str); 5] = [
    ("debounce", "debounce"),
    ("push_context", "push context"),
    ("queue", "queue"),
    ("push", "push"),
    ("convergence", "istiod’s own total"),
];

/// Time that no figure of a fleet includes.
pub(crate) const NOT_INCLUDED: &str =
    "Simulated proxies apply nothing: the time in which an Envoy applies what it received is not included.";

/// Reason why proxies lose their connection by a cause, if its name does not say it.
pub(crate) fn why_lost(cause: &str) -> Option<&'static str> {
    Some(match cause {
        "grpc-resource-exhausted" => {
            "istiod refuses streams beyond its limit of new ones per second, as at every start, and they try again as Envoys do"
        }
        "grpc-unavailable" | "connection-refused" => "no istiod accepts connections, as while one restarts",
        "connection-lost" => "the connection ended without a status",
        _ => return None,
    })
}

/// Shown for a time that some proxy never reached.
const NEVER: &str = "never";

/// Every cell that has a fleet.
#[derive(Clone, Debug, Serialize)]
pub struct FleetTable {
    /// Unit of all times except those of `stages`.
    pub time_unit: &'static str,
    /// Unit of memory.
    pub memory_unit: &'static str,
    /// True if some proxies missed a configuration or a change.
    pub has_never: bool,
    /// Changes by kind, and all together: one group per cell.
    pub changes: Table,
    /// Proxies, and the time to their first complete configuration. A terminal has the control plane beside them.
    pub proxies: Table,
    /// Lost connections by cause; without rows if there were none.
    pub outages: Table,
    /// Reasons for which proxies lost their connections, by cause.
    pub reasons: Vec<String>,
    /// CPU and memory of the control plane and of the fleet.
    pub control_plane: Table,
    /// Mean of each stage of istiod's chain in ms; `None` if no istiod reported any.
    pub stages: Option<Table>,
    /// Responses by type: one group per cell.
    pub pushes: Table,
}

impl FleetTable {
    /// `None` for a run without fleets.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let with_fleet = summary.cells.iter().filter_map(|cell| Some((cell, cell.fleet.as_ref()?)));
        let fleets: Vec<Fleet<'_>> = with_fleet
            .map(|(cell, fleet)| Fleet { cell, fleet, label: labels.label(cell.conditions()) })
            .collect();
        let memory = fleets
            .iter()
            .filter_map(|one| Some(one.fleet.estimates.get(Metric::IstiodMemoryBytes)?.estimate));
        let tables = Tables {
            fleets: &fleets,
            unit: TimeUnit::for_times(fleets.iter().flat_map(|one| shown_times_us(one.fleet))),
            memory_unit: SizeUnit::for_sizes(memory),
            has_never: fleets.iter().any(|one| one.fleet.never > 0),
        };
        (!fleets.is_empty()).then(|| Self {
            time_unit: tables.unit.symbol(),
            memory_unit: tables.memory_unit.symbol(),
            has_never: tables.has_never,
            changes: tables.changes(),
            proxies: tables.proxies(),
            outages: tables.outages(),
            reasons: tables.reasons(),
            control_plane: tables.control_plane(),
            stages: tables.stages(),
            pushes: tables.pushes(),
        })
    }
}

fn shown_times_us(fleet: &FleetSummary) -> impl Iterator<Item = f64> + '_ {
    let all = [&fleet.first_configuration_us, &fleet.convergence_us];
    all.into_iter().flat_map(|times| [times.p50, times.p99, times.last]).flatten().map(|time| time.estimate)
}

/// A cell with its fleet, and a label such as `a fleet, fleet.proxies 500`.
struct Fleet<'a> {
    cell: &'a Cell,
    fleet: &'a FleetSummary,
    label: String,
}

struct Tables<'a> {
    fleets: &'a [Fleet<'a>],
    unit: TimeUnit,
    memory_unit: SizeUnit,
    has_never: bool,
}

impl Tables<'_> {
    /// One row per fleet.
    fn table(&self, columns: Vec<Column>, row: impl Fn(&Fleet<'_>) -> TableRow) -> Table {
        let rows = self.fleets.iter().map(row).collect();
        Table { columns, groups: vec![Group::new(String::new(), rows)] }
    }

    /// One group per fleet.
    fn grouped(&self, columns: Vec<Column>, rows: impl Fn(&Fleet<'_>) -> Vec<TableRow>) -> Table {
        let groups = self.fleets.iter().map(|one| Group::new(one.label.clone(), rows(one))).collect();
        Table { columns, groups }
    }

    fn changes(&self) -> Table {
        let mut columns = vec![
            Column::only_terminal(""),
            Column::name("Change"),
            Column::number("Changes").terminal("changes"),
            Column::number("Proxies"),
        ];
        columns.extend(self.has_never.then(|| Column::number("Never")));
        columns.extend(self.time_columns());
        columns.extend(self.has_never.then(|| Column::only_terminal("never")));
        let groups = self.fleets.iter().flat_map(|one| {
            let changes = one.fleet.changes.iter().map(|change| {
                let failed = match change.failed {
                    0 => String::new(),
                    failed => format!(", {failed} failed"),
                };
                let times = format!("{}{failed}", format::count(change.changes as u64));
                let never = change.convergence_us.never.into();
                let counts = [times.into(), format::count(change.expected).into(), never];
                self.change(one, &change.kind, counts, &change.convergence_us)
            });
            let all = self.change(one, "all", ["", "", ""].map(TableCell::from), &one.fleet.convergence_us);
            let all = Group { only_html: true, ..Group::new(String::new(), vec![all]) };
            [Group::new(one.label.clone(), changes.collect()), all]
        });
        Table { columns, groups: groups.collect() }
    }

    /// `counts`: changes, proxies, and proxies never reached.
    fn change(&self, one: &Fleet<'_>, kind: &str, counts: [TableCell; 3], times: &FleetTimes) -> TableRow {
        let [changes, proxies, never] = counts;
        let mut row: TableRow = vec![self.name_beside(one, kind).into(), kind.into(), changes, proxies];
        row.extend(self.has_never.then(|| never.clone()));
        row.extend(self.times(times));
        row.extend(self.has_never.then_some(never));
        row
    }

    /// Name of a row on a terminal, which has the rows of all fleets in one table.
    fn name_beside(&self, one: &Fleet<'_>, kind: &str) -> String {
        if self.fleets.len() > 1 { format!("{}, {kind}", one.label) } else { kind.to_owned() }
    }

    fn proxies(&self) -> Table {
        let mut columns = vec![
            Column::name("Fleet").terminal(""),
            Column::number("Valid"),
            Column::number("Proxies").terminal("proxies"),
            Column::only_terminal("complete"),
            Column::number("Complete"),
            Column::number("Never"),
        ];
        columns.extend(self.time_columns_of_html());
        columns.push(Column::only_terminal(&format!("configured,\nlast, {}", self.unit.symbol())));
        columns.push(Column::only_terminal("istiod\ncores"));
        columns.push(Column::only_terminal(&format!("istiod\n{}", self.memory_unit.symbol())));
        columns.push(Column::only_terminal("per proxy"));
        let wide = ["istiod\nCPU s", "API and etcd\nCPU s", "fleet\ncores"];
        columns.extend(wide.map(|heading| Column::only_terminal(heading).wide()));
        self.table(columns, |Fleet { cell, fleet, label }| {
            let converged = figure(fleet, Metric::Converged);
            let complete = match fleet.never {
                0 => converged.figure.estimate.clone(),
                never => format!("{}, {never} never", converged.figure.estimate),
            };
            let times = self.times(&fleet.first_configuration_us);
            let [.., last] = times.clone();
            let mut row: TableRow = vec![
                label.as_str().into(),
                crate::table::valid_trials(cell.valid, cell.places(), cell.retakes, "").into(),
                format::count(fleet.proxies).into(),
                complete.into(),
                converged,
                TableCell::from(fleet.never).flagged(fleet.never > 0),
            ];
            row.extend(times);
            row.extend([
                last,
                cores(fleet, Metric::IstiodCpuCores),
                self.memory(fleet, Metric::IstiodMemoryBytes),
                size(fleet.estimates.get(Metric::BytesPerProxy)),
                figure(fleet, Metric::IstiodCpuS),
                figure(fleet, Metric::ApiCpuS),
                cores(fleet, Metric::FleetCpuCores),
            ]);
            row
        })
    }

    fn outages(&self) -> Table {
        let mut columns = vec![
            Column::only_terminal(""),
            Column::name("Cause"),
            Column::number("Proxies").terminal("proxies"),
            Column::number("Never"),
        ];
        columns.extend(self.time_columns());
        columns.extend(self.has_never.then(|| Column::only_terminal("never")));
        let outages =
            self.fleets.iter().flat_map(|one| one.fleet.outages.iter().map(move |outage| (one, outage)));
        let row = |(one, outage): (&Fleet<'_>, &FleetOutageSummary)| {
            let never = outage.recovery_us.never;
            let mut row: TableRow = vec![
                self.name_beside(one, &outage.cause).into(),
                format!("{}, {}", outage.cause, one.label).into(),
                format::count(outage.proxies).into(),
                TableCell::from(never).flagged(never > 0),
            ];
            row.extend(self.times(&outage.recovery_us));
            row.extend(self.has_never.then(|| never.into()));
            row
        };
        Table { columns, groups: vec![Group::new(String::new(), outages.map(row).collect())] }
    }

    fn reasons(&self) -> Vec<String> {
        let causes =
            self.fleets.iter().flat_map(|one| one.fleet.outages.iter().map(|outage| outage.cause.as_str()));
        let causes: BTreeSet<&str> = causes.collect();
        causes.into_iter().filter_map(|cause| Some(format!("{cause}: {}.", why_lost(cause)?))).collect()
    }

    fn control_plane(&self) -> Table {
        let figures = [
            "istiod, cores",
            "istiod, CPU s",
            "istiod, memory",
            "API and etcd, CPU s",
            "Fleet, cores",
            "Fleet, memory",
            "Lag",
        ];
        let columns = std::iter::once(Column::name("Fleet")).chain(figures.map(Column::number));
        self.table(columns.chain([Column::text("Violations")]).collect(), |Fleet { fleet, label, .. }| {
            let lag = fleet.estimates.get(Metric::FleetLagP99Us);
            vec![
                label.as_str().into(),
                cores(fleet, Metric::IstiodCpuCores),
                figure(fleet, Metric::IstiodCpuS),
                self.memory(fleet, Metric::IstiodMemoryBytes),
                figure(fleet, Metric::ApiCpuS),
                cores(fleet, Metric::FleetCpuCores),
                self.memory(fleet, Metric::FleetMemoryBytes),
                TableCell::figure(lag, |lag| self.unit.interval(lag)),
                violations(fleet).into(),
            ]
        })
    }

    fn stages(&self) -> Option<Table> {
        let has = |key: &str| self.fleets.iter().any(|one| one.fleet.istiod_chain_ms.contains_key(key));
        let stages: Vec<(&str, &str)> = STAGES.into_iter().filter(|(key, _)| has(key)).collect();
        let unit = self.unit.symbol();
        let mut columns = vec![Column::name("Fleet")];
        columns.extend(stages.iter().map(|(_, name)| Column::number(name)));
        columns.push(Column::number(&format!("arrival p50, {unit}")));
        columns.push(Column::number(&format!("last, {unit}")));
        (!stages.is_empty()).then(|| {
            self.table(columns, |Fleet { fleet, label, .. }| {
                let stage = |(key, _): &(&str, &str)| {
                    TableCell::figure(fleet.istiod_chain_ms.get(*key).copied(), Interval::new)
                };
                let [p50, _, _, last] = self.times(&fleet.convergence_us);
                let name = std::iter::once(label.as_str().into());
                name.chain(stages.iter().map(stage)).chain([p50, last]).collect()
            })
        })
    }

    /// All types together come last.
    fn pushes(&self) -> Table {
        let figures = ["Pushes", "Bytes", "Resources"].map(Column::number);
        let columns = std::iter::once(Column::name("Type")).chain(figures);
        self.grouped(columns.collect(), |Fleet { fleet, .. }| {
            let per_proxy = |estimate: Option<Estimate>| {
                estimate.map(|all| all.map(|count| count / fleet.proxies.max(1) as f64))
            };
            let plain = |estimate| TableCell::figure(estimate, Interval::new);
            let by_type = fleet.pushes.iter().map(|(name, pushes)| {
                vec![
                    name.as_str().into(),
                    plain(per_proxy(pushes.count)),
                    size(per_proxy(pushes.bytes)),
                    plain(per_proxy(pushes.resources)),
                ]
            });
            let all = vec![
                "all".into(),
                figure(fleet, Metric::PushesPerProxy),
                size(fleet.estimates.get(Metric::BytesPerProxy)),
                "".into(),
            ];
            by_type.chain([all]).collect()
        })
    }

    /// Columns of [`Self::times`].
    fn time_columns(&self) -> [Column; 4] {
        let headings = ["p50", "p90", "p99", "last"];
        let mut headings = headings.into_iter();
        self.time_columns_of_html().map(|column| column.terminal(headings.next().unwrap_or_default()))
    }

    fn time_columns_of_html(&self) -> [Column; 4] {
        let unit = self.unit.symbol();
        ["p50", "p90", "p99", "Last"].map(|name| Column::number(&format!("{name}, {unit}")))
    }

    /// If some proxies were never reached, the last one has no time.
    fn times(&self, times: &FleetTimes) -> [TableCell; 4] {
        [times.p50, times.p90, times.p99, times.last].map(|estimate| match estimate {
            None if times.never > 0 => NEVER.into(),
            estimate => TableCell::figure(estimate, |time| self.unit.interval(time)),
        })
    }

    fn memory(&self, fleet: &FleetSummary, metric: Metric) -> TableCell {
        let factor = 1.0 / self.memory_unit.bytes();
        TableCell::figure(fleet.estimates.get(metric), |bytes| Interval::scaled(bytes, factor))
    }
}

fn figure(fleet: &FleetSummary, metric: Metric) -> TableCell {
    TableCell::figure(fleet.estimates.get(metric), Interval::new)
}

fn cores(fleet: &FleetSummary, metric: Metric) -> TableCell {
    TableCell::figure(fleet.estimates.get(metric), format::cores_interval)
}

fn size(bytes: Option<Estimate>) -> TableCell {
    bytes.map_or_else(|| format::ABSENT.to_owned(), |bytes| format::size(bytes.estimate)).into()
}

/// Rejected responses, and violations by kind.
fn violations(fleet: &FleetSummary) -> String {
    let rejected = (fleet.rejections > 0)
        .then(|| format::counted(fleet.rejections, "response rejected", "responses rejected"));
    let kinds = fleet.violations.iter().map(|(kind, count)| format!("{kind} {}", format::count(*count)));
    let all: Vec<String> = rejected.into_iter().chain(kinds).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
