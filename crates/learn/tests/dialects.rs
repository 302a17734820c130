//! Metrics of Linkerd, of Cilium's Hubble, and of other versions and installations of Istio: each call once.

use experiment::Protocol;
use learn::prometheus::{Reader, queries};
use learn::{LearnError, Learned, Objects, Options, Telemetry, learn};

/// Row of a query's result, over an hour.
fn row(metric: &str, labels: &str, value: f64) -> String {
    format!(r#"{{"metric":{{"meshmeter":"{metric} 3600s",{labels}}},"value":[1800003600,"{value}"]}}"#)
}

/// Row of raw samples, over an hour.
fn raw(metric: &str, labels: &str, value: f64) -> String {
    let values: Vec<String> = (0..=60)
        .map(|minute| format!(r#"[{},"{}"]"#, 1_800_000_000 + minute * 60, value * f64::from(minute) / 60.0))
        .collect();
    format!(r#"{{"metric":{{"__name__":"{metric}",{labels}}},"values":[{}]}}"#, values.join(","))
}

fn read(rows: &[String]) -> Result<Learned, LearnError> {
    let mut reader = Reader::new(Telemetry::new(None));
    let text = format!(r#"{{"status":"success","data":{{"result":[{}]}}}}"#, rows.join(","));
    reader.read(text.as_bytes()).unwrap();
    let options = Options { name: "shop".to_owned(), scale: 1.0, least_share: 0.0 };
    learn(&reader.finish(), &Objects::default(), &options)
}

fn learned(rows: &[String]) -> Learned {
    read(rows).unwrap()
}

/// Calls with their rates.
fn rates(learned: &Learned) -> Vec<(String, f64)> {
    let edges = learned.provenance.edges.iter();
    let rate = |value: f64| (value * 1e6).round() / 1e6;
    edges.map(|edge| (format!("{} {}", edge.from, edge.to), rate(edge.figures["rate"].value))).collect()
}

fn expected(rates: &[(&str, f64)]) -> Vec<(String, f64)> {
    rates.iter().map(|(names, rate)| ((*names).to_owned(), *rate)).collect()
}

fn texts<'a>(learned: &'a Learned, kind: &str) -> Vec<&'a str> {
    let findings = learned.provenance.findings.iter().filter(|finding| finding.kind == kind);
    findings.map(|finding| finding.text.as_str()).collect()
}

type MakeRow = fn(&str, &str, f64) -> String;

/// Linkerd's metrics: an unmeshed gateway calls web 10 times per second, web cart 20 times, cart a database over TCP once.
fn linkerd(make: MakeRow) -> Vec<String> {
    let inbound = |name: &str, more: &str| {
        format!(
            r#""direction":"inbound","namespace":"shop","deployment":"{name}","pod":"{name}-5d8","target_port":"8080","tls":"no_identity","srv_name":"all-authenticated","route_name":"default"{more}"#
        )
    };
    let outbound = |from: &str, to: &str, more: &str| {
        format!(
            r#""direction":"outbound","namespace":"shop","deployment":"{from}","pod":"{from}-5d8","target_port":"8080","tls":"true",{to},"dst_namespace":"shop","dst_pod":"x"{more}"#
        )
    };
    let cart = r#""dst_deployment":"cart","dst_service":"cart""#;
    let database = r#""dst_statefulset":"db","dst_service":"db""#;
    let good = r#","classification":"success","status_code":"200","grpc_status":"","error":"""#;
    let failed = r#","classification":"failure","status_code":"503","grpc_status":"","error":"""#;
    let grpc = r#","classification":"success","status_code":"200","grpc_status":"0","error":"""#;
    let mut rows = vec![
        make("response_total", &inbound("web", good), 32_400.0),
        make("response_total", &inbound("web", failed), 3600.0),
        make("response_total", &outbound("web", cart, grpc), 72_000.0),
        make("response_total", &inbound("cart", grpc), 72_000.0),
        make("response_total", &inbound("web", good).replace(r#""default""#, r#""probe""#), 360.0),
        make("response_total", &inbound("web", good).replace("8080", "4191"), 120.0),
        make("tcp_open_total", &outbound("web", cart, r#","peer":"dst""#), 2.0),
        make("tcp_open_total", &outbound("cart", database, r#","peer":"dst""#), 3600.0),
        make("tcp_open_total", &outbound("cart", database, r#","peer":"src""#), 3600.0),
        make("tcp_open_total", &inbound("db", r#","peer":"src""#), 3600.0),
        make("tcp_read_bytes_total", &outbound("cart", database, r#","peer":"dst""#), 3_600_000.0),
        make("tcp_write_bytes_total", &outbound("cart", database, r#","peer":"dst""#), 360_000.0),
    ];
    // The caller's proxy sees 8 ms, the callee's 4 ms.
    for (labels, ms) in [(outbound("web", cart, ""), 8.0), (inbound("cart", ""), 4.0)] {
        for (bound, count) in [("1", 0.0), ("10", 72_000.0), ("+Inf", 72_000.0)] {
            rows.push(make("response_latency_ms_bucket", &format!(r#"{labels},"le":"{bound}""#), count));
        }
        rows.push(make("response_latency_ms_sum", &labels, 72_000.0 * ms));
        rows.push(make("response_latency_ms_count", &labels, 72_000.0));
    }
    rows
}

#[test]
fn queries_leave_out_what_is_no_call_of_linkerd() {
    let texts: Vec<String> = queries(3600).into_iter().map(|query| query.text).collect();
    for expected in [
        "(increase(tcp_open_total{direction=\"outbound\", peer=\"dst\"}[3600s])) > 0",
        "(increase(response_total{direction=~\"inbound|outbound\", route_name!=\"probe\", target_port!=\"4191\"}[3600s])) > 0",
        "destination_app, status) (increase(hubble_http_requests_total[3600s])) > 0",
    ] {
        assert!(texts.iter().any(|text| text.contains(expected)), "{expected}");
    }
}

#[test]
fn linkerd_calls_are_learned_once_from_results_and_from_raw_samples() {
    for make in [row as MakeRow, raw] {
        let found = learned(&linkerd(make));
        let calls =
            [("shop/cart shop/db", 1.0), ("shop/outside shop/web", 10.0), ("shop/web shop/cart", 20.0)];
        let mut rates = rates(&found);
        rates.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(rates, expected(&calls));
        let protocol = |name: &str| found.topology.find(name).map(|id| found.topology.workloads[id].protocol);
        assert_eq!(protocol("shop/cart"), Some(Protocol::Grpc));
        assert_eq!(protocol("shop/db"), Some(Protocol::Tcp));
        let explained = found.provenance.explain("outside:web").unwrap();
        assert!(
            explained.contains("errors: 0.1 fraction: response_total, reporter destination"),
            "{explained}"
        );
        let cart = found.provenance.explain("cart").unwrap();
        assert!(cart.contains("duration: 0.004"), "the callee's time: {cart}");
        let database = found.provenance.explain("db").unwrap();
        assert!(database.contains("response: 1000 (1000–1000) bytes: tcp_read_bytes_total"), "{database}");
        assert_eq!(texts(&found, "missing-sizes").len(), 1);
        assert!(texts(&found, "missing-metric").is_empty(), "{:?}", texts(&found, "missing-metric"));
    }
}

/// Hubble's metrics of HTTP: web, which nobody calls, calls cart 20 times per second.
fn hubble(make: MakeRow, version: u8) -> Vec<String> {
    let ends = r#""source_namespace":"shop","source_workload":"web","destination_namespace":"shop","destination_workload":"cart""#;
    let mut rows = Vec::new();
    for reporter in ["client", "server"] {
        let labels = format!(r#""reporter":"{reporter}",{ends}"#);
        for (status, count) in [("200", 64_800.0), ("503", 7200.0)] {
            let with = format!(r#"{labels},"status":"{status}""#);
            let name =
                if version == 2 { "hubble_http_requests_total" } else { "hubble_http_responses_total" };
            rows.push(make(name, &format!(r#"{with},"method":"GET","protocol":"HTTP/1.1""#), count));
        }
        if version == 1 {
            let with = format!(r#"{labels},"method":"GET","protocol":"HTTP/1.1""#);
            rows.push(make("hubble_http_requests_total", &with, 72_000.0));
        }
        for (bound, count) in [("0.005", 0.0), ("0.01", 72_000.0), ("+Inf", 72_000.0)] {
            let with = format!(r#"{labels},"le":"{bound}""#);
            rows.push(make("hubble_http_request_duration_seconds_bucket", &with, count));
        }
        rows.push(make("hubble_http_request_duration_seconds_sum", &labels, 72_000.0 * 0.008));
        rows.push(make("hubble_http_request_duration_seconds_count", &labels, 72_000.0));
    }
    rows
}

#[test]
fn hubble_calls_are_learned_once_with_errors_of_both_versions() {
    for (make, version) in [(row as MakeRow, 1), (row, 2), (raw, 1), (raw, 2)] {
        let found = learned(&hubble(make, version));
        assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 20.0)]));
        let explained = found.provenance.explain("web:cart").unwrap();
        let source = "fraction: hubble_http_requests_total, reporter source";
        assert!(explained.contains(&format!("errors: 0.1 {source}")), "{explained}");
        assert!(found.provenance.explain("cart").unwrap().contains("duration: 0.008"));
        assert_eq!(texts(&found, "missing-sizes").len(), 1);
        assert!(texts(&found, "missing-metric")[0].contains("gRPC counts as HTTP"));
    }
    // Without `labelsContext` no row has ends.
    let nameless = row("hubble_http_requests_total", r#""reporter":"client","status":"200""#, 3600.0);
    assert_eq!(read(&[nameless]), Err(LearnError::Nothing));
}

/// Labels of Istio's metrics.
fn istio(reporter: &str, from: &str, to: &str, host: &str) -> String {
    let reporter = if reporter.is_empty() { String::new() } else { format!(r#""reporter":"{reporter}","#) };
    let namespace = |name: &str| if name == "unknown" { "unknown" } else { "shop" };
    format!(
        r#"{reporter}"source_workload":"{from}","source_workload_namespace":"{}","destination_workload":"{to}","destination_workload_namespace":"{}","destination_service":"{host}""#,
        namespace(from),
        namespace(to)
    )
}

const CART: &str = "cart.shop.svc.cluster.local";

fn requests(labels: &str, count: f64) -> String {
    row(
        "istio_requests_total",
        &format!(r#"{labels},"request_protocol":"http","response_code":"200""#),
        count,
    )
}

#[test]
fn calls_that_two_meshes_report_count_once() {
    let mut rows = hubble(row, 2);
    rows.extend(linkerd(row));
    rows.push(requests(&istio("source", "web", "cart", CART), 36_000.0));
    rows.push(requests(&istio("", "web", "cart", CART), 72_000.0));
    let found = learned(&rows);
    assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 10.0)]));
    let left_out = texts(&found, "left-out");
    assert_eq!(left_out.len(), 3, "{left_out:?}");
    assert!(left_out[0].contains("metrics of Linkerd with 50 requests/s are left out"), "{left_out:?}");
}

#[test]
fn requests_count_before_connections_of_another_mesh() {
    let mut rows = hubble(row, 2);
    rows.push(row("istio_tcp_connections_opened_total", &istio("source", "web", "cart", CART), 3600.0));
    assert_eq!(rates(&learned(&rows)), expected(&[("shop/web shop/cart", 20.0)]));
}

#[test]
fn istio_without_reporter_is_learned_with_a_remark() {
    let found = learned(&[requests(&istio("", "web", "cart", CART), 36_000.0)]);
    assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 10.0)]));
    assert!(texts(&found, "missing-metric").iter().any(|text| text.contains("no label `reporter`")));
}

#[test]
fn grpc_is_recognised_in_any_case() {
    for protocol in ["grpc", "GRPC", "gRPC"] {
        let labels = istio("source", "web", "cart", CART);
        let with = format!(r#"{labels},"request_protocol":"{protocol}","grpc_response_status":"14""#);
        let found = learned(&[row("istio_requests_total", &with, 3600.0)]);
        let cart = found.topology.find("shop/cart").unwrap();
        assert_eq!(found.topology.workloads[cart].protocol, Protocol::Grpc, "{protocol}");
        assert!(found.provenance.explain("web:cart").unwrap().contains("errors: 1 fraction"));
    }
}

#[test]
fn clusters_without_a_destination_are_no_services() {
    let mut rows = vec![requests(&istio("source", "web", "cart", CART), 3600.0)];
    for host in ["PassthroughCluster", "BlackHoleCluster", "unknown"] {
        rows.push(requests(&istio("source", "web", "unknown", host), 3600.0));
    }
    // A pod that is called by its address.
    rows.push(requests(&istio("destination", "unknown", "stock", "InboundPassthroughCluster"), 7200.0));
    let found = learned(&rows);
    assert_eq!(rates(&found), expected(&[("shop/outside shop/stock", 2.0), ("shop/web shop/cart", 1.0)]));
    assert_eq!(
        texts(&found, "missing-destinations"),
        ["3 requests/s go to destinations that no proxy names"]
    );
}

#[test]
fn waypoints_that_report_as_callees_do_and_ztunnels_count_once() {
    let opened = "istio_tcp_connections_opened_total";
    let rows = [
        requests(&istio("destination", "web", "cart", CART), 36_000.0),
        row(opened, &istio("source", "web", "shop-waypoint", CART), 50.0),
        row(opened, &istio("destination", "web", "shop-waypoint", CART), 50.0),
        row(opened, &istio("source", "shop-waypoint", "cart", CART), 50.0),
        row(opened, &istio("destination", "shop-waypoint", "cart", CART), 50.0),
    ];
    let found = learned(&rows);
    assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 10.0)]));
    assert_eq!(texts(&found, "waypoint").len(), 1);
}

#[test]
fn connections_whose_caller_the_callee_does_not_identify_count_once() {
    // Without mutual TLS the caller's proxy knows no workload, and the callee's no caller.
    let opened = "istio_tcp_connections_opened_total";
    let rows = [
        row(opened, &istio("source", "web", "unknown", CART), 3600.0),
        row(opened, &istio("destination", "unknown", "cart", CART), 3600.0),
    ];
    let found = learned(&rows);
    assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 1.0)]));
    assert_eq!(texts(&found, "unidentified-callers").len(), 1);
}

#[test]
fn calls_between_clusters_count_once_with_or_without_canonical_services() {
    let clusters = r#","source_cluster":"west","destination_cluster":"east","cluster":"west""#;
    let canonical = r#","source_canonical_service":"web","destination_canonical_service":"cart""#;
    let of = |reporter: &str, more: &str| {
        raw(
            "istio_requests_total",
            &format!(
                r#"{}{more},"request_protocol":"http","response_code":"200""#,
                istio(reporter, "web", "cart", CART)
            ),
            36_000.0,
        )
    };
    for more in [clusters.to_owned(), format!("{clusters}{canonical}")] {
        let found = learned(&[
            of("source", &more),
            of("destination", &more.replace(r#""cluster":"west""#, r#""cluster":"east""#)),
        ]);
        assert_eq!(rates(&found), expected(&[("shop/web shop/cart", 10.0)]));
    }
}
