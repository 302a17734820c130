//! Tests of topology files: reading, rejection with messages, and round trips.

use super::{TopologyFile, read};
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use crate::topology::distribution::Distribution;
use crate::topology::script::{
    CallStep, DEFAULT_CALL_TIMEOUT, Endpoint, QueryOperation, QueryStep, ScriptedService, Step,
};
use crate::topology::{DriverPlacement, Resources, Runs, Topology, Workload, pair};
use proptest::prelude::*;
use std::fmt::Write;
use std::time::Duration;

const SHOP: &str = "\
name: shop
defaults:
  resources: {requests: {cpu: 100m, memory: 50Mi}, limits: {cpu: 1}}
  response: 620
services:
  - name: web
    namespace: shop
    replicas: 2
    in-mesh: true
    endpoints:
      /:
        script:
          - parallel:
              - call: b1
              - [{call: b2}, {sleep: 1ms}]
          - sleep: {uniform: [1ms, 5ms]}
          - cpu: 200us
          - memory: 1MiB
          - query: {database: db, find: flights, documents: 10, size: 512, timeout: 5s}
        response: {exponential: 4KiB}
        error-rate: 0.1%
      /list:
        script:
          - call: {service: b1, endpoint: /list, size: 1KiB, probability: 50%, retries: 1, timeout: 1s}
          - call: other/b3
  - {name: b1, namespace: shop, protocol: grpc, endpoints: {/: {}, /list: {response: 100}}}
  - {name: b2, namespace: shop, protocol: tcp}
  - {name: b3, namespace: other, script: [{sleep: {log-normal: {median: 1ms, p99: 20ms}}}, {sleep: {exponential: 3ms}}]}
databases:
  - {name: db, namespace: shop}
drivers:
  - {name: generator, in: client, target: shop/web, endpoint: /list}
clients:
  - {name: client, in-mesh: false, resources: {requests: {cpu: 500m}, limits: {cpu: 2}}}
";

fn rendered(text: &str) -> String {
    read(text, "shop.yaml").unwrap_err().render(false)
}

#[test]
fn native_file_reads_every_key() {
    let shop = read(SHOP, "shop.yaml").unwrap();
    let names: Vec<String> = shop.workloads.iter().map(Workload::qualified_name).collect();
    assert_eq!(names, ["shop/client", "shop/web", "shop/b1", "shop/b2", "shop/db", "other/b3"]);
    let web = &shop.workloads[1];
    assert_eq!((web.replicas, web.resources.memory_request_bytes), (2, Some(50 << 20)));
    let root = &web.script().unwrap().endpoints[0];
    assert_eq!(root.steps.len(), 5);
    assert!(matches!(&root.steps[0], Step::Parallel(branches) if matches!(branches[1], Step::Sequence(_))));
    assert_eq!(root.response_bytes, Distribution::Exponential { mean: 4096.0 });
    let client = &shop.workloads[0];
    assert_eq!(client.resources.cpu_limit_cores, Some(2.0));
    assert!(!client.in_mesh);
    let edges: Vec<(usize, usize)> = shop.calls.iter().map(|call| (call.from, call.to)).collect();
    assert_eq!(edges, [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)]);
    assert_eq!(read(&shop.to_yaml(), "again").unwrap(), shop);
    insta::assert_snapshot!(shop.to_yaml());
}

#[test]
fn small_file_gets_driver_at_root_and_name_of_file() {
    let small = read("services: [{name: b}, {name: a, script: [call: b]}]", "studies/My_chain.yaml").unwrap();
    assert_eq!(small.name, "my-chain");
    assert_eq!(
        small.drivers,
        [DriverPlacement { name: "generator".into(), at: 0, target: 2, endpoint: "/".into() }]
    );
    assert_eq!(small.workloads[0].name, "client");
}

#[test]
fn invalid_files_report_place_and_expectation() {
    let services = |services: &str| format!("name: shop\nservices:\n{services}");
    let mut all = String::new();
    for text in [
        String::new(),
        "name: shop".to_owned(),
        "services: []".to_owned(),
        "[1, 2]".to_owned(),
        services("  - name: web\n    replica: 3\n"),
        services("  - {name: web, replicas: 0}\n"),
        services("  - {name: Web_1}\n"),
        services("  - {name: web, namespace: -a}\n"),
        services("  - {name: web}\n  - {name: web}\n"),
        services("  - {name: web, protocol: http}\n"),
        services("  - {name: web, script: [{call: bakend}]}\n  - {name: backend}\n"),
        services("  - {name: web, namespace: a, script: [{call: db1}]}\n  - {name: db1, namespace: b}\n"),
        services(
            "  - {name: web, script: [{call: {service: b, endpoint: /lst}}]}\n  - {name: b, endpoints: {/list: {}, /: {}}}\n",
        ),
        services("  - {name: web, script: [{query: {database: d, find: x}}]}\n"),
        services("  - {name: web, script: [{query: {database: b, find: x}}]}\n  - {name: b}\n"),
        services("  - {name: web, script: [{call: db}]}\ndatabases: [{name: db}]\n"),
        services("  - {name: web, script: [{query: {database: db}}]}\ndatabases: [{name: db}]\n"),
        services(
            "  - {name: web, script: [{query: {database: db, find: a, insert: b}}]}\ndatabases: [{name: db}]\n",
        ),
        services(
            "  - {name: a, script: [{call: b}]}\n  - {name: b, script: [{call: c}]}\n  - {name: c, script: [{call: a}]}\n",
        ),
        services(
            "  - {name: a, script: [{call: {service: a, probability: 60%}}, {call: {service: a, probability: 60%}}]}\ndrivers: [{target: a}]\n",
        ),
        services("  - {name: a, script: [{call: {service: b, probability: 120%}}]}\n  - {name: b}\n"),
        services(
            "  - {name: a, script: [{call: {service: b, size: 1}}]}\n  - {name: b, protocol: tcp, response: 10}\n",
        ),
        services(
            "  - {name: a, script: [{call: {service: b, endpoint: /x}}]}\n  - {name: b, protocol: tcp, response: 10}\n",
        ),
        services("  - {name: b, protocol: tcp}\n"),
        services("  - {name: b, protocol: tcp, response: {exponential: 10}}\n"),
        services("  - {name: b, response: 2GiB}\n"),
        services("  - {name: b, response: {uniform: [5, 1]}}\n"),
        services("  - {name: b, response: {uniform: [5, 10], exponential: 1}}\n"),
        services("  - {name: b, script: [{sleep: 5}]}\n"),
        services("  - {name: b, script: [{sleep: 2h}]}\n"),
        services("  - {name: b, script: [{sleep: 5ms, cpu: 5ms}]}\n"),
        services("  - {name: b, script: [{slep: 5ms}]}\n"),
        services("  - {name: b, script: [sleep]}\n"),
        services("  - {name: b, script: {sleep: 1ms}}\n"),
        services("  - {name: b, script: [{parallel: []}]}\n"),
        services("  - {name: b, error-rate: 101%}\n"),
        services("  - {name: b, endpoints: {list: {}}}\n"),
        services("  - {name: b, protocol: grpc, endpoints: {/a/b: {}}}\n"),
        services("  - {name: b, response: 1, endpoints: {/: {}}}\n"),
        services("  - {name: b, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}\n"),
        services("  - {name: b}\ndrivers: [{name: generator}]\n"),
        services("  - {name: b}\ndrivers: [{target: c}]\n"),
        services("  - {name: b}\ndrivers: [{target: b}, {target: b}]\n"),
        services("  - {name: b}\ndrivers: [{target: b, in: b}]\n"),
        services("  - {name: b}\ndrivers: [{target: b, in: load}]\nclients: [{name: client}]\n"),
        services("  - {name: b}\ndrivers: [{target: b, endpoint: /x}]\n"),
        services("  - {name: b}\ndrivers: []\n"),
        services("  - {name: b, isEntrypoint: true, protocol: grpc}\n"),
    ] {
        writeln!(all, "{}\n", rendered(&text)).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn files_too_large_or_too_deep_are_rejected() {
    let many: String =
        (0..10_001).fold("services:\n".into(), |text, number| text + &format!("- name: s{number}\n"));
    let deep = format!("services: [{{name: a, script: {}{}}}]", "[".repeat(20), "]".repeat(20));
    let pods = "services: [{name: a, replicas: 1001}]";
    assert!(read(&" ".repeat(super::MAX_FILE_BYTES + 1), "a").unwrap_err().message.contains("too large"));
    assert!(read(&many, "a").unwrap_err().label.contains("10000"));
    assert!(read(&deep, "a").unwrap_err().message.contains("too deep"));
    assert!(read(pods, "a").unwrap_err().label.contains("1 to 1000"));
}

#[test]
fn deepest_script_reads_back() {
    let nested = |levels: usize, item: &str| {
        let open: String = (0..levels).map(|_| "[{parallel: ").collect();
        format!("{open}{item}{}", "}]".repeat(levels))
    };
    let item = "[{call: {service: b, size: {uniform: [1, 2]}}}]";
    let file = |levels| {
        format!(
            "services: [{{name: a, endpoints: {{/x: {{script: {}}}}}}}, {{name: b}}]",
            nested(levels, item)
        )
    };
    let deepest = read(&file(super::MAX_NESTING), "deep").unwrap();
    assert_eq!(read(&deepest.to_yaml(), "again").unwrap(), deepest);
    assert!(read(&file(super::MAX_NESTING + 1), "deep").is_err());
}

#[test]
fn recursion_that_dies_out_is_read() {
    let text =
        "{services: [{name: a, script: [{call: {service: a, probability: 90%}}]}], drivers: [{target: a}]}";
    let topology = read(text, "a").unwrap();
    let expected = topology.expected("generator").unwrap();
    assert!((expected.workloads[&1] - 10.0).abs() < 1e-6, "{expected:?}");
}

#[test]
fn nested_lists_in_isotope_scripts_are_parallel() {
    let text =
        "services: [{name: a, isEntrypoint: true, script: [[{sleep: 1ms}, [{sleep: 2ms}, {sleep: 3ms}]]]}]";
    let topology = read(text, "nested.yaml").unwrap();
    let steps = &topology.workloads[topology.find("a").unwrap()].script().unwrap().endpoints[0].steps;
    let Step::Parallel(branches) = &steps[0] else { panic!("{steps:?}") };
    assert!(matches!(&branches[1], Step::Parallel(nested) if nested.len() == 2), "{branches:?}");
}

#[test]
fn isotope_shapes_are_read_with_their_own_units() {
    let canonical = "\
defaults:
  requestSize: 1 KB
  responseSize: 128
  numReplicas: 2
  numRbacPolicies: 3
  script:
  - sleep: 10ms
services:
- name: a
  type: grpc
- name: b
  errorRate: 0.01%
- name: c
  script:
  - call: {service: a, probability: 5, size: 2k}
  - call: b
- name: d
  isEntrypoint: true
  cluster: cluster1
  script:
  - - call: a
    - call: c
  - call: {service: b, hostname: 'b:8080', probability: 0}
";
    let file = TopologyFile::read(canonical, "canonical.yaml").unwrap();
    let d = file.topology.find("d").unwrap();
    assert_eq!(file.topology.drivers[0].target, d);
    assert_eq!(file.topology.pods(), 9);
    let steps = &file.topology.workloads[d].script().unwrap().endpoints[0].steps;
    let Step::Parallel(branches) = &steps[0] else { panic!("{steps:?}") };
    assert!(matches!(&branches[0], Step::Call(call) if call.request_bytes == Distribution::Fixed(1024.0)));
    assert!(matches!(&steps[1], Step::Call(call) if call.probability == 1.0));
    let c = file.topology.find("c").unwrap();
    let Step::Call(first) = &file.topology.workloads[c].script().unwrap().endpoints[0].steps[0] else {
        panic!()
    };
    assert_eq!((first.probability, first.request_bytes), (0.05, Distribution::Fixed(2048.0)));
    let a = &file.topology.workloads[file.topology.find("a").unwrap()];
    assert_eq!(a.protocol, Protocol::Grpc);
    assert_eq!(a.script().unwrap().endpoints[0].steps, [Step::Sleep(Distribution::Fixed(0.01))]);
    insta::assert_snapshot!(file.notes.join("\n"), @r"
    `cluster` of services has no effect
    `hostname` of calls has no effect: a service is reached by its own name, without further headers
    `numRbacPolicies` of services has no effect
    ");
    let expected = file.topology.expected("generator").unwrap();
    assert!((expected.workloads[&file.topology.find("b").unwrap()] - 2.0).abs() < 1e-9);
    assert_eq!(read(&file.topology.to_yaml(), "again").unwrap(), file.topology);
}

#[test]
fn isotope_namespaces_and_large_trees_are_read() {
    let namespaces = "\
services:
- {isEntrypoint: true, name: a, namespace: demo1, script: [call: {service: b, hostname: 'b.demo2:8080'}]}
- {name: b, namespace: demo2}
";
    let topology = read(namespaces, "two").unwrap();
    assert_eq!(topology.namespaces(), ["demo1", "demo2"]);
    let mut tree = String::from(
        "defaults: {numReplicas: 2}\nservices:\n- isEntrypoint: true\n  name: svc-0\n  script:\n",
    );
    for number in 0..999 {
        let dash = if number == 0 { "- -" } else { "  -" };
        writeln!(tree, "  {dash} call: svc-0-{number}").unwrap();
    }
    (0..999).for_each(|number| writeln!(tree, "- name: svc-0-{number}").unwrap());
    let topology = read(&tree, "tree").unwrap();
    assert_eq!((topology.workloads.len(), topology.pods(), topology.calls.len()), (1001, 2001, 1000));
    assert_eq!(read(&topology.to_yaml(), "again").map(|again| again == topology), Ok(true));
}

#[test]
fn long_chain_is_read() {
    let mut chain = String::from("services:\n");
    for number in 0..5000 {
        writeln!(chain, "- {{name: s{number}, script: [call: s{}]}}", number + 1).unwrap();
    }
    chain.push_str("- name: s5000\n");
    let topology = read(&chain, "chain").unwrap();
    assert_eq!(topology.expected("generator").unwrap().workloads.len(), 5001);
}

#[test]
fn pair_is_written_as_equivalent_script() {
    let server = ServerSettings { delay: Duration::from_millis(2), ..ServerSettings::default() };
    let topology = pair(2, 2, Protocol::Http1, &server, false, None);
    let read = read(&topology.to_yaml(), "pair").unwrap();
    assert_eq!(read.calls, topology.calls);
    assert_eq!(read.drivers, topology.drivers);
    let endpoint = &read.workloads[1].script().unwrap().endpoints[0];
    assert_eq!(endpoint.steps, [Step::Sleep(Distribution::Fixed(0.002))]);
    assert_eq!(endpoint.response_bytes, Distribution::Fixed(1024.0));
}

#[test]
fn copies_have_their_own_namespaces() {
    let chain = read("services: [{name: a, script: [call: b]}, {name: b}]", "chain.yaml").unwrap();
    let copies = chain.clone().copies(3);
    assert_eq!(copies.namespaces(), ["chain-1", "chain-2", "chain-3"]);
    assert_eq!(copies.drivers[2].name, "chain-3/generator");
    let edges: Vec<(usize, usize)> = copies.calls.iter().map(|call| (call.from, call.to)).collect();
    assert_eq!(edges, [(0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8)]);
    assert_eq!(read(&copies.to_yaml(), "again").unwrap(), copies);
    assert_eq!(chain.clone().copies(1), chain);
    let expected = copies.expected_of_all().unwrap();
    assert!(expected.edges.values().all(|requests| *requests == 1.0));
}

#[test]
fn drivers_with_same_name_get_namespace_prefix() {
    let drivers = |text: &str| -> Vec<String> {
        let topology = read(text, "t.yaml").unwrap();
        topology.drivers.into_iter().map(|driver| driver.name).collect()
    };
    let services = "services: [{name: a, namespace: x}, {name: b, namespace: y}]\n";
    assert_eq!(
        drivers(&format!(
            "{services}drivers: [{{target: x/a}}, {{target: y/b}}, {{name: g, target: y/b}}]\n"
        )),
        ["x/generator", "y/generator", "g"],
    );
    assert_eq!(drivers(&format!("{services}drivers: [{{target: x/a}}]\n")), ["generator"]);
}

/// Amounts that a file can express: whole bytes, whole microseconds.
fn amount(unit: f64) -> impl Strategy<Value = Distribution> {
    let whole = move || {
        (1_u32..1_000_000)
            .prop_map(move |amount| Duration::from_micros(amount.into()).as_secs_f64() * unit)
            .prop_map(move |amount| if unit > 1.0 { amount.round() } else { amount })
    };
    prop_oneof![
        whole().prop_map(Distribution::Fixed),
        (whole(), whole())
            .prop_map(|(one, other)| Distribution::Uniform { low: one.min(other), high: one.max(other) }),
        whole().prop_map(|mean| Distribution::Exponential { mean }),
        (whole(), whole())
            .prop_map(|(one, other)| Distribution::LogNormal { median: one.min(other), p99: one.max(other) }),
    ]
}

/// Step whose calls go to the workloads from `first` on: services at `services`, databases after them.
fn step(callees: std::ops::Range<usize>, database: usize) -> impl Strategy<Value = Step> {
    let call = (callees, amount(1e6), 0.001_f64..=1.0, 0_u32..3, 1_u64..100_000).prop_map(
        |(to, request_bytes, probability, retries, timeout_us)| {
            Step::Call(CallStep {
                to,
                endpoint: "/".into(),
                request_bytes,
                probability,
                retries,
                timeout: Duration::from_micros(timeout_us),
            })
        },
    );
    let query =
        (0_u32..3, 1_u32..100, 0.001_f64..=1.0).prop_map(move |(operation, documents, probability)| {
            Step::Query(QueryStep {
                to: database,
                operation: [QueryOperation::Find, QueryOperation::Insert, QueryOperation::Update]
                    [operation as usize],
                collection: "flights".into(),
                documents,
                document_bytes: documents * 7,
                probability,
                timeout: DEFAULT_CALL_TIMEOUT,
            })
        });
    let leaf = prop_oneof![
        call,
        query,
        amount(1.0).prop_map(Step::Sleep),
        amount(1.0).prop_map(Step::Compute),
        amount(1e6).prop_map(Step::Hold),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let branch = prop_oneof![inner.clone(), prop::collection::vec(inner, 1..3).prop_map(Step::Sequence)];
        prop::collection::vec(branch, 1..3).prop_map(Step::Parallel)
    })
    .prop_filter("a sequence is a branch", |step| !matches!(step, Step::Sequence(_)))
}

fn resources() -> impl Strategy<Value = Resources> {
    (prop::option::of(1_u32..2000), prop::option::of(1_u64..1 << 40)).prop_map(|(thousandths, bytes)| {
        Resources {
            cpu_request_cores: thousandths.map(|cores| f64::from(cores) / 1000.0),
            cpu_limit_cores: thousandths.map(|cores| f64::from(cores + 1) / 1000.0),
            memory_request_bytes: bytes,
            memory_limit_bytes: None,
        }
    })
}

/// Services that call later ones, a database and a client per namespace.
fn any_topology() -> impl Strategy<Value = Topology> {
    (1_usize..5, any::<bool>()).prop_flat_map(|(count, has_namespaces)| {
        let services: Vec<_> = (0..count)
            .map(|id| {
                let callees = if id + 1 < count { id + 1..count } else { count..count + 1 };
                let steps = prop::collection::vec(step(callees, count + 1), 0..3);
                (
                    steps,
                    amount(1e6),
                    0.0_f64..=1.0,
                    resources(),
                    1_usize..4,
                    any::<bool>(),
                    0_usize..3,
                    0_usize..2,
                )
                    .boxed()
            })
            .collect();
        services.prop_map(move |services| {
            let namespace_of =
                |number: usize| if has_namespaces { format!("n{number}") } else { String::new() };
            let mut workloads: Vec<Workload> = services
                .into_iter()
                .enumerate()
                .map(
                    |(
                        id,
                        (
                            steps,
                            response_bytes,
                            error_fraction,
                            resources,
                            replicas,
                            in_mesh,
                            protocol,
                            namespace,
                        ),
                    )| {
                        let endpoint = Endpoint { path: "/".into(), steps, response_bytes, error_fraction };
                        let other = Endpoint { path: "/other".into(), ..Endpoint::default() };
                        let endpoints = if replicas == 2 { vec![other, endpoint] } else { vec![endpoint] };
                        Workload {
                            name: format!("s{id}"),
                            namespace: namespace_of(namespace),
                            replicas,
                            protocol: Protocol::ALL[protocol],
                            resources,
                            runs: Runs::Scripted(ScriptedService { endpoints }),
                            in_mesh,
                        }
                    },
                )
                .collect();
            // Callees of the last service: the database, and the driver's client.
            let last = Workload {
                name: "last".into(),
                runs: Runs::Scripted(ScriptedService { endpoints: vec![Endpoint::default()] }),
                ..workloads[0].clone()
            };
            let database = Workload {
                name: "db".into(),
                protocol: Protocol::Tcp,
                replicas: 1,
                runs: Runs::Database,
                in_mesh: false,
                ..last.clone()
            };
            let client = Workload {
                name: "client".into(),
                replicas: 1,
                runs: Runs::Drivers,
                resources: Resources { cpu_limit_cores: Some(0.5), ..Resources::default() },
                ..last.clone()
            };
            workloads.extend([last, database, client]);
            let drivers = vec![DriverPlacement {
                name: "generator".into(),
                at: workloads.len() - 1,
                target: 0,
                endpoint: "/".into(),
            }];
            Topology { name: "any".into(), workloads, calls: Vec::new(), drivers }.arranged()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn written_topologies_read_back(topology in any_topology(), copies in 1_usize..4) {
        let topology = topology.copies(copies);
        let written = topology.to_yaml();
        let again = read(&written, "again").map_err(|error| TestCaseError::fail(error.render(false) + &written))?;
        prop_assert_eq!(again, topology, "{}", written);
    }

    #[test]
    fn reader_does_not_panic_on_any_text(text in "(services: )?[-\\[\\]{}a-z:, \n/0-9%]{0,80}") {
        let _ = read(&text, "text");
    }
}
