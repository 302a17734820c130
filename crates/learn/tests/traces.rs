//! Traces of proxies, of clocks that differ, with retries and pieces missing; hostile, damaged and huge ones.

use experiment::topology::file::read;
use experiment::topology::script::Step;
use learn::prometheus::Reader;
use learn::traces::{self, TraceError};
use learn::{Anonymiser, LearnError, Learned, Objects, Options, Telemetry, TooMuch, learn};
use serde_json::{Value, json};

/// 2027-01-15, nanoseconds since 1970.
const START_NS: i64 = 1_800_000_000_000_000_000;
const MS: i64 = 1_000_000;

fn options() -> Options {
    Options { name: "shop".to_owned(), scale: 1.0, least_share: 0.0 }
}

/// Span of OTLP with times in milliseconds: `(trace, id, parent)`, kind, `(start, end)`, attributes.
fn span(ids: (u64, u64, u64), kind: u8, times: (i64, i64), attributes: &[(&str, &str)]) -> Value {
    let (trace, id, parent) = ids;
    let list = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    json!({
        "traceId": format!("{trace:032x}"), "spanId": format!("{id:016x}"), "kind": kind, "name": "GET",
        "parentSpanId": if parent == 0 { String::new() } else { format!("{parent:016x}") },
        "startTimeUnixNano": (START_NS + times.0 * MS).to_string(),
        "endTimeUnixNano": (START_NS + times.1 * MS).to_string(),
        "attributes": attributes.iter().map(list).collect::<Vec<_>>(),
    })
}

fn document(senders: &[(&str, Vec<Value>)]) -> String {
    let sender = |(service, spans): &(&str, Vec<Value>)| {
        let name = json!({"key": "service.name", "value": {"stringValue": service}});
        json!({"resource": {"attributes": [name]}, "scopeSpans": [{"spans": spans}]})
    };
    json!({"resourceSpans": senders.iter().map(sender).collect::<Vec<_>>()}).to_string()
}

fn telemetry(text: &str) -> Result<Telemetry, TraceError> {
    let mut reader = traces::Reader::new(Telemetry::new(None), Some(1.0));
    reader.read(text.as_bytes())?;
    reader.finish()
}

fn learned(text: &str) -> Learned {
    learn(&telemetry(text).unwrap(), &Objects::default(), &options()).unwrap()
}

/// Calls as `shop/web → shop/cart`.
fn edges(learned: &Learned) -> Vec<String> {
    learned.provenance.edges.iter().map(|edge| format!("{} → {}", edge.from, edge.to)).collect()
}

fn finding<'a>(learned: &'a Learned, kind: &str) -> &'a str {
    let found = learned.provenance.findings.iter().find(|finding| finding.kind == kind);
    found.map_or("", |finding| &finding.text)
}

fn steps(learned: &Learned, service: &str) -> Vec<Step> {
    let service = &learned.topology.workloads[learned.topology.find(service).unwrap()];
    let steps = &service.script().unwrap().endpoints[0].steps;
    steps.iter().filter(|step| !matches!(step, Step::Sleep(_))).cloned().collect()
}

#[test]
fn spans_of_a_hop_are_one_call() {
    let node = |kind: &str, app: &str| format!("{kind}~10.0.0.1~{app}-5d8-x.shop~shop.svc.cluster.local");
    let (web, cart, waypoint) =
        (node("sidecar", "web"), node("sidecar", "cart"), node("waypoint", "waypoint"));
    let cluster = ("upstream_cluster", "outbound|8080||cart.shop.svc.cluster.local");
    let (at_web, at_cart, at_waypoint) =
        (("node_id", web.as_str()), ("node_id", cart.as_str()), ("node_id", waypoint.as_str()));
    let client = [cluster, at_web, ("component", "proxy")];
    let canonical = |name: &'static str| [("istio.canonical_service", name), ("istio.namespace", "shop")];
    // Sidecars alone; with the applications' own spans under other names; and a waypoint between.
    let sidecars = document(&[
        ("web.shop", vec![span((1, 1, 0), 2, (0, 90), &[at_web]), span((1, 2, 1), 3, (10, 40), &client)]),
        ("cart.shop", vec![span((1, 3, 2), 2, (12, 38), &[at_cart])]),
    ]);
    let both = document(&[
        ("web.shop", vec![span((1, 1, 0), 2, (0, 90), &[at_web]), span((1, 2, 6), 3, (10, 40), &client)]),
        ("WebApplication", vec![span((1, 5, 1), 2, (1, 89), &[]), span((1, 6, 5), 3, (9, 41), &[])]),
        ("cart.shop", vec![span((1, 3, 2), 2, (12, 38), &[at_cart])]),
        ("CartApplication", vec![span((1, 7, 3), 2, (13, 37), &[])]),
    ]);
    let ambient = document(&[
        (
            "web",
            vec![
                span((1, 1, 0), 2, (0, 90), &canonical("web")),
                span((1, 2, 1), 3, (10, 40), &canonical("web")),
            ],
        ),
        (
            "waypoint.shop",
            vec![span(
                (1, 3, 2),
                3,
                (12, 38),
                &[at_waypoint, ("upstream_cluster", "inbound-vip|8080|http|cart.shop.svc.cluster.local")],
            )],
        ),
        ("cart", vec![span((1, 4, 3), 2, (13, 37), &canonical("cart"))]),
    ]);
    // An application whose first span is internal.
    let inner = both.replace(
        r#""kind":2,"name":"GET","parentSpanId":"0000000000000001""#,
        r#""kind":1,"name":"GET","parentSpanId":"0000000000000001""#,
    );
    assert_ne!(inner, both);
    for text in [sidecars, both, ambient, inner] {
        let found = learned(&text);
        assert_eq!(edges(&found), ["shop/outside → shop/web", "shop/web → shop/cart"], "{text}");
        let own =
            found.provenance.services.iter().find(|one| one.name == "shop/cart").unwrap().figures["own time"]
                .value;
        assert!((own - 0.026).abs() < 1e-6, "{own}");
    }
}

#[test]
fn clocks_that_differ_are_a_finding_and_leave_the_order() {
    let document = document(&[
        (
            "web",
            vec![
                span((1, 1, 0), 2, (0, 90), &[]),
                span((1, 2, 1), 3, (10, 20), &[]),
                span((1, 4, 1), 3, (30, 50), &[]),
            ],
        ),
        ("early", vec![span((1, 5, 4), 2, (-500, -485), &[])]),
        ("late", vec![span((1, 3, 2), 2, (700, 708), &[])]),
    ]);
    let found = learned(&document);
    let text = finding(&found, "clock-skew");
    assert!(text.contains("1 of 1 traced calls") && text.contains("by up to 0.53 s"), "{text}");
    let callee = |step: &Step| match step {
        Step::Call(call) => found.topology.workloads[call.to].name.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(steps(&found, "default/web").iter().map(callee).collect::<Vec<_>>(), ["late", "early"]);
}

#[test]
fn failed_calls_that_are_repeated_are_retries_and_no_fan_out() {
    let trace = |trace: u64, fails: bool| {
        let mut spans = vec![span((trace, 1, 0), 2, (0, 90), &[])];
        let peer = ("peer.service", "cart");
        if fails {
            spans.push(span((trace, 2, 1), 3, (10, 20), &[peer, ("http.status_code", "503")]));
        }
        spans.push(span((trace, 3, 1), 3, (30, 40), &[peer]));
        ("web", spans)
    };
    let senders: Vec<_> = (1..=20).map(|id| trace(id, id % 4 == 0)).collect();
    let found = learned(&document(&senders));
    assert!(finding(&found, "retries").contains("5 of 25 traced calls repeat a failed one"));
    let calls = steps(&found, "default/web");
    assert!(
        matches!(&calls[..], [Step::Call(call)] if call.retries == 1 && call.probability == 1.0),
        "{calls:?}"
    );
    let explained = found.provenance.explain("web:cart").unwrap();
    assert!(explained.contains("retries: 5 calls: traces, n = 25; at most 1 of one call"), "{explained}");
}

/// Traces of requests that call `c0`, `c1`, …: milliseconds of the start and end of each call, if the request makes it.
fn wide(calls: u64, times: impl Fn(u64, u64) -> Option<(i64, i64)>) -> Learned {
    let trace = |trace: u64| {
        let call = |call: u64| {
            let host = format!("c{call}");
            Some(span((trace, call + 2, 1), 3, times(trace, call)?, &[("peer.service", &host)]))
        };
        let server = span((trace, 1, 0), 2, (0, 100_000), &[]);
        ("web", [server].into_iter().chain((0..calls).filter_map(call)).collect())
    };
    learned(&document(&(1..=3).map(trace).collect::<Vec<_>>()))
}

#[test]
fn hundreds_of_callees_keep_their_order() {
    let numbers = |found: &Learned, steps: &[Step]| {
        let number = |step: &Step| match step {
            Step::Call(call) => found.topology.workloads[call.to].name[1..].parse::<usize>().unwrap(),
            other => panic!("{other:?}"),
        };
        steps.iter().map(number).collect::<Vec<_>>()
    };
    let branches = |step: &Step| match step {
        Step::Parallel(branches) => branches.clone(),
        other => panic!("{other:?}"),
    };
    let all: Vec<usize> = (0..500).collect();
    let mixed = |trace: u64, call: u64| ((call * 7 + trace * 13) % 20) as i64;

    let parallel = wide(500, |trace, call| Some((mixed(trace, call), 200)));
    let [step] = &steps(&parallel, "default/web")[..] else { panic!("one step") };
    let mut found = numbers(&parallel, &branches(step));
    found.sort_unstable();
    assert_eq!(found, all);

    let sequence = wide(500, |_, call| Some((call as i64 * 10, call as i64 * 10 + 9)));
    assert_eq!(numbers(&sequence, &steps(&sequence, "default/web")), all);

    let batches = wide(500, |trace, call| {
        let start = (call / 100 * 1000) as i64;
        Some((start + mixed(trace, call), start + 900))
    });
    let found = steps(&batches, "default/web");
    assert_eq!(found.len(), 5);
    for (batch, step) in found.iter().enumerate() {
        let mut own = numbers(&batches, &branches(step));
        own.sort_unstable();
        assert_eq!(own, all[batch * 100..batch * 100 + 100]);
    }

    // Each request leaves out another third. Calls far apart have mean times alone.
    let some = wide(500, |trace, call| {
        let before = (0..call).filter(|call| (call + trace) % 3 != 0).count() as i64;
        ((call + trace) % 3 != 0).then_some((before * 10, before * 10 + 9))
    });
    let found = numbers(&some, &steps(&some, "default/web"));
    assert_eq!(found.len(), 500);
    assert!(found.iter().zip(0..).all(|(call, place)| call.abs_diff(place) <= 3), "{found:?}");
    for found in [parallel, sequence, batches, some] {
        assert_eq!((edges(&found).len(), finding(&found, "untraced-calls")), (501, ""));
    }
}

#[test]
fn pieces_that_are_missing_are_counted_and_left_out() {
    let found = learned(&document(&[
        ("web", vec![span((1, 1, 0), 2, (0, 90), &[]), span((1, 2, 1), 3, (1, 5), &[])]),
        // Two beginnings; a circle of parents; a beginning whose caller recorded nothing.
        ("cart", vec![span((2, 1, 77), 2, (0, 90), &[]), span((2, 2, 78), 2, (0, 90), &[])]),
        ("db", vec![span((3, 1, 2), 2, (0, 90), &[]), span((3, 2, 1), 3, (0, 90), &[])]),
        ("list", vec![span((4, 1, 77), 2, (0, 90), &[])]),
        ("mail", vec![span((4, 2, 1), 5, (500, 590), &[])]),
    ]));
    assert_eq!(
        edges(&found),
        ["default/outside → default/list", "default/outside → default/mail", "default/outside → default/web"]
    );
    assert!(finding(&found, "incomplete-traces").starts_with("2 traces lack spans"));
    assert!(finding(&found, "missing-destinations").starts_with("1 calls of traces name no callee"));
    assert!(finding(&found, "messages").starts_with("1 messages"));
}

#[test]
fn spans_that_end_before_they_start_are_unusable() {
    let zipkin = |trace: u64, duration: i64| {
        json!({
            "traceId": format!("{trace:x}"), "id": "1", "kind": "SERVER", "timestamp": START_NS / 1000,
            "duration": duration, "localEndpoint": {"serviceName": "web"},
        })
    };
    let otlp = document(&[("web", vec![span((1, 1, 0), 2, (0, 90), &[]), span((2, 1, 0), 2, (90, 0), &[])])]);
    for text in [otlp, json!([zipkin(1, 90_000), zipkin(2, -90_000)]).to_string()] {
        let found = learned(&text);
        assert_eq!(
            finding(&found, "unusable-spans"),
            "1 spans have no time, no identity or no service, or end before they start, and are left out"
        );
        let explained = found.provenance.explain("web").unwrap();
        assert!(explained.contains("traced requests: 1 requests: traces"), "{explained}");
    }
}

#[test]
fn traces_of_which_nothing_is_kept_are_an_error_that_names_what_is_left_out() {
    let text = document(&[
        ("cart", vec![span((1, 1, 77), 2, (0, 90), &[]), span((1, 2, 78), 2, (0, 90), &[])]),
        ("db", vec![span((2, 1, 0), 2, (90, 0), &[])]),
    ]);
    let error = learn(&telemetry(&text).unwrap(), &Objects::default(), &options()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the traces have no request and no call that is kept: 1 traces lack spans between theirs and are left out; 1 spans \
         have no time, no identity or no service, or end before they start, and are left out"
    );
}

#[test]
fn pods_without_a_canonical_service_have_the_name_of_their_proxy() {
    let own = [("node_id", "sidecar~10.0.0.1~web-1.shop~x"), ("istio.canonical_service", "unknown")];
    let found = learned(&document(&[("web.shop", vec![span((1, 1, 0), 2, (0, 9), &own)])]));
    assert_eq!(edges(&found), ["shop/outside → shop/web"]);
}

#[test]
fn traces_alone_need_the_share_that_is_traced() {
    let text =
        document(&[("web", vec![span((1, 1, 0), 2, (0, 500), &[]), span((2, 2, 0), 2, (500, 1000), &[])])]);
    let of = |sampling: Option<f64>| {
        let mut reader = traces::Reader::new(Telemetry::new(None), sampling);
        reader.read(text.as_bytes()).unwrap();
        learn(&reader.finish().unwrap(), &Objects::default(), &options())
    };
    assert_eq!(of(None), Err(LearnError::Sampling));
    assert!((of(Some(0.1)).unwrap().provenance.drivers[0].rate - 20.0).abs() < 1e-9);
}

#[test]
fn metrics_keep_their_edges_and_versions_share_the_traces_of_their_service() {
    let row = |from: &str, to: &str, count: u32| {
        format!(
            r#"{{"metric":{{"meshmeter":"istio_requests_total 3600s","reporter":"source","source_workload":"{from}","source_workload_namespace":"shop","destination_workload":"{to}","destination_workload_namespace":"shop"}},"value":[1800003600,"{count}"]}}"#
        )
    };
    let rows = [
        row("gateway", "web-v1", 3600),
        row("web-v1", "reviews-v1", 1800),
        row("web-v1", "reviews-v2", 1800),
        row("web-v1", "quiet", 3600),
    ];
    let mut reader = Reader::new(Telemetry::new(None));
    reader
        .read(format!(r#"{{"status":"success","data":{{"result":[{}]}}}}"#, rows.join(",")).as_bytes())
        .unwrap();
    let mut reader = traces::Reader::new(reader.finish(), None);
    let namespace = ("service.namespace", "shop");
    let text = document(&[
        (
            "web",
            vec![
                span((1, 1, 0), 2, (0, 90), &[namespace]),
                span((1, 2, 1), 3, (10, 20), &[namespace]),
                span((1, 4, 1), 3, (30, 50), &[namespace, ("peer.service", "mysql")]),
            ],
        ),
        ("reviews", vec![span((1, 3, 2), 2, (11, 19), &[namespace])]),
    ]);
    reader.read(text.as_bytes()).unwrap();
    let found = learn(&reader.finish().unwrap(), &Objects::default(), &options()).unwrap();
    let calls = steps(&found, "shop/web-v1");
    let call = |step: &Step| match step {
        Step::Call(call) => (found.topology.workloads[call.to].name.clone(), call.probability),
        other => panic!("{other:?}"),
    };
    let expected =
        [("reviews-v1".to_owned(), 0.5), ("reviews-v2".to_owned(), 0.5), ("quiet".to_owned(), 1.0)];
    assert_eq!(calls.iter().map(call).collect::<Vec<_>>(), expected);
    assert_eq!(edges(&found).len(), 4);
    assert!(finding(&found, "untraced-calls").contains("from shop/web-v1 to shop/quiet are in no trace"));
}

#[test]
fn damaged_and_foreign_input_is_an_error_of_a_line() {
    for (text, expected) in [
        ("", "the input is empty"),
        ("<html>", "not traces as OTLP, Jaeger or Zipkin"),
        ("{}", "neither `resourceSpans` of OTLP, `data` of Jaeger nor a list of Zipkin"),
        (r#"{"status":"success","data":{"result":[]}}"#, "neither"),
        ("7", "not traces"),
        ("[7]", "not traces"),
        (r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"1""#, "not traces"),
        (&format!(r#"[{{"name":"{}"}}]"#, "x".repeat(2 << 20)), "a text of more than 1 MiB"),
        (&"[".repeat(100_000), "not traces"),
    ] {
        let error = telemetry(text).unwrap_err().to_string();
        assert!(error.contains(expected) && error.lines().count() == 1 && error.len() < 300, "{error}");
    }
    let nothing = telemetry(r#"{"resourceSpans":[]}"#).unwrap();
    assert_eq!(learn(&nothing, &Objects::default(), &options()), Err(LearnError::Nothing));
}

#[test]
fn hostile_names_become_labels_and_bombs_are_bounded() {
    let nasty = "x: [*a, &b]\n- {name: \"<script>alert(1)</script>\"}\u{202e}";
    let found = learned(&document(&[(
        nasty,
        vec![
            span((1, 1, 0), 2, (0, 90), &[("url.path", "/<b>/{x}?secret=1")]),
            span((1, 2, 1), 3, (1, 5), &[("peer.service", nasty)]),
        ],
    )]));
    assert_eq!(read(&found.yaml, "again").unwrap(), found.topology);
    assert!(!found.yaml.contains('<') && !found.yaml.contains("secret"), "{}", found.yaml);
    let long = document(&[(&"n".repeat(254), vec![span((1, 1, 0), 2, (0, 90), &[])])]);
    assert!(matches!(telemetry(&long), Err(TraceError::TooMuch(TooMuch::NameBytes))));
    // A chain of 10 000 spans is learned; one more is left out, with its trace.
    let chain = |length: u64| {
        let spans = (1..=length).map(|id| span((1, id, id - 1), 1 + (id % 2) as u8, (0, 90), &[])).collect();
        document(&[("deep", spans), ("web", vec![span((2, 1, 0), 2, (0, 90), &[])])])
    };
    assert!(edges(&learned(&chain(10_000))).contains(&"default/outside → default/web".to_owned()));
    assert!(
        finding(&learned(&chain(10_001)), "incomplete-traces")
            .starts_with("1 traces have more than 10000 spans")
    );
    // Thousands of endpoints are 20 and the rest.
    let spans = (1..=3000)
        .map(|id| span((id, id, 0), 2, (0, 9), &[("http.route", &format!("/r{}", id % 1500))]))
        .collect();
    let found = learned(&document(&[("web", spans)]));
    assert!(finding(&found, "endpoints").ends_with("with few requests are one, /other"));
    let web = &found.topology.workloads[found.topology.find("default/web").unwrap()];
    assert!(web.script().unwrap().endpoints.len() <= 21);
}

/// Spans carry passwords, tokens and addresses of people in the same places as paths and hosts.
#[test]
fn secrets_around_paths_and_hosts_are_not_learned() {
    let in_name = |name: &str, id: u64| {
        let mut span = span((id, 1, 0), 2, (0, 90), &[]);
        span["name"] = json!(name);
        span
    };
    let callee = "https://u:SECRET@ext.example.com/p?SECRET";
    let found = learned(&document(&[(
        "web",
        vec![
            in_name("GET /reset?token=SECRET", 1),
            in_name("GET http://u:SECRET@cart/reset?x=SECRET#SECRET", 2),
            in_name("GET /reset/SECRET-4711-abcdef", 3),
            span((4, 1, 0), 2, (0, 90), &[("http.route", "/r/{id}?token=SECRET")]),
            span((5, 1, 0), 2, (0, 90), &[("url.path", "/users/SECRET.doe@example.com/orders")]),
            span((5, 2, 1), 3, (1, 5), &[("peer.service", callee)]),
        ],
    )]));
    let provenance = serde_json::to_string(&found.provenance).unwrap();
    for text in [&found.yaml, &provenance] {
        assert!(!text.to_lowercase().contains("secret"), "{text}");
    }
    assert!(found.yaml.contains("ext-example-com") && found.yaml.contains("/reset"), "{}", found.yaml);
}

#[test]
fn anonymised_traces_have_no_name_of_theirs() {
    let text = document(&[(
        "payments",
        vec![
            span((1, 1, 0), 2, (0, 90), &[("http.route", "/ledger/{user}")]),
            span((1, 2, 1), 3, (1, 5), &[("server.address", "api.bank.example")]),
        ],
    )]);
    let mut reader = traces::Reader::new(Telemetry::new(Some(Anonymiser::new(b"salt"))), Some(1.0));
    reader.read(text.as_bytes()).unwrap();
    let found = learn(&reader.finish().unwrap(), &Objects::default(), &options()).unwrap();
    let all = format!("{}{}", found.yaml, serde_json::to_string(&found.provenance).unwrap());
    assert!(!["payments", "ledger", "bank"].iter().any(|name| all.contains(name)), "{all}");
}

/// Traces whose spans come far apart, as a file of a busy mesh has them.
struct Endless {
    next: u64,
    count: u64,
    text: Vec<u8>,
}

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.text.is_empty() && self.next < self.count {
            self.next += 1;
            let trace = self.next;
            let span = |trace: u64, id: u64, kind: &str, start: u64, peer: &str| {
                let parent = if id == 1 { "" } else { "1" };
                format!(
                    r#"{{"traceId":"{trace:x}","id":"{id}","parentId":"{parent}","kind":"{kind}","timestamp":{},"duration":9000,"localEndpoint":{{"serviceName":"web"}},"remoteEndpoint":{{"serviceName":"{peer}"}}}}"#,
                    1_800_000_000_000_000 + start
                )
            };
            let mut spans = vec![span(trace, 1, "SERVER", 0, ""), span(trace, 2, "CLIENT", 10, "cart")];
            // A second part that comes while the trace is open, and one long after.
            if trace > 1000 {
                spans.push(span(trace - 1000, 3, "CLIENT", 20, "db"));
            }
            if trace == self.count {
                spans.push(span(1, 4, "CLIENT", 30, "db"));
            }
            self.text = format!("[{}]\n", spans.join(",")).into_bytes();
        }
        let length = self.text.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.text[..length]);
        self.text.drain(..length);
        Ok(length)
    }
}

#[test]
fn more_spans_than_memory_holds_are_learned_in_turns() {
    let mut reader = traces::Reader::new(Telemetry::new(None), Some(1.0));
    reader.read(Endless { next: 0, count: 120_000, text: Vec::new() }).unwrap();
    let found = learn(&reader.finish().unwrap(), &Objects::default(), &options()).unwrap();
    assert_eq!(
        edges(&found),
        ["default/outside → default/web", "default/web → external/cart", "default/web → external/db"]
    );
    assert!(
        finding(&found, "incomplete-traces").starts_with("1 spans came long after"),
        "{:?}",
        found.provenance.findings
    );
    let explained = found.provenance.explain("web").unwrap();
    assert!(explained.contains("traced requests: 120000 requests: traces"), "{explained}");
}
