use super::*;
use experiment::Protocol;
use experiment::settings::service::ServerSettings;
use experiment::topology::script::{CallStep, DEFAULT_ENDPOINT, Endpoint, ScriptedService, Step};
use experiment::topology::{DriverPlacement, Resources, Runs, Workload, pair};

/// A topology from `caller callee` pairs of qualified names. Names that begin with `client` are drivers, with
/// `db` databases.
fn topology(name: &str, edges: &[(&str, &str)]) -> Topology {
    let mut topology = Topology { name: name.to_owned(), ..Topology::default() };
    for (from, to) in edges {
        let call = Call { from: workload(&mut topology, from), to: workload(&mut topology, to) };
        topology.calls.push(call);
        match &mut topology.workloads[call.from].runs {
            Runs::Scripted(service) => service.endpoints[0].steps.push(Step::Call(CallStep::new(call.to))),
            _ => topology.drivers.push(DriverPlacement {
                name: format!("generator-{}", topology.drivers.len()),
                at: call.from,
                target: call.to,
                endpoint: DEFAULT_ENDPOINT.to_owned(),
            }),
        }
    }
    topology
}

fn workload(topology: &mut Topology, qualified_name: &str) -> WorkloadId {
    if let Some(id) = topology.find(qualified_name) {
        return id;
    }
    let (namespace, name) = qualified_name.split_once('/').unwrap_or(("", qualified_name));
    let runs = if name.starts_with("client") {
        Runs::Drivers
    } else if name.starts_with("db") {
        Runs::Database
    } else {
        Runs::Scripted(ScriptedService { endpoints: vec![Endpoint::default()] })
    };
    topology.workloads.push(Workload {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        replicas: 1,
        protocol: Protocol::default(),
        resources: Resources::default(),
        in_mesh: !matches!(runs, Runs::Database),
        runs,
    });
    topology.workloads.len() - 1
}

/// `count` namespaces of A > B1, B2 > C.
fn tiers(count: usize) -> Topology {
    let edges: Vec<(String, String)> = (1..=count)
        .flat_map(|number| {
            [("client", "a"), ("a", "b1"), ("a", "b2"), ("b1", "c"), ("b2", "c")]
                .map(|(from, to)| (format!("tiered-{number}/{from}"), format!("tiered-{number}/{to}")))
        })
        .collect();
    let edges: Vec<(&str, &str)> = edges.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    topology("tiered", &edges)
}

/// Two lines on every edge of the first copy.
fn figures(topology: &Topology) -> Figures {
    let mut figures = Figures::default();
    let calls = topology.calls.len() as f64;
    for (index, call) in topology.calls.iter().enumerate() {
        let lines = vec![format!("{}/s", 120 + index), "p99 1.2 ms".to_owned()];
        let call_figures = CallFigures { lines, weight: index as f64 / calls, emphasised: index == 3 };
        figures.calls.insert(*call, call_figures);
    }
    for id in 0..topology.workloads.len() {
        let lines = vec!["0.05 cores".to_owned()];
        figures.workloads.insert(id, WorkloadFigures { lines, emphasised: id == 2 });
    }
    figures
}

/// A graph of services in which every service except the first is called by two earlier ones, with a cycle
/// and a call to itself.
fn random(services: u64) -> Topology {
    let mut state = 1u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut edges = vec![("client".to_owned(), "s0".to_owned())];
    for service in 1..services {
        let callers = [below(service), below(service)];
        edges.push((format!("s{}", callers[0]), format!("s{service}")));
        if callers[0] != callers[1] {
            edges.push((format!("s{}", callers[1]), format!("s{service}")));
        }
    }
    edges.push((format!("s{}", services - 1), "s0".to_owned()));
    edges.push(("s3".to_owned(), "s3".to_owned()));
    edges.push(("s3".to_owned(), "db".to_owned()));
    let edges: Vec<(&str, &str)> = edges.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    topology("random", &edges)
}

#[test]
fn fifty_copies_fold_into_one() {
    let topology = tiers(50);
    let folding = Folding::of_identical_namespaces(&topology);
    assert!(folding.is_folded());
    assert_eq!(folding.drawn_as(5 * 49 + 2), 2);
    let file = draw_file(&topology, &folding, &figures(&topology));
    assert!(file.contains("tiered-1 … tiered-50  × 50"), "{file}");
    assert_eq!(file.matches("class=\"edge").count(), 5);
    let all = draw_file(&topology, &Folding::none(&topology), &Figures::default());
    assert_eq!(all.matches("class=\"edge").count(), 250);
}

#[test]
fn namespaces_that_differ_are_all_drawn() {
    let mut topology = tiers(3);
    topology.workloads[4].replicas = 2;
    let folding = Folding::of_identical_namespaces(&topology);
    let drawn: Vec<WorkloadId> = folding.workloads().collect();
    assert_eq!(drawn, (0..10).collect::<Vec<_>>());
}

#[test]
fn namespaces_that_share_a_callee_fold() {
    let mut topology = tiers(3);
    let shared = workload(&mut topology, "shared/db");
    for copy in 0..3 {
        topology.calls.push(Call { from: copy * 5 + 4, to: shared });
    }
    let folding = Folding::of_identical_namespaces(&topology);
    assert_eq!(folding.calls(&topology).last(), Some(&Call { from: 4, to: shared }));
    assert_eq!(folding.calls(&topology).len(), 6);
}

#[test]
fn namespaces_that_call_each_other_fold_together() {
    let edges = (1..=3).flat_map(|copy| {
        [("client", "web"), ("web", "old"), ("old", "db")].map(|(from, to)| {
            let name = |name| format!("{}-{copy}/{name}", if name == "old" { "legacy" } else { "shop" });
            (name(from), name(to))
        })
    });
    let edges: Vec<(String, String)> = edges.collect();
    let edges: Vec<(&str, &str)> = edges.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let topology = topology("shop", &edges);
    let folding = Folding::of_identical_namespaces(&topology);
    assert_eq!(folding.workloads().count(), 4);
    assert_eq!(folding.caption("legacy-1"), "legacy-1 … legacy-3  × 3");
}

#[test]
fn mermaid_and_dot_have_every_workload_and_call() {
    let mut topology = tiers(2);
    topology.workloads[1].replicas = 3;
    topology.workloads[6].replicas = 3;
    let folding = Folding::of_identical_namespaces(&topology);
    insta::assert_snapshot!("mermaid", mermaid(&topology, &folding));
    insta::assert_snapshot!("dot", dot(&topology, &folding));
}

#[test]
fn drawing_with_figures_matches_snapshots() {
    let topology = tiers(2);
    let folding = Folding::of_identical_namespaces(&topology);
    let labels = Labels { id: "graph", title: "Calls" };
    let svg = draw(&topology, &folding, &figures(&topology), labels).replace("><", ">\n<");
    insta::assert_snapshot!("svg", svg);
}

#[test]
fn names_and_figures_are_escaped() {
    let mut topology = pair(1, 1, Protocol::default(), &ServerSettings::default(), false, None);
    topology.name = "<script>".to_owned();
    topology.workloads[1].name = "</text><script>\"`".to_owned();
    topology.workloads[1].namespace = "<script>".to_owned();
    let folding = Folding::none(&topology);
    let mut figures = Figures::default();
    figures.workloads.insert(1, WorkloadFigures { lines: vec!["<script>".to_owned()], emphasised: false });
    figures.calls.insert(
        topology.calls[0],
        CallFigures { lines: vec!["<script>".to_owned()], weight: f64::NAN, emphasised: false },
    );
    let texts = [draw_file(&topology, &folding, &figures), mermaid(&topology, &folding)];
    for text in texts {
        assert!(!text.contains("<script") && !text.contains("NaN"), "{text}");
    }
    assert!(dot(&topology, &folding).contains("label=\"</text><script>\\\"`\""));
}

#[test]
fn empty_topology_is_an_empty_drawing() {
    let topology = Topology::default();
    let file = draw_file(&topology, &Folding::of_identical_namespaces(&topology), &Figures::default());
    assert!(file.contains("</svg>"));
}

#[test]
fn drawing_of_thousand_services_with_cycles_is_deterministic() {
    let topology = random(1000);
    let folding = Folding::of_identical_namespaces(&topology);
    let first = draw_file(&topology, &folding, &figures(&topology));
    assert_eq!(first.matches("class=\"node").count(), 1002);
    assert!(first == draw_file(&topology, &folding, &figures(&topology)));
}
