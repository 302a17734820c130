//! `meshmeter topology check`.

use super::machine::{Machine, Take};
use super::{output, source};
use crate::cli::CheckArgs;
use crate::failure::Failure;
use experiment::topology::needs::Reserved;
use experiment::topology::{Runs, Topology, Workload};
use report::format;
use report::graph::Folding;
use serde::Serialize;
use std::fmt::Write as _;

/// Maximum rows of a table on the terminal.
const MAX_ROWS: usize = 30;

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let topology = source::read(&args.source)?;
    let checked = Checked::new(&topology)?;
    let text = if args.json {
        crate::output::json(&checked)
    } else {
        checked.describe(&Folding::of_identical_namespaces(&topology))
    };
    output::write(&text, None)
}

/// Output of the check, also as JSON.
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
    /// All services and databases.
    workloads: Vec<CheckedWorkload>,
    /// All edges, including those of drivers.
    edges: Vec<CheckedCall>,
    reserved_by_services: Reservation,
    reserved_by_clients: Reservation,
    machine: Machine,
    data_planes: Vec<Take>,
}

#[derive(Debug, Serialize)]
struct CheckedCall {
    from: String,
    to: String,
    /// Expected requests if each driver sends one request.
    requests: f64,
}

#[derive(Debug, Serialize)]
struct CheckedWorkload {
    #[serde(skip)]
    id: usize,
    name: String,
    namespace: String,
    protocol: &'static str,
    replicas: usize,
    /// Expected requests if each driver sends one request.
    requests: f64,
}

/// Resources reserved by the pods of services and of clients.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Reservation {
    cpu_cores: f64,
    memory_bytes: u64,
}

impl From<Reserved> for Reservation {
    fn from(Reserved { cpu_cores, memory_bytes }: Reserved) -> Self {
        Self { cpu_cores, memory_bytes }
    }
}

impl Checked {
    fn new(topology: &Topology) -> Result<Self, Failure> {
        let expected = topology.expected_of_all().map_err(|error| Failure::from_usage(&error))?;
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
        let edges = topology.calls.iter().map(|call| CheckedCall {
            from: topology.workloads[call.from].qualified_name(),
            to: topology.workloads[call.to].qualified_name(),
            requests: expected.edges.get(call).copied().unwrap_or_default(),
        });
        let edges = edges.collect();
        let size = topology.size();
        let machine = Machine::read()?;
        Ok(Self {
            name: topology.name.clone(),
            namespaces: size.namespaces,
            services: count(|runs| !matches!(runs, Runs::Drivers | Runs::Database)),
            databases: count(|runs| matches!(runs, Runs::Database)),
            clients: count(|runs| matches!(runs, Runs::Drivers)),
            pods: size.pods,
            calls: size.calls,
            drivers: size.drivers,
            workloads: workloads.collect(),
            edges,
            reserved_by_services: topology.reserved(Workload::serves).into(),
            reserved_by_clients: topology.reserved(|workload| !workload.serves()).into(),
            machine,
            data_planes: machine.takes(topology),
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
        self.describe_reservations(&mut text);
        self.describe_machine(&mut text);
        text
    }

    fn describe_reservations(&self, text: &mut String) {
        let reserved = [("services", self.reserved_by_services), ("clients", self.reserved_by_clients)];
        let reserved = reserved.iter().filter(|(_, sum)| sum.cpu_cores > 0.0 || sum.memory_bytes > 0);
        let parts: Vec<String> = reserved
            .map(|(of, Reservation { cpu_cores, memory_bytes })| {
                format!("{of} {} cores and {}", format::tick(*cpu_cores), format::size(*memory_bytes as f64))
            })
            .collect();
        if !parts.is_empty() {
            let _ = writeln!(text, "\nReserved (requests of containers): {}", parts.join(", "));
        }
    }

    fn describe_machine(&self, text: &mut String) {
        let Machine { cores, memory_bytes, memory_available_bytes } = self.machine;
        let _ = writeln!(
            text,
            "\nOn this machine: {}, {} of memory, {} of it available",
            format::counted(cores as u64, "core", "cores"),
            format::size(memory_bytes as f64),
            format::size(memory_available_bytes as f64)
        );
        let mut rows = vec![["mode", "containers", "proxies", "memory", ""].map(str::to_owned)];
        for take in &self.data_planes {
            rows.push([
                take.mode.to_owned(),
                take.containers.to_string(),
                take.proxies.to_string(),
                format!("about {}", format::size(take.memory_bytes as f64)),
                if take.fits { "fits" } else { "does not fit" }.to_owned(),
            ]);
        }
        text.push_str(&table(&rows));
        let reserved = self.reserved_by_services.cpu_cores + self.reserved_by_clients.cpu_cores;
        if reserved > cores as f64 {
            let _ = writeln!(
                text,
                "The {} reserved cores are more than this machine has. A lab reserves none: its pods share what there is.",
                format::tick(reserved)
            );
        }
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

/// Aligned columns; empty columns are left out.
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
