//! Hand-built topologies, and their nodes on loopback, each on its own thread.

use experiment::protocol::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::{CallStep, Endpoint, ScriptedService, Step};
use experiment::topology::{Resources, Runs, Topology, Workload, WorkloadId};
use serde_json::Value;
use service::Counters;
use service::node::{Node, NodeSettings};
use std::collections::BTreeMap;
use std::io::{PipeWriter, Read as _, Write as _, pipe};
use std::net::{SocketAddr, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Timeout of every wait in a test: only a failing wait takes this long.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);

pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A service with the endpoint `/`, which responds with 100 bytes.
pub fn service(name: &str, protocol: Protocol, steps: Vec<Step>) -> Workload {
    let endpoint = Endpoint { steps, response_bytes: Distribution::Fixed(100.0), ..Endpoint::default() };
    with_endpoints(name, protocol, vec![endpoint])
}

pub fn with_endpoints(name: &str, protocol: Protocol, endpoints: Vec<Endpoint>) -> Workload {
    Workload {
        name: name.to_owned(),
        namespace: String::new(),
        replicas: 1,
        protocol,
        resources: Resources::default(),
        runs: Runs::Scripted(ScriptedService { endpoints }),
        in_mesh: true,
    }
}

pub fn topology(workloads: Vec<Workload>) -> Topology {
    Topology { name: "test".to_owned(), workloads, ..Topology::default() }
}

pub fn call(to: WorkloadId) -> Step {
    Step::Call(CallStep::new(to))
}

/// A running node.
pub struct Running {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    stop: PipeWriter,
    thread: JoinHandle<Counters>,
}

impl Running {
    pub fn start(settings: &NodeSettings) -> Self {
        let node = Node::bind(settings).unwrap();
        let (address, admin) = (node.address(), node.admin_address());
        let (stopped, stop) = pipe().unwrap();
        let thread = spawn(move || node.run(stopped).unwrap());
        Self { address, admin, stop, thread }
    }

    /// Stops it, and returns its counters.
    pub fn end(self) -> Counters {
        drop(self.stop);
        self.thread.join().unwrap()
    }

    /// Response of its admin endpoint for this path.
    pub fn shown(&self, path: &str) -> String {
        let (status, body) = get(self.admin, path);
        assert_eq!(status, 200, "{body}");
        body
    }

    pub fn counters(&self) -> Value {
        serde_json::from_str(&self.shown("/meshmeter/counters")).unwrap()
    }

    /// One of its counters of calls.
    pub fn calls(&self, callee: &str, count: &str) -> u64 {
        self.counters()["calls"][callee][count].as_u64().unwrap()
    }
}

pub fn settings(topology: &Topology, service: WorkloadId) -> NodeSettings {
    NodeSettings {
        topology: topology.clone(),
        service,
        listen: LOOPBACK,
        admin_listen: LOOPBACK,
        connect: BTreeMap::new(),
        database_authority: None,
        threads: 1,
        seed: Some(1),
    }
}

/// Starts all nodes of a topology in which callers precede their callees.
pub fn start(topology: &Topology) -> Vec<Running> {
    start_with(topology, |_| ())
}

pub fn start_with(topology: &Topology, change: impl Fn(&mut NodeSettings)) -> Vec<Running> {
    let mut connect = BTreeMap::new();
    let mut nodes = Vec::new();
    for service in (0..topology.workloads.len()).rev() {
        let mut settings = NodeSettings { connect: connect.clone(), ..settings(topology, service) };
        change(&mut settings);
        let node = Running::start(&settings);
        connect.insert(service, node.address.to_string());
        nodes.push(node);
    }
    nodes.reverse();
    nodes
}

/// An HTTP/1.1 request on a new connection: status and body.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    get_with(address, path, "")
}

/// `fields`: header field lines, each with its line end.
pub fn get_with(address: SocketAddr, path: &str, fields: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
