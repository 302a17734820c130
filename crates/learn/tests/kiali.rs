//! Graphs of Kiali: each call once, with the rates, errors and protocols of its edges, and what the graph cannot say as findings.

use experiment::Protocol;
use learn::kiali::{self, KialiError};
use learn::{Learned, Objects, Options, Telemetry, learn};

/// A node of a workload in the namespace `shop`.
fn workload(name: &str, more: &str) -> String {
    format!(
        r#"{{"data":{{"id":"{name}","nodeType":"workload","cluster":"Kubernetes","namespace":"shop","workload":"{name}","app":"{name}"{more}}}}}"#
    )
}

fn service(id: &str, name: &str, namespace: &str, more: &str) -> String {
    format!(
        r#"{{"data":{{"id":"{id}","nodeType":"service","namespace":"{namespace}","service":"{name}"{more}}}}}"#
    )
}

const OUTSIDE: &str = r#"{"data":{"id":"?","nodeType":"unknown","namespace":"unknown","workload":"unknown","app":"unknown","isRoot":true}}"#;

/// An edge with rates, and further fields.
fn edge(from: &str, to: &str, protocol: &str, rates: &str, more: &str) -> String {
    format!(
        r#"{{"data":{{"id":"{from}-{to}-{protocol}","source":"{from}","target":"{to}"{more},"traffic":{{"protocol":"{protocol}","rates":{{{rates}}}}}}}}}"#
    )
}

fn http(from: &str, to: &str, rate: f64, more: &str) -> String {
    edge(from, to, "http", &format!(r#""http":"{rate:.2}","httpPercentReq":"50.0""#), more)
}

fn graph(kind: &str, nodes: &[String], edges: &[String]) -> String {
    format!(
        r#"{{"timestamp":1800003600,"duration":600,"graphType":"{kind}","elements":{{"nodes":[{}],"edges":[{}]}}}}"#,
        nodes.join(","),
        edges.join(",")
    )
}

fn read(text: &str) -> Result<Telemetry, KialiError> {
    let mut telemetry = Telemetry::new(None);
    kiali::read(&mut telemetry, text.as_bytes())?;
    Ok(telemetry)
}

fn learned(text: &str) -> Learned {
    let options = Options { name: "shop".to_owned(), scale: 1.0, least_share: 0.0 };
    learn(&read(text).unwrap(), &Objects::default(), &options).unwrap()
}

/// Calls with their rates.
fn rates(learned: &Learned) -> Vec<(String, f64)> {
    let rate = |value: f64| (value * 1e6).round() / 1e6;
    let edges = learned.provenance.edges.iter();
    edges.map(|edge| (format!("{} {}", edge.from, edge.to), rate(edge.figures["rate"].value))).collect()
}

fn expected(rates: &[(&str, f64)]) -> Vec<(String, f64)> {
    rates.iter().map(|(names, rate)| ((*names).to_owned(), *rate)).collect()
}

#[test]
fn calls_have_the_rates_errors_times_and_protocols_of_their_edges() {
    let nodes = [
        OUTSIDE.to_owned(),
        workload("web", ""),
        workload("cart", ""),
        workload("ads", ""),
        workload("db", r#","isOutOfMesh":true"#),
    ];
    let errors =
        r#""http":"20.00","http3xx":"1.00","http4xx":"4.00","http5xx":"1.50","httpNoResponse":"0.50""#;
    let grpc = r#"{"data":{"id":"e","source":"web","target":"ads","traffic":{"protocol":"grpc","rates":{"grpc":"5.00","grpcErr":"3.00"},
        "responses":{"0":{"flags":{"-":"40.0"}},"5":{"flags":{"-":"50.0"}},"14":{"flags":{"UF":"6.0","UO":"4.0"}}}}}}"#;
    let edges = [
        http("?", "web", 10.0, r#","responseTime":"9""#),
        edge("web", "cart", "http", errors, r#","responseTime":"3""#),
        grpc.to_owned(),
        edge("cart", "db", "tcp", r#""tcp":"4096.00""#, ""),
    ];
    let found = learned(&graph("workload", &nodes, &edges));
    assert_eq!(
        rates(&found),
        expected(&[
            ("shop/outside shop/web", 10.0),
            ("shop/cart shop/db", 1.0),
            ("shop/web shop/ads", 5.0),
            ("shop/web shop/cart", 20.0),
        ])
    );
    let explained = |name: &str| found.provenance.explain(name).unwrap();
    assert!(
        explained("web:cart").contains("errors: 0.1 fraction: Kiali's graph"),
        "{}",
        explained("web:cart")
    );
    assert!(explained("web:cart").contains("calls per request: 2"), "{}", explained("web:cart"));
    assert!(explained("web:ads").contains("errors: 0.1 fraction"), "status 5 is the client's");
    assert!(
        explained("cart").contains("duration: 0.003 (0.003–0.003) s: Kiali's graph, responseTime"),
        "{}",
        explained("cart")
    );
    assert!(explained("web").contains("own time: 0.003"), "9 ms less two calls of 3: {}", explained("web"));
    assert!(
        explained("cart:db").contains("one connection per second is assumed"),
        "{}",
        explained("cart:db")
    );
    let workload = |name: &str| &found.topology.workloads[found.topology.find(name).unwrap()];
    assert_eq!(workload("shop/ads").protocol, Protocol::Grpc);
    assert_eq!((workload("shop/db").protocol, workload("shop/db").in_mesh), (Protocol::Tcp, false));
    assert!(["shop/web", "shop/cart", "shop/ads"].iter().all(|name| workload(name).in_mesh));
    for kind in ["missing-sizes", "missing-times", "missing-metric", "order"] {
        assert!(found.provenance.findings.iter().any(|finding| finding.kind == kind), "{kind}");
    }
    assert_eq!((found.provenance.period_s, found.provenance.period_end_s), (600.0, 1_800_003_600.0));
}

#[test]
fn injected_services_and_operations_are_no_ends() {
    let nodes = [
        workload("web", ""),
        workload("app", ""),
        service("s", "reviews", "shop", ""),
        r#"{"data":{"id":"a","nodeType":"aggregate","namespace":"shop","app":"reviews","aggregate":"request_operation=Top"}}"#.to_owned(),
        workload("reviews-v1", ""),
        workload("reviews-v2", ""),
    ];
    let edges = [
        http("web", "s", 8.0, ""),
        http("app", "a", 2.0, ""),
        http("a", "s", 2.0, ""),
        http("s", "reviews-v1", 7.5, r#","responseTime":"4""#),
        http("s", "reviews-v2", 2.5, r#","responseTime":"8""#),
    ];
    let found = learned(&graph("workload", &nodes, &edges));
    assert_eq!(
        rates(&found),
        expected(&[
            ("shop/app shop/reviews-v1", 1.5),
            ("shop/app shop/reviews-v2", 0.5),
            ("shop/web shop/reviews-v1", 6.0),
            ("shop/web shop/reviews-v2", 2.0),
        ])
    );
    assert!(found.provenance.explain("reviews-v2").unwrap().contains("duration: 0.008 "));
    // The same without a caller: somebody outside.
    let found = learned(&graph("workload", &nodes, &edges[3..]));
    assert_eq!(
        rates(&found),
        expected(&[("shop/outside shop/reviews-v1", 7.5), ("shop/outside shop/reviews-v2", 2.5)])
    );
}

#[test]
fn hosts_services_without_workloads_and_waypoints_are_what_they_are() {
    let nodes = [
        workload("web", ""),
        workload("cart", ""),
        workload("gate", r#","isWaypoint":true"#),
        service("x", "api.bank.example", "shop", r#","isServiceEntry":{"location":"MESH_EXTERNAL"}"#),
        service("d", "dead", "shop", ""),
        service("p", "PassthroughCluster", "unknown", ""),
        service("u", "unknown", "unknown", ""),
    ];
    let edges = [
        http("web", "cart", 10.0, r#","waypoint":{}"#),
        edge("web", "gate", "tcp", r#""tcp":"100.00""#, r#","waypoint":{"direction":"to"}"#),
        edge("gate", "cart", "tcp", r#""tcp":"50.00""#, r#","waypoint":{"direction":"from"}"#),
        edge("web", "cart", "tcp", r#""tcp":"50.00""#, ""),
        http("web", "x", 1.0, ""),
        http("web", "d", 2.0, ""),
        http("web", "p", 3.0, ""),
        http("web", "u", 4.0, ""),
    ];
    let found = learned(&graph("workload", &nodes, &edges));
    assert_eq!(
        rates(&found),
        expected(&[
            ("shop/web external/api-bank-example", 1.0),
            ("shop/web shop/cart", 10.0),
            ("shop/web shop/dead", 2.0),
        ])
    );
    let lost = found.provenance.findings.iter().find(|finding| finding.kind == "missing-destinations");
    assert!(lost.unwrap().text.contains("7 requests/s"), "{lost:?}");
}

#[test]
fn graphs_of_services_and_of_older_versions_are_read() {
    let nodes = [service("w", "web", "shop", ""), service("c", "cart", "shop", "")];
    let found = learned(&graph("service", &nodes, &[http("w", "c", 3.0, "")]));
    assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 3.0)]));
    let old = [workload("web", r#","hasMissingSC":true"#), workload("cart", r#","isServiceEntry":null"#)];
    let found = learned(&graph("workload", &old, &[http("web", "cart", 3.0, "")]));
    assert!(!found.topology.workloads[found.topology.find("shop/web").unwrap()].in_mesh);
}

#[test]
fn names_can_be_hashed() {
    let mut telemetry = Telemetry::new(Some(learn::Anonymiser::new(b"a salt of ours")));
    let nodes = [workload("web", ""), service("x", "api.bank.example", "unknown", r#","isServiceEntry":{}"#)];
    let text = graph("workload", &nodes, &[http("web", "x", 3.0, "")]);
    kiali::read(&mut telemetry, text.as_bytes()).unwrap();
    let options = Options { name: "learned".to_owned(), scale: 1.0, least_share: 0.0 };
    let found = learn(&telemetry, &Objects::default(), &options).unwrap();
    let all = found.yaml + &serde_json::to_string(&found.provenance).unwrap();
    assert!(!all.contains("web") && !all.contains("bank"), "{all}");
}

#[test]
fn damaged_and_other_inputs_are_refused() {
    let error = |text: &str| read(text).unwrap_err().to_string();
    for text in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"duration":60,"elements":{"nodes":[]}}"#,
        r#"{"status":"success","data":{}}"#,
    ] {
        assert!(error(text).starts_with("not a graph of Kiali: "), "{text}: {}", error(text));
        assert!(!error(text).contains("struct"), "{text}: {}", error(text));
    }
    assert_eq!(
        error(r#"{"error":"Invalid appender [x]"}"#),
        "Kiali answered with an error: Invalid appender [x]"
    );
    let web = [workload("web", "")];
    let missing = error(&graph("workload", &web, &[http("web", "gone", 1.0, "")]));
    assert!(missing.contains("the edge `web-gone-http` has no node `gone`"), "{missing}");
    assert!(error(&graph("workload", &web, &[]).replace("600", "0")).contains("its `duration` is 0"));
    let unusable =
        [edge("web", "web", "http", r#""http":"NaN""#, ""), edge("web", "web", "quic", r#""quic":"1""#, "")];
    let nothing = error(&graph("workload", &web, &unusable));
    for text in [
        "the graph has no request and no connection that can be used: ",
        "1 edge of the graph has values that are not usable numbers",
        "1 edge of the graph has the unknown protocol `quic`",
    ] {
        assert!(nothing.contains(text), "{text}: {nothing}");
    }
    let idle = [edge("web", "web", "quic", r#""quic":"0.00""#, ""), http("web", "web", 0.0, "")];
    let telemetry = read(&graph("workload", &web, &idle)).unwrap();
    let options = Options { name: "shop".to_owned(), scale: 1.0, least_share: 0.0 };
    assert_eq!(learn(&telemetry, &Objects::default(), &options), Err(learn::LearnError::Nothing));
}

#[test]
fn unusable_errors_are_counted_and_a_byte_order_mark_is_skipped() {
    let nodes = [workload("web", ""), workload("cart", "")];
    for errors in ["NaN", "-1.00", "many"] {
        let own = format!(r#""http":"20.00","http5xx":"{errors}""#);
        let text = graph("workload", &nodes, &[edge("web", "cart", "http", &own, "")]);
        let found = learned(&format!("\u{feff}{text}"));
        assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 20.0)]), "{errors}");
        let finding = found.provenance.findings.iter().find(|finding| finding.kind == "unusable-rows");
        let text = &finding.unwrap().text;
        assert_eq!(text, "1 edge of the graph has values that are not usable numbers", "{errors}");
    }
}

#[test]
fn services_that_call_each_other_in_circles_end() {
    let nodes: Vec<String> =
        (0..40).map(|number| service(&format!("s{number}"), &format!("s{number}"), "shop", "")).collect();
    let nodes: Vec<String> = [workload("web", "")].into_iter().chain(nodes).collect();
    let pairs = (0..40).flat_map(|from| (0..40).map(move |to| (from, to)));
    let mut edges: Vec<String> =
        pairs.map(|(from, to)| http(&format!("s{from}"), &format!("s{to}"), 1.0, "")).collect();
    edges.push(http("web", "s0", 1.0, ""));
    assert!(matches!(read(&graph("workload", &nodes, &edges)), Err(KialiError::TooMuch(_))));
}
