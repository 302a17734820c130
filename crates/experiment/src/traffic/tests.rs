//! Tests of traffic files: reading, and rejection with messages.

use super::*;
use crate::file::Files;
use std::fmt::Write as _;
use std::path::PathBuf;

const SHOP: &str = r#"
url: http://127.0.0.1:8080/api
headers: { X-Api-Key: k, Accept: text/html }
requests:
  - name: list
    weight: 8
    path: /items?page={1..50}
  - name: buy
    weight: 2
    method: POST
    path: /orders/{order}
    headers: { accept: application/json, X-User: "{user}" }
    body: '{"id": {order}, "user": "{user}", "{{raw}": {}}'
    expect: { status: [200, 2xx], min-bytes: 100, max-bytes: 1KiB }
  - { method: PUT, path: /blob, body-size: 2KiB, expect: { status: 201, text: [a, "{b}"], json: { /a: 1, "": "null" } } }
data:
  order: { unique: true, from: 1000 }
  user: { csv: users.csv, column: name }
  email: { csv: users.csv, column: email }
  any: { csv: users.csv, column: name, order: random }
  item: { json-lines: items.jsonl, pointer: /id, at-end: stop }
  page: { range: [5, 9], order: random }
  word: { values: [one, 2, true] }
  text: { filler: { log-normal: { median: 1KiB, p99: 20KiB } } }
"#;

/// Files by name.
struct Folder;

impl Files for Folder {
    fn text(&self, path: &str) -> Result<String, String> {
        let text = match path {
            "users.csv" => "name,email\nada,ada@a.example\n\"Tom, Jr.\",tom@a.example\n",
            "items.jsonl" => "{\"id\": \"a b\"}\n\n{\"id\": 7}\n{\"id\": {\"x\": [1]}}\n",
            "lines.csv" => "user\n\"a\nb\"\n",
            "head.csv" => "name,email\n",
            "short.csv" => "name,email\nada,a\ntom\n",
            "open.csv" => "name\n\"ada\n",
            "empty" => "",
            "times.txt" => "1.5s\n\n2ms\n 1m \n",
            "bad.jsonl" => "{}\n{a}\n",
            _ => return Err(format!("read {path}: No such file or directory (os error 2)")),
        };
        Ok(text.to_owned())
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

fn rows(data: &Data) -> Vec<&str> {
    data.rows().into_iter().flat_map(Rows::iter).collect()
}

#[test]
fn file_reads_every_key() {
    let shop = read(SHOP, "shop.yaml", &Folder).unwrap();
    assert_eq!(shop.url, "http://127.0.0.1:8080/api");
    let [list, buy, blob] = &shop.requests[..] else { panic!("{:?}", shop.requests) };
    assert_eq!((list.name.as_str(), list.weight, list.method.as_str()), ("list", 8, "GET"));
    assert_eq!(list.path.pieces(), [Piece::Text("/items?page={1..50}".into())]);
    assert_eq!(list.body, Body::Template(Template::default()));
    let names: Vec<&str> = buy.headers.iter().map(|header| header.name.as_str()).collect();
    assert_eq!(names, ["X-Api-Key", "accept", "X-User"], "its own header replaces the common one");
    assert_eq!(buy.path.pieces(), [Piece::Text("/orders/".into()), Piece::Data(0)]);
    let Body::Template(body) = &buy.body else { panic!("{:?}", buy.body) };
    assert_eq!(
        body.pieces()[4..],
        [Piece::Text("\", \"".into()), Piece::Brace, Piece::Text("raw}\": {}}".into())]
    );
    let status = buy.expect.status.as_ref().unwrap();
    assert!(status.contains(200) && status.contains(204) && !status.contains(304));
    assert_eq!((buy.expect.min_bytes, buy.expect.max_bytes), (Some(100), Some(1024)));
    assert_eq!((blob.name.as_str(), &blob.body), ("PUT /blob", &Body::Filler(2048)));
    let pair = |pointer: &str, value: &str| (pointer.to_owned(), value.to_owned());
    assert_eq!(
        (&blob.expect.text[..], &blob.expect.json[..]),
        (&["a".into(), "{b}".into()][..], &[pair("/a", "1"), pair("", "null")][..])
    );
    let data: Vec<(&str, usize)> = shop.data.iter().map(|data| (data.name.as_str(), data.source)).collect();
    assert_eq!(
        data,
        [
            ("order", 0),
            ("user", 1),
            ("email", 1),
            ("any", 2),
            ("item", 3),
            ("page", 4),
            ("word", 5),
            ("text", 6)
        ],
        "a request has name and address of one user"
    );
    assert_eq!(rows(&shop.data[2]), ["ada@a.example", "tom@a.example"]);
    assert_eq!(rows(&shop.data[3]), ["ada", "Tom, Jr."]);
    assert_eq!(rows(&shop.data[4]), ["a b", "7", "{\"x\":[1]}"]);
    assert_eq!(rows(&shop.data[6]), ["one", "2", "true"]);
    let source = |first, count, order, at_end| Source { first, count, order, at_end };
    assert_eq!(
        shop.sources,
        [
            source(1000, None, Order::Turn, AtEnd::Again),
            source(0, Some(2), Order::Turn, AtEnd::Again),
            source(0, Some(2), Order::Random, AtEnd::Again),
            source(0, Some(3), Order::Turn, AtEnd::Stop),
            source(5, Some(5), Order::Random, AtEnd::Again),
            source(0, Some(3), Order::Turn, AtEnd::Again),
            source(0, Some(FILLER_SIZES), Order::Random, AtEnd::Again),
        ]
    );
    let sizes = Distribution::LogNormal { median: 1024.0, p99: 20_480.0 };
    assert_eq!(shop.data[7].values, Values::Filler(sizes));
}

#[test]
fn secrets_of_paths_are_sent_and_not_shown() {
    let text = "url: http://a\nrequests: [{path: '/a?token=s3cret&b={n}'}]\ndata: {n: {range: [1, 2]}}";
    let request = &read(text, "shop.yaml", &Folder).unwrap().requests[0];
    assert_eq!(
        (request.name.as_str(), request.shown_path.as_str()),
        ("GET /a?token=******&b={n}", &request.name[4..])
    );
    assert!(format!("{:?}", request.path).contains("token=s3cret"), "{:?}", request.path);
}

#[test]
fn json_is_read_as_yaml_is() {
    let text = r#"{"url": "http://a", "requests": [{"path": "/{n}"}], "data": {"n": {"range": [1, 2]}}}"#;
    assert_eq!(read(text, "shop.json", &Folder).unwrap().requests[0].name, "GET /{n}");
}

#[test]
fn invalid_files_report_place_and_expectation() {
    let one = |request: &str| format!("url: http://a\nrequests:\n  - {request}\n");
    let of =
        |data: &str| format!("url: http://a\nrequests:\n  - {{path: '/{{user}}'}}\ndata:\n  user: {data}\n");
    let headers = |value: &str, file: &str| {
        format!(
            "url: http://a\nrequests:\n  - {{path: /, headers: {{X-A: \"{value}\"}}}}\ndata: {{user: {{csv: {file}}}}}\n"
        )
    };
    let mut all = String::new();
    for text in [
        String::new(),
        "[1, 2]".to_owned(),
        "url: http://a\n".to_owned(),
        "url: http://a\nrequest: []\n".to_owned(),
        "url: http://a\nrequests: []\n".to_owned(),
        "url: http://a\nrequests: {path: /}\n".to_owned(),
        one("{weight: 1}"),
        one("{path: /, wieght: 1}"),
        one("{path: /, weight: 0}"),
        one("{path: /, weight: -1}"),
        one("{path: /, weight: 99999999999}"),
        one("{path: /, weight: 0.5}"),
        one("{path: items}"),
        one("{path: /a b}"),
        one("{path: '/{{a}'}"),
        one("{path: /, method: post}"),
        one("{path: /, name: ''}"),
        one("{path: /, headers: {}}"),
        one("{path: /, headers: {X A: b}}"),
        one("{path: /, headers: {X-A: \"b\\nc\"}}"),
        one("{path: /, headers: {X-A: b, x-a: c}}"),
        one("{path: /, headers: {X-A: []}}"),
        one("{path: /, headers: {Authorization: Bearer s3cret}, wieght: 1}"),
        one("{path: /, body: a, body-size: 1}"),
        one("{path: /, body-size: 1GiB}"),
        one("{path: /, body-file: none.json}"),
        one("{path: /, expect: {}}"),
        one("{path: /, expect: {status: [200, 2yy]}}"),
        one("{path: /, expect: {status: 9xx}}"),
        one("{path: /, expect: {text: ''}}"),
        one("{path: /, expect: {json: {a: b}}}"),
        one("{path: /, expect: {json: {/a: {b: c}}}}"),
        one("{path: /, expect: {min-bytes: 2, max-bytes: 1}}"),
        one("{path: /}\n  - {path: /}"),
        one("{path: '/{user}'}"),
        of("{values: [a]}").replace("{user}", "{usr}"),
        of("{values: [/a]}").replace("/{user}", "{user}b").replace("[/a]", "[a]"),
        of("{}"),
        of("{value: [a]}"),
        of("{values: [a], range: [1, 2]}"),
        of("{values: [a], column: b}"),
        of("{values: []}"),
        of("{filler: {log-normal: {median: 1KiB}}}"),
        of("{filler: 1GiB}"),
        of("{filler: 1KiB, order: turn}"),
        of("{unique: false}"),
        of("{unique: true, from: -1}"),
        of("{range: [1]}"),
        of("{range: [2, 1]}"),
        of("{range: [1, 2], order: randon}"),
        of("{range: [1, 2], order: random, at-end: stop}"),
        of("{csv: none.csv, column: name}"),
        of("{csv: empty}"),
        of("{csv: head.csv, column: name}"),
        of("{csv: users.csv}"),
        of("{csv: users.csv, column: nmae}"),
        of("{csv: short.csv, column: name}"),
        of("{csv: open.csv}"),
        of("{json-lines: items.jsonl, pointer: id}"),
        of("{json-lines: items.jsonl, pointer: /x}"),
        of("{json-lines: bad.jsonl}"),
        "url: http://a\nrequests: [{path: /}]\ndata: {1a: {values: [b]}}\n".to_owned(),
        headers("{user}", "lines.csv"),
    ] {
        let error = read(&text, "shop.yaml", &Folder).unwrap_err();
        let _ = writeln!(all, "{}\n", error.render(false));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn path_may_be_a_value_that_begins_with_a_slash() {
    let text = "url: http://a\nrequests: [{path: '{path}'}]\ndata: {path: {values: [/a?b, /c d]}}\n";
    assert_eq!(read(text, "shop.yaml", &Folder).unwrap().requests[0].path.pieces(), [Piece::Data(0)]);
}

#[test]
fn kinds_and_size_are_limited() {
    let kinds = |count: usize| {
        let requests: String = (0..count).map(|kind| format!("  - {{path: /{kind}}}\n")).collect();
        read(&format!("url: http://a\nrequests:\n{requests}"), "many.yaml", &Folder)
    };
    assert_eq!(kinds(1000).unwrap().requests.len(), 1000);
    assert_eq!(kinds(10_000).unwrap_err().message, "there are 10000 kinds of requests");
    let bodies: String = (0..17).map(|kind| format!("  - {{path: /{kind}, body-size: 64MiB}}\n")).collect();
    let error = read(&format!("url: http://a\nrequests:\n{bodies}"), "large.yaml", &Folder).unwrap_err();
    assert_eq!((error.message.as_str(), error.line), ("the bodies are too large", 19));
    let large = "#".repeat(2 << 20);
    assert_eq!(read(&large, "large.yaml", &Folder).unwrap_err().message, "the file is too large");
}

/// Sessions whose steps name a request, and have one.
const SESSIONS: &str = r#"
url: http://127.0.0.1:8080
requests:
  - { name: login, method: POST, path: /login, body: '{"user": "{user}"}' }
sessions:
  - name: buy
    weight: 3
    think: { exponential: 2s }
    steps:
      - { request: login, extract: { token: { json: /token }, id: { header: X-Id } } }
      - path: /cart/{id}
        headers: { Authorization: "Bearer {token}" }
        think: 500ms
        on-failure: continue
        extract: { id: { regex: 'id=(\d+)' } }
      - path: /cart/{id}
        think: { file: times.txt }
  - { name: look, on-failure: continue, steps: [login] }
data:
  user: { values: [ada, tom] }
"#;

#[test]
fn sessions_are_read_with_the_requests_of_their_steps() {
    let file = read(SESSIONS, "shop.yaml", &Folder).unwrap();
    let alike = "url: http://a\nsessions: [{name: a, steps: [{path: /, name: b}, {path: /, name: b}, {path: /, name: b (2)}]}]\n";
    let alike = read(alike, "shop.yaml", &Folder).unwrap();
    let names: Vec<&str> = alike.requests.iter().map(|request| request.name.as_str()).collect();
    assert_eq!(names, ["a/b", "a/b (2)", "a/b (2) (2)"]);
    let names: Vec<&str> = file.requests.iter().map(|request| request.name.as_str()).collect();
    assert_eq!(names, ["buy/login", "buy/GET /cart/{id}", "buy/GET /cart/{id} (2)", "look/login"]);
    let [buy, look] = &file.sessions[..] else { panic!("{:?}", file.sessions) };
    assert_eq!((buy.name.as_str(), buy.weight, buy.values), ("buy", 3, 2));
    assert_eq!((look.name.as_str(), look.weight, look.values, look.steps.len()), ("look", 1, 0, 1));
    let [login, cart, again] = &buy.steps[..] else { panic!("{:?}", buy.steps) };
    let [token, id] = &login.extract[..] else { panic!("{:?}", login.extract) };
    assert!(matches!(&token.origin, Origin::Json(pointer) if pointer == "/token") && token.value == 0);
    assert!(matches!(&id.origin, Origin::Header(name) if name == "x-id") && id.value == 1);
    assert!(matches!(&cart.extract[..], [Extract { value: 1, origin: Origin::Regex(_) }]));
    assert_eq!((cart.on_failure, again.on_failure), (OnFailure::Continue, OnFailure::End));
    assert!(matches!(login.think, Think::Drawn(Distribution::Exponential { mean: 2.0 })));
    assert!(matches!(cart.think, Think::Drawn(Distribution::Fixed(0.5))));
    let times = [1500, 2, 60_000].map(Duration::from_millis);
    assert!(matches!(&again.think, Think::Listed(listed) if listed[..] == times));
    assert_eq!(file.requests[1].path.pieces(), [Piece::Text("/cart/".into()), Piece::Extracted(1)]);
    assert_eq!(look.steps[0].on_failure, OnFailure::Continue);
}

#[test]
fn invalid_sessions_report_place_and_expectation() {
    let of = |session: &str| {
        format!(
            "url: http://a\nrequests: [{{path: /, name: home}}]\nsessions:\n  - {session}\ndata: {{d: {{values: [a]}}}}\n"
        )
    };
    let steps = |steps: &str| of(&format!("{{name: s, steps: [home, {steps}]}}"));
    let mut all = String::new();
    for text in [
        "url: http://a\nsessions: []\n".to_owned(),
        "url: http://a\nrequests: [{path: /, weight: 2}]\nsessions: [{name: s, steps: [GET /]}]\n".to_owned(),
        "url: http://a\nrequests: [{path: /}]\nsessions: [{name: s, steps: [{path: /}]}]\n".to_owned(),
        "url: http://a\nsessions: [{name: s, steps: [home]}]\n".to_owned(),
        of("{steps: [home]}"),
        of("{name: s}"),
        of("{name: s, steps: []}"),
        of("{name: s, steps: [hme]}"),
        of("{name: s, steps: [home]}\n  - {name: s, steps: [home]}"),
        of("{name: s, steps: [home], think: {constant: 1s}}"),
        of("{name: s, steps: [home], on-failure: stop}"),
        steps("{weight: 2, path: /}"),
        steps("{request: home, path: /}"),
        steps("{path: '/{token}'}"),
        steps("{path: '/{tokn}'}").replace("home,", "{request: home, extract: {token: {json: /t}}},"),
        steps("{path: '{token}'}").replace("home,", "{request: home, extract: {token: {json: /t}}},"),
        steps("{path: /, think: 25h}"),
        steps("{path: /, think: {file: empty}}"),
        steps("{path: /, think: {file: users.csv}}"),
        of("{name: s, steps: [{request: home, think: 1s}]}"),
        steps("{path: /, extract: {}}"),
        steps("{path: /, extract: {d: {json: /d}}}"),
        steps("{path: /, extract: {1a: {json: /d}}}"),
        steps("{path: /, extract: {a: {}}}"),
        steps("{path: /, extract: {a: {json: /d, header: X-D}}}"),
        steps("{path: /, extract: {a: {json: d}}}"),
        steps("{path: /, extract: {a: {regex: '('}}}"),
        steps("{path: /, extract: {a: {regex: '(a)(b)'}}}"),
        steps("{path: /, extract: {a: {regex: '(a{1000}){1000}'}}}"),
    ] {
        let error = read(&text, "shop.yaml", &Folder).unwrap_err();
        let _ = writeln!(all, "{}\n", error.render(false));
    }
    insta::assert_snapshot!(all);
}
