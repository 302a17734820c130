//! `meshmeter learn`.

mod command;

use command::{meshmeter, stderr, stdout};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;
use test_support::{Response, Server};

/// Answer to the query for requests: web calls cart twice per request, and cart a bank outside the cluster.
fn answer() -> String {
    let row = |from: &str, to: &str, host: &str, count: &str| {
        format!(
            r#"{{"metric":{{"meshmeter":"istio_requests_total 3600s","reporter":"source","source_workload":"{from}","source_workload_namespace":"shop","destination_workload":"{to}","destination_workload_namespace":"shop","destination_service":"{host}","request_protocol":"http","response_code":"200"}},"value":[1800003600,"{count}"]}}"#
        )
    };
    let rows = [
        row("gateway", "web", "web.shop.svc.cluster.local", "36000"),
        row("web", "cart", "cart.shop.svc.cluster.local", "72000"),
        row("cart", "unknown", "api.bank.example", "7200"),
    ];
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{}]}}}}"#, rows.join(","))
}

fn learn(folder: &Path, arguments: &[&str]) -> Output {
    meshmeter().arg("learn").args(arguments).current_dir(folder).output().expect("the binary runs")
}

/// Folder with saved answers.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("answers.json"), answer()).unwrap();
    folder
}

#[test]
fn graph_of_kiali_becomes_a_topology_and_excludes_a_prometheus() {
    let folder = folder();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/learn_kiali");
    fs::copy(corpus.join("workload_graph"), folder.path().join("graph.json")).unwrap();
    let output = learn(folder.path(), &["--kiali", "graph.json", "--out", "bookinfo.yaml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = stderr(&output);
    assert!(
        summary.starts_with("4 services, 4 calls, 1 driver, 1 namespace, from 600 s of telemetry\n"),
        "{summary}"
    );
    let explained = learn(folder.path(), &["--explain", "productpage-v1:details-v1", "bookinfo.yaml"]);
    assert!(stdout(&explained).contains("errors: 0.05 fraction: Kiali's graph, n = 30000"), "{explained:?}");
    let both = learn(folder.path(), &["--kiali", "graph.json", "--prometheus", "answers.json"]);
    assert_eq!(both.status.code(), Some(2), "they would count a call twice");
    let cut = corpus.join("cut_off");
    let damaged = learn(folder.path(), &["--kiali", cut.to_str().unwrap()]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(stderr(&damaged).contains("not a graph of Kiali"), "{}", stderr(&damaged));
}

#[test]
fn saved_answers_become_a_topology_that_check_takes_with_its_sources() {
    let folder = folder();
    let output = learn(folder.path(), &["--prometheus", "answers.json", "--out", "shop.yaml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).is_empty());
    let summary = stderr(&output);
    assert!(
        summary.starts_with("3 services, 3 calls, 1 driver, 2 namespaces, from 3600 s of telemetry\n"),
        "{summary}"
    );
    assert!(
        summary.contains("names in the files: external/api-bank-example, shop/cart, shop/web"),
        "{summary}"
    );

    let mut check = meshmeter();
    let checked = check.args(["topology", "check", "shop.yaml"]).current_dir(&folder).output().unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert!(stdout(&checked).starts_with("shop: 3 services, 1 client, 2 namespaces"), "{}", stdout(&checked));

    let explained = learn(folder.path(), &["--explain", "web:cart", "shop.yaml"]);
    assert!(
        stdout(&explained).starts_with("shop/web → shop/cart, over 3600 s\n  calls per request: 2 calls"),
        "{explained:?}"
    );
    let unknown = learn(folder.path(), &["--explain", "cart:web", "shop.yaml"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("`shop.yaml` has no call, service or driver `cart:web`"));

    let mut draw = meshmeter();
    let drawn = draw.args(["topology", "draw", "shop.yaml"]).current_dir(&folder).output().unwrap();
    assert!(stdout(&drawn).contains(">20/s<"), "{}", stdout(&drawn));

    let printed = learn(folder.path(), &["--prometheus", "answers.json"]);
    assert!(
        stdout(&printed)
            .contains("# Learned from a mesh's telemetry. Requests/s of its drivers:\n#   gateway: 10\n")
    );
}

/// Directory with spans of web, which calls cart twice at once, in two files.
fn write_traces(folder: &Path) {
    fs::create_dir(folder.join("spans")).unwrap();
    let span = |id: u32, parent: &str, kind: &str, service: &str, times: (u64, u64)| {
        format!(
            r#"{{"traceId":"a","id":"{id}","parentId":"{parent}","kind":"{kind}","name":"get","timestamp":{},"duration":{},"localEndpoint":{{"serviceName":"{service}"}},"tags":{{"istio.namespace":"shop"}}}}"#,
            1_800_000_000_000_000 + times.0,
            times.1
        )
    };
    let web = [
        span(1, "", "SERVER", "web", (0, 9000)),
        span(2, "1", "CLIENT", "web", (1000, 5000)),
        span(3, "1", "CLIENT", "web", (2000, 5000)),
    ];
    let cart = [span(4, "2", "SERVER", "cart", (1100, 4800)), span(5, "3", "SERVER", "cart", (2100, 4800))];
    fs::write(folder.join("spans/web.json"), format!("[{}]", web.join(","))).unwrap();
    fs::write(folder.join("spans/cart.json"), format!("[{}]", cart.join(","))).unwrap();
    fs::write(folder.join("spans/.hidden"), "of any form").unwrap();
}

#[test]
fn traces_of_a_directory_give_the_order_of_calls() {
    let folder = folder();
    write_traces(folder.path());
    let merged =
        learn(folder.path(), &["--prometheus", "answers.json", "--traces", "spans", "--out", "shop.yaml"]);
    assert!(merged.status.success(), "{}", stderr(&merged));
    let yaml = fs::read_to_string(folder.path().join("shop.yaml")).unwrap();
    assert!(yaml.contains("parallel:"), "{yaml}");
    let explained = stdout(&learn(folder.path(), &["--explain", "web", "shop.yaml"]));
    assert!(
        explained.contains("traced requests: 1 requests: traces, n = 1; calls: (cart | cart)"),
        "{explained}"
    );
    let alone = learn(folder.path(), &["--traces", "spans", "--sampling", "50%"]);
    assert!(alone.status.success() && stdout(&alone).contains("parallel:"), "{}", stderr(&alone));
}

#[test]
fn damaged_files_of_a_directory_are_left_out_and_named_unless_all_are() {
    let folder = folder();
    write_traces(folder.path());
    let arguments = ["--traces", "spans", "--sampling", "50%", "--out", "shop.yaml"];
    assert!(learn(folder.path(), &arguments).status.success());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let whole = read("shop.yaml");
    // Cut in the middle of a second document, and of no form.
    let web = read("spans/web.json");
    fs::write(folder.path().join("spans/web.json"), format!("{web}{}", &web[..20])).unwrap();
    fs::write(folder.path().join("spans/a-note.txt"), "of no form").unwrap();
    let output = learn(folder.path(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["spans/web.json", "spans/a-note.txt"] {
        assert!(stderr(&output).contains(&format!("left out from here on: `{name}`")), "{}", stderr(&output));
    }
    assert_eq!(read("shop.yaml"), whole);
    assert!(read("shop.provenance.json").contains("2 files of traces are damaged or empty"));
    for name in ["spans/web.json", "spans/cart.json"] {
        fs::write(folder.path().join(name), "of no form").unwrap();
    }
    let output = learn(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("not traces as OTLP"), "{}", stderr(&output));
}

#[test]
fn unusable_input_is_a_usage_error_with_a_hint() {
    let folder = folder();
    fs::write(folder.path().join("cut.json"), &answer()[..300]).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    write_traces(folder.path());
    fs::write(folder.path().join("none.json"), r#"{"status":"success","data":{"result":[]}}"#).unwrap();
    fs::write(folder.path().join("no-spans.json"), r#"{"resourceSpans":[]}"#).unwrap();
    let backwards = r#"[{"traceId":"a","id":"1","kind":"SERVER","timestamp":1800000000000000,"duration":-1,"localEndpoint":{"serviceName":"web"}}]"#;
    fs::write(folder.path().join("backwards.json"), backwards).unwrap();
    for (arguments, expected) in [
        (
            &["--prometheus", "cut.json"][..],
            "read the answers `cut.json`: not an answer of Prometheus' HTTP API",
        ),
        (&["--prometheus", "none.json"], "the telemetry has no request and no connection between workloads"),
        (&["--prometheus", "absent.json"], "read the answers `absent.json`: No such file"),
        (
            &["--prometheus", "answers.json", "--objects", "cut.json"],
            "read the objects `cut.json`: not objects",
        ),
        (&["--explain", "web", "shop.yaml"], "read the provenance `shop.provenance.json`"),
        (&["--prometheus", "http://a", "--prometheus", "answers.json"], "expected one URL, or files"),
        (&["--prometheus", "ftp://a"], "expected http:// or https://"),
        (&["--prometheus", "answers.json", "--prometheus", "answers.json"], "is there twice"),
        (&["--print-queries", "--at", "$(reboot)"], "expected RFC 3339 or seconds since 1970"),
        (&[], "--prometheus"),
        (
            &["--traces", "answers.json"],
            "read the traces `answers.json`: not traces as OTLP, Jaeger or Zipkin",
        ),
        (&["--traces", "empty"], "read the traces `empty`: the directory has no file"),
        (
            &["--traces", "spans"],
            "hint: name the share of the requests that is traced, such as `--sampling 10%`",
        ),
        (
            &["--traces", "no-spans.json", "--sampling", "10%"],
            "hint: requests begin with spans of servers and calls with those of clients",
        ),
        (
            &["--traces", "backwards.json", "--sampling", "10%"],
            "the traces have no request and no call that is kept: 1 spans have no time",
        ),
        (&["--traces", "backwards.json", "--sampling", "10%"], "hint: a trace needs all its spans"),
        (&["--prometheus", "none.json"], "Istio's metrics may not be scraped"),
        (&["--prometheus", "answers.json", "--traces", "spans", "--sampling", "10%"], "cannot be used with"),
        (&["--sampling", "10%"], "--traces <PATH>"),
    ] {
        let output = learn(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn prometheus_is_queried_with_a_token_and_its_refusal_is_an_error() {
    let folder = folder();
    fs::write(folder.path().join("token"), "Authorization: Bearer s3cret\n").unwrap();
    let server = Server::start(None, |request| {
        let has_token = request.header("authorization") == Some("Bearer s3cret");
        let is_query = request.method == "GET"
            && request.target.starts_with("/prometheus/api/v1/query?query=label_replace");
        match (has_token, is_query) {
            (false, _) => Response::new(401, "no token"),
            (true, true) if request.target.contains("%22istio_requests_total%203600s%22") => {
                Response::new(200, answer())
            }
            (true, true) => Response::new(200, r#"{"status":"success","data":{"result":[]}}"#),
            (true, false) => Response::new(404, ""),
        }
    });
    let url = format!("http://{}/prometheus", server.address());
    let from_file = learn(folder.path(), &["--prometheus", "answers.json"]);
    let output =
        learn(folder.path(), &["--prometheus", &url, "--prometheus-header", "@token", "--at", "1800003600"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), stdout(&from_file));
    assert!(!stderr(&output).contains("s3cret"));

    let output = learn(folder.path(), &["--prometheus", &url]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("HTTP 401: no token"), "{}", stderr(&output));
}

#[test]
fn hashed_names_are_the_same_with_the_kept_salt() {
    let folder = folder();
    let arguments = ["--prometheus", "answers.json", "--anonymise", "--out", "shop.yaml"];
    assert!(learn(folder.path(), &arguments).status.success());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let first = read("shop.yaml");
    let mode = fs::metadata(folder.path().join("shop.salt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for text in [&first, &read("shop.provenance.json")] {
        assert!(
            !text.contains("cart") && !text.contains("bank") && !text.contains(&read("shop.salt")),
            "{text}"
        );
    }
    assert!(learn(folder.path(), &arguments).status.success());
    assert_eq!(read("shop.yaml"), first);
    assert!(!first.contains("shop"), "the file's own name stays with it: {first}");
    std::os::unix::fs::symlink("elsewhere", folder.path().join("linked.salt")).unwrap();
    let linked = ["--prometheus", "answers.json", "--anonymise", "--out", "linked.yaml"];
    assert_ne!(learn(folder.path(), &linked).status.code(), Some(0));
    assert!(!folder.path().join("elsewhere").exists(), "a link to nothing is not followed");
    let short = learn(folder.path(), &["--prometheus", "answers.json", "--anonymise", "--salt", "@short"]);
    assert_eq!(short.status.code(), Some(2));
}

#[test]
fn sources_are_kept_beside_files_alone() {
    let folder = folder();
    for out in ["/dev/stdout", "-"] {
        let output = learn(folder.path(), &["--prometheus", "answers.json", "--out", out]);
        assert!(output.status.success() && stdout(&output).contains("services:"), "{}", stderr(&output));
        assert!(stderr(&output).contains("the sources of the figures are not kept"), "{}", stderr(&output));
    }
    assert!(!Path::new("/dev/stdout.provenance.json").exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the answers alone");
}

#[test]
fn queries_are_printed_with_their_commands() {
    let output = learn(Path::new("."), &["--print-queries", "--range", "2h"]);
    let text = stdout(&output);
    assert_eq!(text.lines().filter(|line| line.starts_with("curl -fsS -G ")).count(), 28);
    assert!(text.contains("increase(istio_requests_total[7200s])"), "{text}");
    assert!(text.contains("\nset -eu\n") && text.contains("\nAT=\"$(date +%s)\"\n"), "{text}");
    let at = learn(Path::new("."), &["--print-queries", "--at", "2027-01-15T08:00:00Z"]);
    assert!(stdout(&at).contains("\nAT=\"2027-01-15T08:00:00Z\"\n"), "{}", stdout(&at));
}

#[test]
fn summary_shows_at_most_five_findings_of_a_kind_and_opens_with_warnings() {
    let folder = folder();
    let row = |to: usize, reporter: &str, count: u32| {
        format!(
            r#"{{"metric":{{"meshmeter":"istio_requests_total 3600s","reporter":"{reporter}","source_workload":"web","destination_workload":"s{to}"}},"value":[1800003600,"{count}"]}}"#
        )
    };
    let rows = (0..9).flat_map(|to| [row(to, "source", 9000), row(to, "destination", 5000)]);
    let text = format!(
        r#"{{"status":"success","data":{{"result":[{}]}},"warnings":["no answer of a store"]}}"#,
        rows.collect::<Vec<_>>().join(",")
    );
    fs::write(folder.path().join("many.json"), text).unwrap();
    let summary = stderr(&learn(folder.path(), &["--prometheus", "many.json"]));
    assert!(summary.starts_with("warnings: Prometheus says of its answers"), "{summary}");
    assert_eq!(
        summary.lines().filter(|line| line.starts_with("disagreement: unknown")).count(),
        5,
        "{summary}"
    );
    assert!(summary.contains("disagreement: 4 more, in the provenance that --out writes"), "{summary}");
}
