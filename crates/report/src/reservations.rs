//! What pods reserve and how much of it they used, per mode under its highest load: the same figures for the
//! terminal and for HTML.

use crate::drivers::groups;
use crate::format::{self, Interval, SizeUnit};
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{Cell, Estimate, GroupReservation, ReservationSummary, Summary};
use serde::Serialize;

/// Reserved and used resources.
#[derive(Clone, Debug, Serialize)]
pub struct ReservationTable {
    /// Unit of memory.
    pub memory_unit: &'static str,
    /// One group per mode and values of the factors, one row per group of containers.
    pub table: Table,
}

impl ReservationTable {
    /// The table of a run; `None` if its topology reserves nothing.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let cells = highest_loads(summary);
        let reserved = cells.iter().filter_map(|cell| cell.reserved.as_ref());
        let unit = SizeUnit::for_sizes(
            reserved.flat_map(|all| all.groups.iter().map(|one| one.reserved_memory_bytes)),
        );
        let columns = vec![
            Column::name("Group").terminal(""),
            Column::number("Containers").terminal("containers"),
            Column::number("CPU reserved").terminal("CPU, cores"),
            Column::number("CPU used").terminal("used"),
            Column::number("Share").terminal("share"),
            Column::number("Memory reserved").terminal(&format!("memory, {}", unit.symbol())),
            Column::number("Memory used").terminal("used"),
            Column::number("Share").terminal("share"),
        ];
        let group = |cell: &Cell, place: String| {
            let reserved = cell.reserved.iter();
            let rows = reserved.clone().flat_map(|all| &all.groups).map(|group| row(group, unit)).collect();
            Group { note: reserved.map(counts).collect(), ..Group::new(place, rows) }
        };
        let table = Table { columns, groups: groups(summary, &cells, group) };
        (!cells.is_empty()).then(|| Self { memory_unit: unit.symbol(), table })
    }
}

/// Per mode and values of the factors, the cell with the highest load, preferably a valid one.
fn highest_loads(summary: &Summary) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = Vec::new();
    let is_reserved = |cell: &&Cell| cell.reserved.as_ref().is_some_and(ReservationSummary::is_reserved);
    for cell in summary.cells.iter().filter(is_reserved) {
        let is_same = |known: &&mut &Cell| (known.mode, &known.factors) == (cell.mode, &cell.factors);
        match cells.iter_mut().find(is_same) {
            // Cells are sorted by load.
            Some(known) if cell.valid > 0 || known.valid == 0 => *known = cell,
            Some(_) => {}
            None => cells.push(cell),
        }
    }
    cells
}

fn counts(reserved: &ReservationSummary) -> String {
    let counted = |count: usize, one: &str, several: &str| format::counted(count as u64, one, several);
    [
        counted(reserved.namespaces, "namespace", "namespaces"),
        counted(reserved.services, "service", "services"),
        counted(reserved.workloads, "workload", "workloads"),
        counted(reserved.pods, "pod", "pods"),
        counted(reserved.containers, "container", "containers"),
        counted(reserved.proxies, "proxy", "proxies"),
    ]
    .join(", ")
}

/// Used shares are empty if nothing is reserved.
fn row(group: &GroupReservation, unit: SizeUnit) -> TableRow {
    let in_unit = |bytes: &Estimate| Interval::new(&bytes.map(|bytes| bytes / unit.bytes()));
    let share = |used: Option<Estimate>, reserved: f64| {
        let used = used.filter(|_| reserved > 0.0);
        used.map_or_else(String::new, |used| format::percent(used.estimate / reserved))
    };
    vec![
        group.group.name().into(),
        group.containers.into(),
        format::cores_number(group.reserved_cpu_cores).into(),
        TableCell::figure(group.used_cpu_cores, format::cores_interval),
        share(group.used_cpu_cores, group.reserved_cpu_cores).into(),
        format::digits(group.reserved_memory_bytes / unit.bytes()).into(),
        TableCell::figure(group.used_memory_bytes, in_unit),
        share(group.used_memory_bytes, group.reserved_memory_bytes).into(),
    ]
}
