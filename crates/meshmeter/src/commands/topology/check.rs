//! `meshmeter topology check`.

use super::{output, source};
use crate::cli::CheckArgs;
use crate::failure::Failure;
use experiment::topology::{Resources, Runs, Topology, Workload};
use report::format;
use report::graph::Folding;
use serde::Serialize;
use std::fmt::Write as _;

/// Rows of a table on the terminal.
const MAX_ROWS: usize = 30;

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let topology = source::read(&args.source)?;
    let checked = Checked::new(&topology)?;
    let text = if args.json {
        serde_json::to_string_pretty(&checked).expect("plain data") + "\n"
    } else {
        checked.describe(&Folding::of_identical_namespaces(&topology))
    };
    output::write(&text, None)
}

/// What there is to say of a topology.
#[derive(Debug, Serialize)]
struct Checked {
    name: String,
    namespaces: usize,
    services: usize,
    databases: usize,
    clients: usize,
    pods: usize,
    calls: usize,
    drivers: usize,
    /// Every service and database.
    workloads: Vec<CheckedWorkload>,
    reserved: Reserved,
}

#[derive(Debug, Serialize)]
struct CheckedWorkload {
    #[serde(skip)]
    id: usize,
    name: String,
    namespace: String,
    protocol: &'static str,
    replicas: usize,
    /// Expected where each driver sends one request.
    requests: f64,
}

/// Sums over all pods of what their workloads reserve and may use.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Reserved {
    cpu_request_cores: f64,
    memory_request_bytes: u64,
    cpu_limit_cores: f64,
    memory_limit_bytes: u64,
}

impl Reserved {
    fn of(workloads: &[Workload]) -> Self {
        let mut sum = Self::default();
        for Workload { resources, replicas, .. } in workloads {
            let Resources { cpu_request_cores, cpu_limit_cores, memory_request_bytes, memory_limit_bytes } =
                *resources;
            sum.cpu_request_cores += cpu_request_cores.unwrap_or_default() * *replicas as f64;
            sum.cpu_limit_cores += cpu_limit_cores.unwrap_or_default() * *replicas as f64;
            sum.memory_request_bytes += memory_request_bytes.unwrap_or_default() * *replicas as u64;
            sum.memory_limit_bytes += memory_limit_bytes.unwrap_or_default() * *replicas as u64;
        }
        sum
    }
}

impl Checked {
    fn new(topology: &Topology) -> Result<Self, Failure> {
        let expected = topology.expected_of_all().map_err(|error| Failure::from_wrong_use(&error))?;
        let count = |choose: fn(&Runs) -> bool| {
            topology.workloads.iter().filter(|workload| choose(&workload.runs)).count()
        };
        let serving = topology.workloads.iter().enumerate().filter(|(_, workload)| workload.serves());
        let workloads = serving.map(|(id, workload)| CheckedWorkload {
            id,
            name: workload.name.clone(),
            namespace: workload.namespace.clone(),
            protocol: if matches!(workload.runs, Runs::Database) {
                "mongodb"
            } else {
                workload.protocol.name()
            },
            replicas: workload.replicas,
            requests: expected.workloads.get(&id).copied().unwrap_or_default(),
        });
        Ok(Self {
            name: topology.name.clone(),
            namespaces: topology.namespaces().len(),
            services: count(|runs| !matches!(runs, Runs::Drivers | Runs::Database)),
            databases: count(|runs| matches!(runs, Runs::Database)),
            clients: count(|runs| matches!(runs, Runs::Drivers)),
            pods: topology.pods(),
            calls: topology.calls.len(),
            drivers: topology.drivers.len(),
            workloads: workloads.collect(),
            reserved: Reserved::of(&topology.workloads),
        })
    }

    fn describe(&self, folding: &Folding) -> String {
        let parts = [
            (self.services, "service", "services"),
            (self.databases, "database", "databases"),
            (self.clients, "client", "clients"),
            (self.namespaces, "namespace", "namespaces"),
            (self.pods, "pod", "pods"),
            (self.calls, "call", "calls"),
            (self.drivers, "driver", "drivers"),
        ];
        let parts = parts.iter().filter(|(number, ..)| *number > 0);
        let parts: Vec<String> =
            parts.map(|(number, one, many)| format::counted(*number as u64, one, many)).collect();
        let mut text = format!("{}: {}\n\n", self.name, parts.join(", "));
        self.describe_requests(folding, &mut text);
        text
    }

    fn describe_requests(&self, folding: &Folding, text: &mut String) {
        let drawn: Vec<&CheckedWorkload> =
            self.workloads.iter().filter(|workload| folding.drawn_as(workload.id) == workload.id).collect();
        let mut rows = vec![
            ["service", "namespace", "protocol", "pods", "requests per driver request"].map(str::to_owned),
        ];
        for workload in drawn.iter().take(MAX_ROWS) {
            rows.push([
                workload.name.clone(),
                folding.caption(&workload.namespace),
                workload.protocol.to_owned(),
                workload.replicas.to_string(),
                format::tick(workload.requests),
            ]);
        }
        text.push_str(&table(&rows));
        if drawn.len() > MAX_ROWS {
            let _ = writeln!(text, "… and {} more (--json has all)", drawn.len() - MAX_ROWS);
        }
    }
}

/// Columns beside each other; those that hold nothing are left out.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let is_used = |column: &usize| rows.iter().skip(1).any(|row| !row[*column].is_empty());
    let columns: Vec<usize> = (0..N).filter(is_used).collect();
    let mut text = String::new();
    for row in rows {
        let cells = columns.iter().map(|column| format!("{:<1$}", row[*column], width(*column)));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}
