//! What pods reserve and how much of it they used, per mode under its highest load: the same figures for the
//! terminal and for HTML.

use crate::conditions::ConditionLabels;
use crate::format::{self, Interval, SizeUnit};
use results::{Cell, Estimate, GroupReservation, Mode, ReservationSummary, Summary};
use serde::Serialize;

/// Reserved and used resources.
#[derive(Clone, Debug, Serialize)]
pub struct ReservationTable {
    /// Unit of memory.
    pub memory_unit: &'static str,
    /// One cell per mode and values of the factors.
    pub cells: Vec<ReservationCell>,
}

/// Reservations of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct ReservationCell {
    /// Name of the mode.
    pub mode: &'static str,
    /// Load such as `450/s`.
    pub load: String,
    /// Counts: `5 namespaces, 20 services, …`.
    pub counts: String,
    /// One row per group of containers.
    pub rows: Vec<ReservationRow>,
}

/// A group of containers.
#[derive(Clone, Debug, Serialize)]
pub struct ReservationRow {
    /// `app`, `generators` or `mesh`.
    pub name: &'static str,
    /// Number of containers.
    pub containers: usize,
    /// CPU requests in cores.
    pub reserved_cpu: String,
    /// CPU used, in cores.
    pub used_cpu: Interval,
    /// Used share of the reserved CPU; empty if nothing is reserved.
    pub cpu_share: String,
    /// Memory requests, in the table's unit.
    pub reserved_memory: String,
    /// Working set, in the table's unit.
    pub used_memory: Interval,
    /// Used share of the reserved memory; empty if nothing is reserved.
    pub memory_share: String,
}

impl ReservationTable {
    /// The table of a run; `None` if its topology reserves nothing.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let cells: Vec<(&Cell, &ReservationSummary)> = highest_loads(summary);
        let unit = SizeUnit::for_sizes(
            cells
                .iter()
                .flat_map(|(_, reserved)| reserved.groups.iter().map(|group| group.reserved_memory_bytes)),
        );
        let row = |group: &GroupReservation| row(group, unit);
        (!cells.is_empty()).then(|| Self {
            memory_unit: unit.symbol(),
            cells: cells
                .iter()
                .map(|(cell, reserved)| ReservationCell {
                    mode: Mode::name(cell.mode),
                    load: labels.label(cell.conditions()),
                    counts: counts(reserved),
                    rows: reserved.groups.iter().map(row).collect(),
                })
                .collect(),
        })
    }
}

/// Per mode and values of the factors, the cell with the highest load, preferably a valid one.
fn highest_loads(summary: &Summary) -> Vec<(&Cell, &ReservationSummary)> {
    let mut cells: Vec<(&Cell, &ReservationSummary)> = Vec::new();
    for cell in &summary.cells {
        let Some(reserved) = cell.reserved.as_ref().filter(|reserved| reserved.is_reserved()) else {
            continue;
        };
        let is_same = |known: &&mut (&Cell, &ReservationSummary)| {
            (known.0.mode, &known.0.factors) == (cell.mode, &cell.factors)
        };
        match cells.iter_mut().find(is_same) {
            // Cells are sorted by load.
            Some(known) if cell.valid > 0 || known.0.valid == 0 => *known = (cell, reserved),
            Some(_) => {}
            None => cells.push((cell, reserved)),
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

fn row(group: &GroupReservation, unit: SizeUnit) -> ReservationRow {
    let absent = || Interval { estimate: format::ABSENT.to_owned(), range: None };
    let in_unit = |bytes: &Estimate| Interval::new(&bytes.map(|bytes| bytes / unit.bytes()));
    let share = |used: Option<Estimate>, reserved: f64| {
        let used = used.filter(|_| reserved > 0.0);
        used.map_or_else(String::new, |used| format::percent(used.estimate / reserved))
    };
    ReservationRow {
        name: group.group.name(),
        containers: group.containers,
        reserved_cpu: format::cores_number(group.reserved_cpu_cores),
        used_cpu: group.used_cpu_cores.as_ref().map_or_else(absent, format::cores_interval),
        cpu_share: share(group.used_cpu_cores, group.reserved_cpu_cores),
        reserved_memory: format::digits(group.reserved_memory_bytes / unit.bytes()),
        used_memory: group.used_memory_bytes.as_ref().map_or_else(absent, in_unit),
        memory_share: share(group.used_memory_bytes, group.reserved_memory_bytes),
    }
}
