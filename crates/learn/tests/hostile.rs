//! Empty, damaged, hostile and huge telemetry.

use experiment::Protocol;
use experiment::topology::file::read;
use learn::prometheus::{AnswerError, Reader, queries};
use learn::{Anonymiser, LearnError, Learned, Objects, Options, Telemetry, TooMuch, learn};
use std::fmt::Write as _;

fn options() -> Options {
    Options { name: "shop".to_owned(), scale: 1.0, least_share: 0.0 }
}

/// Row of requests in an hour.
fn row(reporter: &str, from: &str, to: &str, count: &str) -> String {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let (from, to) = (quoted(from), quoted(to));
    format!(
        r#"{{"metric":{{"meshmeter":"istio_requests_total 3600s","reporter":"{reporter}","source_workload":{from},"source_workload_namespace":"shop","destination_workload":{to},"destination_workload_namespace":"shop","request_protocol":"http","response_code":"200"}},"value":[1800003600,"{count}"]}}"#
    )
}

fn answer(rows: &[String]) -> String {
    let rows = rows.join(",");
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{rows}]}}}}"#)
}

fn telemetry(text: &str) -> Result<Telemetry, AnswerError> {
    let mut reader = Reader::new(Telemetry::new(None));
    reader.read(text.as_bytes())?;
    Ok(reader.finish())
}

fn learned(rows: &[String]) -> Learned {
    learn(&telemetry(&answer(rows)).unwrap(), &Objects::default(), &options()).unwrap()
}

fn kinds(learned: &Learned) -> Vec<&str> {
    learned.provenance.findings.iter().map(|finding| finding.kind.as_str()).collect()
}

#[test]
fn empty_and_damaged_input_is_an_error_of_a_line() {
    for (text, expected) in [
        ("", "the input is empty"),
        ("  \n", "the input is empty"),
        ("<html>", "not an answer"),
        ("[]", "not an answer"),
        ("{}", "`data` is missing"),
        (r#"{"status":"success","data":{"result":[{"metric":{},"value":[1"#, "not an answer"),
        (r#"{"status":"success","data":{"result":[{"metric":{},"value":[1,2]}]}}"#, "not an answer"),
        (r#"{"status":"error","errorType":"bad_data","error":"parse\nerror"}"#, "with an error: parse error"),
    ] {
        let error = telemetry(text).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.lines().count() == 1 && error.len() < 300,
            "{text}: {error}"
        );
    }
    let nothing = telemetry(&answer(&[])).unwrap();
    assert_eq!(learn(&nothing, &Objects::default(), &options()), Err(LearnError::Nothing));
}

#[test]
fn call_that_both_ends_report_counts_once() {
    let found = learned(&[row("source", "web", "cart", "3600"), row("destination", "web", "cart", "3500")]);
    assert_eq!(found.provenance.drivers.len(), 1);
    assert_eq!(found.provenance.drivers[0].rate, 1.0);
    assert!(!kinds(&found).contains(&"disagreement"));
    let found = learned(&[row("source", "web", "cart", "36000"), row("destination", "web", "cart", "18000")]);
    assert!(kinds(&found).contains(&"disagreement"));
    let explained = found.provenance.explain("web:cart").unwrap();
    assert!(
        explained.contains("rate: 10 (9.897–10.1) requests/s: istio_requests_total, reporter source"),
        "{explained}"
    );
    assert!(explained.contains("the source reports 10/s and the destination 5/s, 50 % apart"), "{explained}");
    assert_eq!(found.provenance.explain("web:nothing"), None);
}

#[test]
fn waypoint_reports_requests_and_ztunnels_their_connections_only_once() {
    let host = r#""destination_service":"cart.shop.svc.cluster.local""#;
    let of = |metric: &str, reporter: &str, from: &str, to: &str| {
        format!(
            r#"{{"metric":{{"meshmeter":"{metric} 3600s","reporter":"{reporter}","source_workload":"{from}","source_workload_namespace":"shop","destination_workload":"{to}","destination_workload_namespace":"shop",{host}}},"value":[1800003600,"7200"]}}"#
        )
    };
    let tcp = "istio_tcp_connections_opened_total";
    let found = learned(&[
        of("istio_requests_total", "waypoint", "web", "cart"),
        of(tcp, "source", "web", "gate"),
        of(tcp, "destination", "gate", "cart"),
        of(tcp, "source", "gate", "cart"),
    ]);
    let names: Vec<String> = found.topology.workloads.iter().map(|one| one.qualified_name()).collect();
    assert_eq!(names, ["shop/web", "shop/cart"]);
    assert!(kinds(&found).contains(&"waypoint"));
    // Without a waypoint, connections are all there is.
    let found = learned(&[of(tcp, "source", "web", "cart"), of(tcp, "destination", "web", "cart")]);
    assert_eq!(found.provenance.drivers[0].rate, 2.0);
}

#[test]
fn callers_that_a_callee_does_not_identify_count_once() {
    let found =
        learned(&[row("source", "web", "cart", "3600"), row("destination", "unknown", "cart", "4000")]);
    let rates: Vec<f64> = found.provenance.drivers.iter().map(|driver| driver.rate).collect();
    assert_eq!(rates.len(), 2, "{rates:?}");
    assert!((rates.iter().sum::<f64>() - 4000.0 / 3600.0).abs() < 1e-9, "{rates:?}");
    assert!(kinds(&found).contains(&"unidentified-callers"));
}

#[test]
fn names_with_markup_and_yaml_become_labels() {
    let nasty = "x: [*a, &b]\n- {name: \"<script>alert(1)</script>\"}\u{202e}";
    let found = learned(&[row("source", "web", nasty, "10"), row("source", nasty, "# no\n", "10")]);
    assert!(
        found
            .topology
            .workloads
            .iter()
            .all(|one| one.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
    );
    assert_eq!(read(&found.yaml, "again").unwrap(), found.topology);
    assert!(!found.yaml.contains('<') && kinds(&found).contains(&"names"));
    let long = "n".repeat(254);
    assert!(matches!(
        telemetry(&answer(&[row("source", &long, "cart", "1")])),
        Err(AnswerError::TooMuch(TooMuch::NameBytes))
    ));
}

#[test]
fn values_that_are_no_numbers_are_counted_and_left_out() {
    let rows = [
        row("source", "web", "cart", "3600"),
        row("source", "web", "cart", "NaN"),
        row("source", "web", "cart", "+Inf"),
        row("source", "web", "cart", "-5"),
        row("other", "web", "cart", "5"),
        r#"{"metric":{"__name__":"up"},"value":[1,"1"]}"#.to_owned(),
        r#"{"metric":{"__name__":"istio_requests_total","reporter":"source"},"value":[1,"1"]}"#.to_owned(),
    ];
    let found = learned(&rows);
    assert_eq!(found.provenance.drivers[0].rate, 1.0);
    let text: Vec<&str> = found.provenance.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert!(text.contains(&"2 rows of the answers are of metrics that are not read"), "{text:?}");
    assert!(text.contains(&"4 rows of the answers have values that are not usable numbers"), "{text:?}");
}

#[test]
fn answer_that_is_given_twice_or_of_another_time_is_refused() {
    let rows = [row("source", "web", "cart", "3600"), row("source", "cart", "db", "3600")];
    let (one, later) = (answer(&rows), answer(&rows).replace("1800003600", "1800007200"));
    for (second, expected) in [
        (&one, "a series of istio_requests_total is there twice: it would count twice"),
        (&answer(&rows[1..]), "is there twice"),
        (&one.replace("1800003600", "1800003601"), "is there twice"),
        (&later, "of different times: 1800003600 and 1800007200 seconds since 1970"),
    ] {
        let error = telemetry(&format!("{one}\n{second}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let usage = answer(&[
        r#"{"metric":{"meshmeter":"container_cpu_usage_seconds_total 3600s"},"value":[1800003600,"3600"]}"#
            .to_owned(),
    ]);
    assert!(telemetry(&usage).is_ok());
    let twice = telemetry(&format!("{usage}{one}{usage}"));
    assert!(matches!(twice, Err(AnswerError::Twice("container_cpu_usage_seconds_total"))));
    // Samples of two periods that follow each other add up; the same ones are refused.
    let samples = |from: u32, pod: &str| {
        let values: Vec<String> = (0..4).map(|at| format!(r#"[{},"{}"]"#, from + at * 60, at * 60)).collect();
        let row = row("source", "web", "cart", "0");
        let labels = row
            .split_once(r#","value""#)
            .unwrap()
            .0
            .replace(r#"meshmeter":"istio_requests_total 3600s"#, r#"__name__":"istio_requests_total"#);
        let labels = labels.replace(r#""reporter""#, &format!(r#""pod":"{pod}","reporter""#));
        answer(&[format!(r#"{labels},"values":[{}]}}"#, values.join(","))])
    };
    let (first, next, other) =
        (samples(1_800_000_000, "a"), samples(1_800_000_240, "a"), samples(1_800_000_000, "b"));
    assert!(telemetry(&format!("{first}{next}{other}")).is_ok());
    assert!(matches!(telemetry(&format!("{first}{first}")), Err(AnswerError::Twice("istio_requests_total"))));
}

#[test]
fn warnings_of_partial_answers_are_the_first_finding() {
    let warned = |salt: Option<Anonymiser>| {
        let text = answer(&[row("source", "web", "cart", "3600")])
            .replace(r#""data""#, r#""warnings":["no store of <shop>\nanswers"],"infos":["a note"],"data""#);
        let mut reader = Reader::new(Telemetry::new(salt));
        reader.read(text.as_bytes()).unwrap();
        let learned = learn(&reader.finish(), &Objects::default(), &options()).unwrap();
        let is_warning = |finding: &&learn::Finding| finding.kind == "warnings";
        learned
            .provenance
            .findings
            .iter()
            .take_while(is_warning)
            .map(|one| one.text.clone())
            .collect::<Vec<_>>()
    };
    let shown = warned(None);
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[1].ends_with("may be partial: no store of <shop> answers"), "{shown:?}");
    assert!(!warned(Some(Anonymiser::new(b"salt"))).concat().contains("shop"));
}

#[test]
fn rows_of_zero_bound_buckets_and_make_no_pairs() {
    let part = |metric: &str, more: &str, to: &str, value: u32| {
        row("source", "web", to, &value.to_string())
            .replace("istio_requests_total", metric)
            .replace(r#""reporter""#, &format!(r#"{more}"reporter""#))
    };
    let duration = "istio_request_duration_milliseconds";
    let of = |bounds: &[(&str, u32)]| {
        let bucket = |(bound, count): &(&str, u32)| {
            part(&format!("{duration}_bucket"), &format!(r#""le":"{bound}","#), "cart", *count)
        };
        let mut rows: Vec<String> = bounds.iter().map(bucket).collect();
        rows.push(row("source", "web", "cart", "3600"));
        rows.push(row("destination", "idle", "cart", "0"));
        rows.push(row("source", "web", "never", "0"));
        rows.push(part(&format!("{duration}_bucket"), r#""le":"5","#, "never", 0));
        let learned = learned(&rows);
        let names: Vec<&str> = learned.provenance.services.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["shop/cart"]);
        let figure = &learned.provenance.services[0].figures["duration"];
        (figure.low, figure.high)
    };
    assert_eq!(of(&[("5", 0), ("10", 3600), ("+Inf", 3600)]), (Some(0.005), Some(0.01)));
    assert_eq!(of(&[("10", 3600), ("+Inf", 3600)]), (Some(0.0), Some(0.01)));
}

#[test]
fn bombs_of_labels_and_buckets_are_bounded() {
    let short = |name: usize| {
        format!(
            r#"{{"metric":{{"__name__":"istio_requests_total","reporter":"source","destination_workload":"{name}"}}}}"#
        )
    };
    let many: Vec<String> = (0..200_001).map(short).collect();
    assert!(matches!(telemetry(&answer(&many)), Err(AnswerError::TooMuch(TooMuch::Names))));
    let bucket = |bound: usize| {
        format!(
            r#"{{"metric":{{"meshmeter":"istio_request_bytes_bucket 3600s","reporter":"source","destination_workload":"a","le":"{}"}},"value":[1,"1"]}}"#,
            bound + 1
        )
    };
    let many: Vec<String> = (0..65).map(bucket).collect();
    assert!(matches!(telemetry(&answer(&many)), Err(AnswerError::TooMuch(TooMuch::Buckets))));
    let labels: Vec<String> = (0..100_000).map(|index| format!(r#""l{index}":"v""#)).collect();
    let wide = row("source", "web", "cart", "1")
        .replace(r#""reporter""#, &format!(r#"{},"reporter""#, labels.join(",")));
    assert!(telemetry(&answer(&[wide])).is_ok());
}

#[test]
fn circles_get_a_driver_where_nothing_enters_them() {
    let found = learned(&[row("source", "a", "b", "3600"), row("source", "b", "a", "3600")]);
    assert!(kinds(&found).contains(&"circle"));
    assert_eq!(found.provenance.drivers.len(), 1);
    // Callbacks are no endless circle: half of the requests to `a` are its own.
    let found = learned(&[
        row("source", "web", "a", "3600"),
        row("source", "a", "b", "3600"),
        row("source", "b", "a", "3600"),
    ]);
    assert!(!kinds(&found).contains(&"circle") && !kinds(&found).contains(&"flow"), "{:?}", kinds(&found));
    // Impossible rates: each request to `a` would cause more than one.
    let found = learned(&[
        row("source", "web", "a", "1"),
        row("source", "a", "b", "72000"),
        row("source", "b", "a", "36000"),
    ]);
    assert!(kinds(&found).contains(&"circle"), "{:?}", kinds(&found));
}

#[test]
fn calls_that_do_not_belong_to_requests_are_those_of_a_driver() {
    let found = learned(&[row("source", "web", "job", "36"), row("source", "job", "cart", "36000")]);
    assert!(kinds(&found).contains(&"own-calls"));
    let names: Vec<&str> = found.provenance.drivers.iter().map(|driver| driver.name.as_str()).collect();
    assert_eq!(names, ["job-sender-cart", "web"]);
}

#[test]
fn a_thousand_services_with_twenty_thousand_calls_are_refused_by_size_and_learned_in_part() {
    const SERVICES: usize = 1000;
    const CALLS: usize = 20;
    // Each service calls the next and 19 others behind it, each for one request of 20.
    let mut arriving = vec![0.0; SERVICES];
    arriving[0] = 36e6;
    let (mut rows, name) = (Vec::new(), |id: usize| format!("service-with-a-long-name-{id}"));
    rows.push(row("source", "gateway", &name(0), &arriving[0].to_string()));
    for from in 0..SERVICES - 1 {
        let behind = SERVICES - 1 - from;
        let mut callees: Vec<usize> =
            (0..CALLS).map(|call| from + 1 + (call * (37 + from % 11)) % behind).collect();
        callees.sort_unstable();
        callees.dedup();
        for to in callees {
            let count = arriving[from] / CALLS as f64;
            arriving[to] += count;
            rows.push(row("source", &name(from), &name(to), &count.to_string()));
            rows.push(row("destination", &name(from), &name(to), &count.to_string()));
        }
    }
    let telemetry = telemetry(&answer(&rows)).unwrap();
    match learn(&telemetry, &Objects::default(), &options()) {
        Err(LearnError::TooLarge { calls, bytes }) => {
            assert!(calls > 19_000 && bytes > 1 << 20, "{calls} {bytes}");
        }
        other => panic!("{other:?}"),
    }
    let options = Options { least_share: 0.04, ..options() };
    let found = learn(&telemetry, &Objects::default(), &options).unwrap();
    assert!(kinds(&found).contains(&"left-out"));
    assert!(found.provenance.services.len() > 900 && found.provenance.edges.len() < 19_000);
}

#[test]
fn objects_give_replicas_resources_and_protocol() {
    let text = r#"{"kind": "List", "items": [
        {"kind": "Deployment", "metadata": {"name": "cart", "namespace": "shop"}, "spec": {"replicas": 100, "template":
          {"metadata": {"labels": {"app": "cart"}}, "spec": {"containers": [{"name": "cart", "resources": {"requests": {"cpu": "250m"}}}]}}}},
        {"kind": "Deployment", "metadata": {"name": "idle", "namespace": "shop"}},
        {"kind": "Service", "metadata": {"name": "cart", "namespace": "shop"},
          "spec": {"selector": {"app": "cart"}, "ports": [{"name": "http2"}]}},
        {"kind": "Secret"}]}"#;
    let telemetry =
        telemetry(&answer(&[row("source", "web", "cart", "3600"), row("source", "cart", "db", "3600")]))
            .unwrap();
    let mut objects = Objects::new(None);
    objects.read(text.as_bytes()).unwrap();
    let found = learn(&telemetry, &objects, &Options { scale: 0.05, ..options() }).unwrap();
    let cart = &found.topology.workloads[found.topology.find("shop/cart").unwrap()];
    assert_eq!(
        (cart.replicas, cart.protocol, cart.resources.cpu_request_cores),
        (5, Protocol::Http2, Some(0.25))
    );
    for kind in ["idle-workloads", "ignored-objects", "scale"] {
        assert!(kinds(&found).contains(&kind), "{kind}: {:?}", kinds(&found));
    }
    let explained = found.provenance.explain("cart").unwrap();
    assert!(explained.contains("replicas: 5 pods: Deployment; 100 times 0.05"), "{explained}");
}

#[test]
fn anonymised_names_are_stable_and_nowhere_in_the_output() {
    let text = answer(&[row("source", "payments", "ledger", "3600")]);
    let of = |salt: &[u8]| {
        let mut reader = Reader::new(Telemetry::new(Some(Anonymiser::new(salt))));
        reader.read(text.as_bytes()).unwrap();
        learn(&reader.finish(), &Objects::default(), &options()).unwrap()
    };
    let (one, same, other) = (of(b"a"), of(b"a"), of(b"b"));
    assert_eq!(one, same);
    assert_ne!(one.yaml, other.yaml);
    let mut all = one.yaml;
    let _ = write!(all, "{}", serde_json::to_string(&one.provenance).unwrap());
    assert!(!all.contains("payments") && !all.contains("ledger") && !all.contains("shop/"), "{all}");
    assert!(one.provenance.anonymised);
}

#[test]
fn queries_name_their_metric_and_period() {
    let queries = queries(3600);
    assert_eq!(queries.len(), 28);
    assert_eq!(
        queries[0].text,
        "label_replace(sum by (reporter, source_workload, source_workload_namespace, destination_workload, \
         destination_workload_namespace, destination_service, request_protocol, response_code, grpc_response_status) \
         (increase(istio_requests_total[3600s])) > 0, \"meshmeter\", \"istio_requests_total 3600s\", \"\", \"\")"
    );
    // Buckets of 0 stay where their histogram has values.
    let buckets: Vec<&str> =
        queries.iter().map(|query| query.text.as_str()).filter(|text| text.contains("_bucket")).collect();
    assert_eq!(buckets.len(), 5);
    for text in buckets {
        let (_, histogram) = text.split_once(" and on (").unwrap();
        assert!(histogram.contains("_count") && histogram.contains("[3600s])) > 0)"), "{text}");
    }
}
