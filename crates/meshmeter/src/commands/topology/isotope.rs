//! Converts a topology to the file format of Istio's isotope. Properties that isotope cannot express are
//! errors if they affect requests, all reported at once, and otherwise notes.

use crate::failure::Failure;
use experiment::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::{CallStep, DEFAULT_CALL_TIMEOUT, DEFAULT_ENDPOINT, Endpoint, Step};
use experiment::topology::{Resources, Runs, Topology, Workload};
use results::units::{format_duration, format_fraction};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// Errors shown; more would add nothing.
const MAX_SHOWN: usize = 5;

/// The file, and notes about what it leaves out.
#[derive(Debug)]
pub(super) struct Converted {
    pub text: String,
    pub notes: BTreeSet<String>,
}

#[derive(Serialize)]
struct File<'a> {
    services: Vec<Service<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Service<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(rename = "type")]
    protocol: &'static str,
    num_replicas: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_entrypoint: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_rate: Option<String>,
    response_size: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    script: Vec<Command<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Command<'a> {
    Sleep(String),
    Call(Call<'a>),
    #[serde(untagged)]
    AtOnce(Vec<Command<'a>>),
}

#[derive(Serialize)]
struct Call<'a> {
    service: &'a str,
    size: u64,
    /// Whole percent; `None` means always.
    #[serde(skip_serializing_if = "Option::is_none")]
    probability: Option<u32>,
}

/// Writes a topology as an isotope file.
pub(super) fn convert(topology: &Topology) -> Result<Converted, Failure> {
    let mut writer = Writer { topology, missing: BTreeSet::new(), notes: BTreeSet::new() };
    let mut services = Vec::new();
    for (id, workload) in topology.workloads.iter().enumerate() {
        services.extend(writer.service(id, workload));
    }
    writer.check_drivers();
    if !writer.missing.is_empty() {
        let shown: Vec<&str> = writer.missing.iter().take(MAX_SHOWN).map(String::as_str).collect();
        let more = writer.missing.len() - shown.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        return Err(Failure::usage(format!("isotope cannot express: {}{more}", shown.join("; ")))
            .with_hint("`--to meshmeter` keeps everything"));
    }
    let text = serde_saphyr::to_string(&File { services }).expect("strings and numbers can be written");
    Ok(Converted { text, notes: writer.notes })
}

struct Writer<'a> {
    topology: &'a Topology,
    /// Unsupported properties that affect requests.
    missing: BTreeSet<String>,
    notes: BTreeSet<String>,
}

impl<'a> Writer<'a> {
    fn service(&mut self, id: usize, workload: &'a Workload) -> Option<Service<'a>> {
        let name = workload.qualified_name();
        let endpoint = match &workload.runs {
            Runs::Drivers => {
                self.note_left_out(workload, &name);
                return None;
            }
            Runs::Scripted(service) => match service.endpoints.as_slice() {
                [only] if only.path == DEFAULT_ENDPOINT => only.clone(),
                _ => return self.lack(format!("endpoints other than `/` ({name})")),
            },
            Runs::Service(settings) if settings.delay.is_zero() => Endpoint {
                response_bytes: Distribution::Fixed(settings.payload_bytes as f64),
                error_fraction: settings.error_fraction,
                ..Endpoint::default()
            },
            Runs::Service(_) => return self.lack(format!("a delay before the response ({name})")),
            Runs::Database => return self.lack(format!("databases ({name})")),
            Runs::ExternalService(_) => return self.lack(format!("external services ({name})")),
        };
        self.note_left_out(workload, &name);
        let protocol = match workload.protocol {
            Protocol::Http1 => "http",
            Protocol::Grpc => "grpc",
            other => return self.lack(format!("protocol {other} ({name})")),
        };
        let response_size = self.bytes(&endpoint.response_bytes, "response", &name);
        let script = self.commands(&endpoint.steps, &name);
        Some(Service {
            name: &workload.name,
            namespace: &workload.namespace,
            protocol,
            num_replicas: workload.replicas,
            is_entrypoint: self.topology.drivers.iter().any(|driver| driver.target == id),
            error_rate: (endpoint.error_fraction > 0.0).then(|| format_fraction(endpoint.error_fraction)),
            response_size,
            script,
        })
    }

    fn note_left_out(&mut self, workload: &Workload, name: &str) {
        if workload.resources != Resources::default() {
            self.notes.insert(format!("resources are left out ({name})"));
        }
        if !workload.in_mesh {
            self.notes.insert(format!("`in-mesh: false` is left out ({name})"));
        }
    }

    fn check_drivers(&mut self) {
        let mut targets = BTreeSet::new();
        for driver in &self.topology.drivers {
            if !targets.insert(driver.target) {
                let target = self.topology.workloads[driver.target].qualified_name();
                self.lack::<()>(format!("several drivers of one service ({target})"));
            }
        }
    }

    /// Steps that run one after the other.
    fn commands(&mut self, steps: &[Step], name: &str) -> Vec<Command<'a>> {
        let mut commands = Vec::new();
        for step in steps {
            match step {
                Step::Sequence(steps) => commands.extend(self.commands(steps, name)),
                step => commands.extend(self.command(step, name)),
            }
        }
        commands
    }

    fn command(&mut self, step: &Step, name: &str) -> Option<Command<'a>> {
        match step {
            Step::Call(call) => self.call(call, name).map(Command::Call),
            Step::Sleep(Distribution::Fixed(seconds)) => {
                Some(Command::Sleep(format_duration(Duration::from_secs_f64(*seconds))))
            }
            Step::Sleep(_) => self.lack(format!("a sleep from a distribution ({name})")),
            Step::Parallel(steps) => {
                let branches = steps.iter().filter_map(|step| match step {
                    Step::Sequence(steps) if steps.len() == 1 => self.command(&steps[0], name),
                    step => self.command(step, name),
                });
                Some(Command::AtOnce(branches.collect()))
            }
            Step::Sequence(_) => self.lack(format!("a parallel branch of several steps ({name})")),
            Step::Compute(_) => self.lack(format!("CPU work ({name})")),
            Step::Hold(_) => self.lack(format!("memory that is held ({name})")),
            Step::Query(_) => self.lack(format!("database queries ({name})")),
        }
    }

    fn call(&mut self, call: &CallStep, name: &str) -> Option<Call<'a>> {
        let callee = &self.topology.workloads[call.to];
        let edge = format!("{name} to {}", callee.qualified_name());
        let same_name =
            self.topology.workloads.iter().filter(|one| one.serves() && one.name == callee.name).count();
        if same_name > 1 {
            // isotope identifies a service by its name alone.
            return self.lack(format!("a call of a service whose name several namespaces have ({edge})"));
        }
        if call.retries > 0 {
            return self.lack(format!("retries ({edge})"));
        }
        if call.endpoint != DEFAULT_ENDPOINT {
            return self.lack(format!("endpoints other than `/` ({edge})"));
        }
        if call.timeout != DEFAULT_CALL_TIMEOUT {
            self.notes.insert(format!("timeouts are left out ({edge})"));
        }
        let percent = call.probability * 100.0;
        let probability = if call.probability >= 1.0 {
            None
        } else if percent >= 1.0 && (percent - percent.round()).abs() < 1e-9 {
            Some(percent.round() as u32)
        } else {
            return self
                .lack(format!("a probability that is not a whole number of percent above 0 ({edge})"));
        };
        let size = self.bytes(&call.request_bytes, "request", &edge);
        Some(Call { service: &callee.name, size, probability })
    }

    fn bytes(&mut self, size: &Distribution, of: &str, name: &str) -> u64 {
        let fixed = size.fixed();
        if fixed.is_none() {
            self.lack::<()>(format!("a {of} size from a distribution ({name})"));
        }
        fixed.unwrap_or_default().round() as u64
    }

    fn lack<T>(&mut self, what: String) -> Option<T> {
        self.missing.insert(what);
        None
    }
}
