//! Traffic files of `meshmeter load`.

mod command;

use command::{NOBODY, Serving, capturing, meshmeter, run, stderr, stdout};
use results::{KindResult, LoadResult};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

/// A folder with a traffic file and its data.
fn folder(traffic: &str, data: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("traffic.yaml"), traffic).unwrap();
    data.iter().for_each(|(name, content)| fs::write(folder.path().join(name), content).unwrap());
    folder
}

fn load(folder: &Path, arguments: &[&str]) -> Output {
    let file = folder.join("traffic.yaml").display().to_string();
    // No request times out on a machine that stalls.
    run(&[&["load", "--progress", "off", "--timeout", "60s"], arguments, &[&file]].concat())
}

fn result_of(folder: &Path, arguments: &[&str]) -> LoadResult {
    let output = load(folder, &[arguments, &["--json", "-"]].concat());
    let result: LoadResult =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let requests = &result.requests;
    assert_eq!(requests.scheduled, requests.sent + requests.unsent, "{requests:?}");
    assert_eq!(requests.sent, requests.completed + requests.failed, "{requests:?}");
    let total = |count: fn(&KindResult) -> u64| result.kinds.iter().map(count).sum::<u64>();
    assert_eq!(
        (total(|kind| kind.requests.sent), total(|kind| kind.requests.unsent)),
        (requests.sent, requests.unsent)
    );
    assert_eq!(
        (total(|kind| kind.requests.completed), total(|kind| kind.requests.failed)),
        (requests.completed, requests.failed)
    );
    result
}

const SHOP: &str = r#"
requests:
  - name: list
    weight: 8
    path: /items?page={1..50}
    headers: { X-Tag: [one, two] }
  - name: buy
    weight: 2
    method: POST
    path: /orders/{order}/{user}
    headers: { X-User: "{user}", X-Email: "{email}" }
    body: '{"id": {order}, "by": {"name": "{user}"}, "as": "{{order}"}'
data:
  order: { unique: true, from: 100 }
  user: { csv: users.csv, column: name }
  email: { csv: users.csv, column: email }
"#;

#[test]
fn kinds_are_sent_by_weight_with_their_data() {
    let (address, requests) = capturing();
    let url = format!("url: http://tom:secret@{address}/api/");
    let users = b"name,email\nMary Ann,m@a.example\n\"Tom, Jr\",t@a.example\n";
    let folder = folder(&format!("{url}\n{SHOP}"), &[("users.csv", users)]);
    let options =
        ["--clients", "1", "--requests", "50", "--order", "turn", "-H", "x-user: nobody", "-H", "X-All: yes"];
    let result = result_of(folder.path(), &options);
    let requests = requests.join().unwrap();
    let [list, buy] = &result.kinds[..] else { panic!("{:?}", result.kinds) };
    assert_eq!((list.name.as_str(), list.weight, list.requests.completed), ("list", 8, 40));
    assert_eq!((buy.name.as_str(), buy.weight, buy.requests.completed), ("buy", 2, 10));
    assert!(buy.requests.url.ends_with("/api/orders/{order}/{user}"), "{}", buy.requests.url);
    assert!(!format!("{result:?}").contains("secret"), "{result:?}");
    let pages: BTreeSet<&str> =
        requests.iter().filter_map(|request| request.strip_prefix("GET /api/items?page=")).collect();
    assert!(!pages.is_empty() && pages.iter().all(|page| !page.starts_with('{')), "{pages:?}");
    assert!(requests.iter().all(|request| request.contains("\r\nX-All: yes\r\n")), "{requests:?}");
    let tagged = requests.iter().filter(|request| request.contains("\r\nX-Tag: one\r\nX-Tag: two\r\n"));
    assert_eq!(tagged.count(), 40, "{requests:?}");
    let bought: Vec<&String> = requests.iter().filter(|request| request.starts_with("POST ")).collect();
    for (number, request) in bought.iter().enumerate() {
        let (name, in_path, email) = match number % 2 {
            0 => ("Mary Ann", "Mary%20Ann", "m@a.example"),
            _ => ("Tom, Jr", "Tom,%20Jr", "t@a.example"),
        };
        let order = 100 + number;
        assert!(
            request.starts_with(&format!("POST /api/orders/{order}/{in_path} HTTP/1.1\r\n")),
            "{request}"
        );
        assert!(request.contains(&format!("\r\nX-User: {name}\r\nX-Email: {email}\r\n")), "{request}");
        assert!(!request.contains("nobody"), "{request}");
        let body = format!("{{\"id\": {order}, \"by\": {{\"name\": \"{name}\"}}, \"as\": \"{{order}}\"}}");
        assert!(request.ends_with(&format!("\r\n\r\n{body}")), "{request}");
    }
    assert_eq!(bought.len(), 10);
}

/// Kinds of which each second one is not as it expects.
const CHECKED: &str = r#"
requests:
  - { name: right, path: "/?status=404", expect: { status: [2xx, 404] } }
  - { name: wrong, path: "/?status=503", expect: { status: 200 } }
  - { name: small, path: "/?size=10", expect: { min-bytes: 1KiB, status: 2xx } }
  - { name: large, path: "/?size=4KiB", method: PUT, body-size: 2KiB, expect: { min-bytes: 1KiB, max-bytes: 5KiB } }
  - { name: unchecked, path: "/?status=500" }
"#;

#[test]
fn responses_that_fail_a_check_are_failed_requests_of_their_kind() {
    let server = Serving::start(&[]);
    let folder = folder(&format!("url: {}{CHECKED}", server.url()), &[]);
    let closed = ["--clients", "2", "--requests", "100"];
    let open = ["--rate", "200", "--duration", "500ms"];
    for (load, http) in [(&closed[..], "1.1"), (&open, "1.1"), (&closed, "2"), (&open, "2")] {
        let arguments = [load, &["--order", "turn", "--http", http]].concat();
        // A machine that stalls for the whole window of an open loop leaves all requests unsent.
        let mut results = (0..10).map(|_| result_of(folder.path(), &arguments));
        let sent_all = |result: &LoadResult| result.kinds.iter().all(|kind| kind.requests.sent > 0);
        let result = results.find(sent_all).expect("each kind is sent");
        let kind = |name: &str| &result.kinds.iter().find(|kind| kind.name == name).unwrap().requests;
        for (name, is_right) in
            [("right", true), ("wrong", false), ("small", false), ("large", true), ("unchecked", true)]
        {
            let requests = kind(name);
            let (completed, failed) = if is_right { (requests.sent, 0) } else { (0, requests.sent) };
            assert!(requests.sent > 0, "{name}");
            assert_eq!((requests.completed, requests.failed), (completed, failed), "{name}: {requests:?}");
            assert_eq!(requests.response_time_us.count, completed, "{name}");
            assert_eq!(requests.response_time_us.censored, failed + requests.unsent, "{name}");
        }
        let errors = &result.requests.errors;
        assert_eq!((errors["check-status"], errors["check-size"]), (kind("wrong").sent, kind("small").sent));
        for (name, error, status) in [("wrong", "check-status", "503"), ("small", "check-size", "200")] {
            let requests = kind(name);
            assert_eq!((requests.errors.len(), requests.errors[error]), (1, requests.sent), "{name}");
            assert_eq!(requests.status[status], requests.sent, "{name}");
        }
        // A status that its kind expects is no error, and one of another kind is.
        let unexpected: Vec<_> = result.requests.unexpected_status.iter().flatten().collect();
        assert_eq!(unexpected, [(&"500".to_owned(), &kind("unchecked").sent)]);
        // Those of failed checks are shown, too.
        let of_kind = [("404", "right"), ("503", "wrong"), ("500", "unchecked")];
        of_kind.iter().for_each(|(code, name)| assert_eq!(result.requests.status[*code], kind(name).sent));
        assert!(
            result.verdict.reasons.iter().any(|reason| reason.starts_with("errors: ")),
            "{:?}",
            result.verdict
        );
    }
}

/// Kinds with checks of content: a name with `not` is of those whose responses fail them.
const CONTENT: &str = r#"
requests:
  - { name: text, path: "/?size=100", expect: { text: ["0000..", "..."] } }
  - { name: not-text, path: "/?size=100", expect: { text: ["...", "{y}"] } }
  - { name: stream, path: "/?events=3", expect: { text: "data: " } }
  - { name: large, path: "/?size=3MiB", expect: { text: "...", min-bytes: 3MiB } }
  - name: json
    method: POST
    path: /v1/chat/completions
    body: '{"messages": [], "max_tokens": 3}'
    expect: { json: { /object: chat.completion, /usage/completion_tokens: 3 } }
  - name: not-json
    method: POST
    path: /v1/chat/completions
    body: '{"messages": [], "max_tokens": 3}'
    expect: { json: { /object: chat.completion, /usage/completion_tokens: "4" } }
  - { name: not-any-json, path: "/?size=100", expect: { json: { /a: "null" } } }
"#;

#[test]
fn bodies_are_checked_for_texts_and_json_values() {
    let server = Serving::start(&[]);
    let folder = folder(&format!("url: {}{CONTENT}", server.url()), &[]);
    for http in ["1.1", "2"] {
        let options = ["--clients", "2", "--requests", "70", "--order", "turn", "--http", http];
        let result = result_of(folder.path(), &options);
        for KindResult { name, requests, .. } in &result.kinds {
            let expected = match name.as_str() {
                "not-text" => vec![("check-text", requests.sent)],
                "not-json" | "not-any-json" => vec![("check-json", requests.sent)],
                _ => Vec::new(),
            };
            let errors: Vec<(&str, u64)> =
                requests.errors.iter().map(|(error, count)| (error.as_str(), *count)).collect();
            assert_eq!((errors, requests.status["200"]), (expected, requests.sent), "{name}");
            assert!(requests.sent > 0, "{name}");
        }
    }
}

#[test]
fn requests_without_data_are_errors_by_name() {
    let server = Serving::start(&[]);
    let traffic = format!(
        "url: {}\nrequests: [{{path: '/{{id}}', name: once}}]\n\
         data: {{id: {{json-lines: ids.jsonl, pointer: /id, at-end: stop}}}}\n",
        server.url()
    );
    let folder = folder(&traffic, &[("ids.jsonl", b"{\"id\": \"a\"}\n{\"id\": 2}\n{\"id\": \"c\"}\n")]);
    let options = [
        &["--clients", "2", "--requests", "10", "--threads", "1"][..],
        &["--rate", "20", "--duration", "500ms", "--threads", "1"],
    ];
    for options in options {
        let before = server.requests();
        let result = result_of(folder.path(), options);
        let requests = &result.requests;
        assert_eq!(requests.scheduled, 10, "{requests:?}");
        // A machine that stalls leaves the last ones unsent.
        assert_eq!(requests.completed, requests.sent.min(3), "{requests:?}");
        assert_eq!(requests.errors.get("data-ended").copied().unwrap_or(0), requests.failed, "{requests:?}");
        assert_eq!(result.response_time_us.count, requests.completed);
        assert_eq!(server.requests() - before, requests.completed, "the others are not sent");
    }
}

#[test]
fn text_has_a_line_per_kind_without_control_of_the_terminal() {
    let server = Serving::start(&[]);
    let traffic = format!(
        "url: {}\nrequests: [{{path: /a, name: '<b>a</b>'}}, {{path: /b, weight: 3}}]\n",
        server.url()
    );
    let folder = folder(&traffic, &[]);
    let output = load(folder.path(), &["--clients", "1", "--requests", "40"]);
    let text = stdout(&output);
    let lines = text.lines().skip_while(|line| !line.contains("response time per kind, in "));
    let names: Vec<&str> = lines.skip(1).take(2).filter_map(|line| Some(line.rsplit_once("  ")?.1)).collect();
    assert_eq!(names, ["<b>a</b>", "GET /b"], "{text}");
}

#[test]
fn traffic_is_shared_by_threads_and_generators_without_repeating_unique_numbers() {
    let server = Serving::start(&[]);
    let traffic =
        format!("url: {}\nrequests: [{{path: '/{{id}}'}}]\ndata: {{id: {{unique: true}}}}\n", server.url());
    let folder = folder(&traffic, &[]);
    let parts: Vec<String> = ["1/2", "2/2"]
        .iter()
        .enumerate()
        .map(|(part, share)| {
            let path = folder.path().join(format!("{part}.json")).display().to_string();
            let load = ["--share", share, "--clients", "4", "--requests", "60", "--json", &path];
            let output = self::load(folder.path(), &load);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
            path
        })
        .collect();
    let merged = run(&["load", "merge", &parts[0], &parts[1], "--json", "-"]);
    let merged: LoadResult = serde_json::from_slice(&merged.stdout).unwrap();
    let [kind] = &merged.kinds[..] else { panic!("{:?}", merged.kinds) };
    assert_eq!((kind.name.as_str(), kind.requests.completed), ("GET /{id}", 60));
    assert_eq!(kind.requests.response_time_us.count, 60);
}

#[test]
fn unusable_files_are_explained_before_anything_is_sent() {
    let url = format!("url: http://{NOBODY}\n");
    let with_user =
        |request: &str| format!("{url}requests: [{request}]\ndata: {{user: {{csv: users.csv}}}}\n");
    for (traffic, data, expected) in [
        (with_user("{path: '/{usr}'}"), &b"user\nada\n"[..], "did you mean `{user}`?"),
        (with_user("{path: '/{user}'}"), b"user\n\xff\n", "it is not UTF-8 text"),
        (with_user("{path: '/{user}'}"), b"", "has no values"),
        (with_user("{path: '/{1..x}'}"), b"user\nada\n", "hint: a brace that does not belong to a range"),
        (
            with_user("{path: /, body: a, headers: {Content-Length: 7}}"),
            b"user\nada\n",
            "hint: leave it out of `headers`",
        ),
        (
            format!("{url}requests:\n  - path: /\n    headers: {{Transfer-Encoding: chunked}}\n"),
            b"",
            "traffic.yaml:4:15",
        ),
        (
            format!("{url}requests: [{{path: /, weight: 0}}]\n"),
            b"",
            "expected a whole number from 1 to 1000000",
        ),
        (url.replace("http:", "grpc:") + "requests: [{path: /}]\n", b"", "not a URL of HTTP"),
        (url.replace("http:", "2=http:") + "requests: [{path: /}]\n", b"", "it has a weight, a query"),
    ] {
        let folder = folder(&traffic, &[("users.csv", data)]);
        let output = load(folder.path(), &["--rate", "10"]);
        assert_eq!(output.status.code(), Some(2), "{traffic}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{traffic}: {}", stderr(&output));
    }
}

#[test]
fn missing_files_and_options_of_urls_are_usage_errors() {
    let folder = folder(&format!("url: http://{NOBODY}\nrequests: [{{path: /}}]\n"), &[]);
    fs::write(folder.path().join("bad.json"), b"\xff").unwrap();
    fs::copy(folder.path().join("traffic.yaml"), folder.path().join("traffic.yml.bak")).unwrap();
    fs::copy(folder.path().join("traffic.yaml"), folder.path().join("traffic")).unwrap();
    for (arguments, expected) in [
        (&["trafic.yaml"][..], "hint: did you mean `traffic.yaml`?"),
        (&["none.json"], "No such file"),
        (&["traffic.yml.bak"], "hint: a traffic file ends with one of .yaml, .yml, .json"),
        (&["traffic"], "a host of this name is http://traffic"),
        (&["-H", "Content-Length: 7", "traffic.yaml"], "hint: leave it out of --header"),
        (&["bad.json"], "it is not UTF-8 text"),
        (&["traffic.yaml", "http://127.0.0.1:1/"], "hint: name it alone"),
        (&["-X", "POST", "traffic.yaml"], "--method is for URLs"),
        (&["--body", "a", "traffic.yaml"], "hint: give it to a request of the file: `body`"),
        (&["--expect-status", "2xx", "traffic.yaml"], "`expect`"),
        (&["--per-url", "traffic.yaml"], "always measured apart"),
        (&["--message", "{}", "traffic.yaml"], "--message is for grpc://"),
        (&["--json", "traffic.yaml", "traffic.yaml"], "would overwrite it"),
    ] {
        let output =
            meshmeter().current_dir(folder.path()).args(["load", "--rate", "10"]).args(arguments).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
