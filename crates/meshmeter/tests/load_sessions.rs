//! Sessions of traffic files.

mod command;

use command::{NOBODY, Serving, meshmeter, next_request, run, stderr, stdout};
use results::{LoadResult, SessionCounts};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

/// A shop over HTTP/1.1, which gives each login a number, and checks that what follows has it.
struct Shop {
    port: u16,
    logins: Arc<AtomicU64>,
    /// Users and the hosts that they named, by number of login.
    users: Arc<Mutex<Vec<String>>>,
}

impl Shop {
    /// Each login whose number is divisible by `broken` has no token.
    fn start(broken: Option<u64>) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a free port");
        let shop = Self {
            port: listener.local_addr().expect("it is bound").port(),
            logins: Arc::default(),
            users: Arc::default(),
        };
        let (logins, users) = (Arc::clone(&shop.logins), Arc::clone(&shop.users));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (logins, users) = (Arc::clone(&logins), Arc::clone(&users));
                thread::spawn(move || {
                    let mut connection = BufReader::new(stream);
                    while let Some(request) = next_request(&mut connection) {
                        let answer = answer(&request, &logins, &users, broken);
                        connection.get_mut().write_all(answer.as_bytes()).expect("it reads");
                    }
                });
            }
        });
        shop
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn logins(&self) -> u64 {
        self.logins.load(Ordering::SeqCst)
    }
}

fn header<'r>(request: &'r str, name: &str) -> &'r str {
    let line = request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_default()
}

fn answer(request: &str, logins: &AtomicU64, users: &Mutex<Vec<String>>, broken: Option<u64>) -> String {
    let with =
        |head: &str, body: &str| format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let user = format!("{} at {}", header(request, "X-User"), header(request, "Host"));
    if request.starts_with("POST /login ") {
        assert!(!request.contains("Cookie"), "{request}");
        let number = {
            let mut users = users.lock().unwrap();
            users.push(user);
            logins.fetch_add(1, Ordering::SeqCst)
        };
        let token = if broken.is_some_and(|broken| number % broken == 0) { "none" } else { "token" };
        let body = format!(
            r#"{{"{token}": "t {number}", "cart": {{"id": {number}}}, "page": "<input value='c-{number}'>"}}"#
        );
        let cookies = format!("Set-Cookie: sid={number}; Path=/\r\nSet-Cookie: other={number}; Path=/other");
        let old = "Set-Cookie: old=1\r\nset-cookie: old=; Max-Age=0";
        // Chunked, and the cookies among other fields.
        return format!(
            "HTTP/1.1 200 OK\r\nX-Id: id-{number}\r\n{cookies}\r\n{old}\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
            &body[..5],
            body.len() - 5,
            &body[5..]
        );
    }
    let number = header(request, "Cookie").strip_prefix("sid=").unwrap_or_default();
    let known = number.parse().ok().and_then(|number: usize| users.lock().unwrap().get(number).cloned());
    let expected = format!(
        "PUT /cart/{number}?of=t%20{number} HTTP/1.1\r\n|id-{number}|{user}|{{\"csrf\": \"c-{number}\"}}"
    );
    let found = format!(
        "{}\r\n|{}|{}|{}",
        request.lines().next().unwrap_or_default(),
        header(request, "X-Tag"),
        known.unwrap_or_default(),
        request.rsplit("\r\n\r\n").next().unwrap_or_default()
    );
    if found == expected {
        with("200 OK", "right")
    } else {
        with("409 Conflict", &format!("expected {expected}, found {found}"))
    }
}

/// Sessions of two steps.
const BUY: &str = r#"
headers: {X-User: "{user}"}
requests:
  - name: login
    method: POST
    path: /login
    body: 'user={user}'
sessions:
  - name: buy
    steps:
      - request: login
        extract:
          token: {json: /token}
          cart: {json: /cart/id}
          id: {header: X-ID}
          csrf: {regex: "value='(.*?)'"}
      - name: cart
        method: PUT
        path: /cart/{cart}?of={token}
        headers: {X-Tag: "{id}"}
        body: '{"csrf": "{csrf}"}'
        expect: {status: 200, text: right}
data:
  user: {unique: true}
"#;

fn folder(url: &str, traffic: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("traffic.yaml"), format!("url: {url}\n{traffic}")).unwrap();
    folder
}

fn result_of(folder: &TempDir, arguments: &[&str]) -> LoadResult {
    let file = folder.path().join("traffic.yaml").display().to_string();
    // No request times out on a machine that stalls.
    let timeout: &[&str] = if arguments.contains(&"--timeout") { &[] } else { &["--timeout", "60s"] };
    let usual = ["load", "--progress", "off", "--json", "-"];
    let output = run(&[&usual, timeout, arguments, &[&file]].concat());
    let result: LoadResult =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let requests = &result.requests;
    assert_eq!(requests.scheduled, requests.sent + requests.unsent, "{requests:?}");
    assert_eq!(requests.sent, requests.completed + requests.failed, "{requests:?}");
    let sent: u64 = result.kinds.iter().map(|kind| kind.requests.sent).sum();
    assert_eq!(sent, requests.sent);
    let counts = sessions(&result);
    assert_eq!(counts.started, counts.completed + counts.failed + counts.cut, "{counts:?}");
    result
}

fn sessions(result: &LoadResult) -> &SessionCounts {
    &result.sessions.as_ref().expect("sessions").counts
}

fn sent(result: &LoadResult) -> Vec<(&str, u64, u64)> {
    let kinds = result.kinds.iter();
    kinds.map(|kind| (kind.name.as_str(), kind.requests.sent, kind.requests.failed)).collect()
}

#[test]
fn values_cookies_and_data_are_of_their_session() {
    for (hosts, options) in [
        ("1", &["--clients", "4", "--threads", "2"][..]),
        ("1", &["--clients", "4", "--connections", "2"]),
        ("1", &["--clients", "3", "--new-connection-per-request"]),
        ("{1..3}", &["--clients", "4", "--connections", "6", "--order", "turn"]),
    ] {
        let shop = Shop::start(None);
        let folder = folder(&format!("http://127.0.0.{hosts}:{}", shop.port), BUY);
        let result = result_of(&folder, &[options, &["--requests", "20"]].concat());
        assert_eq!(sent(&result), [("buy/login", 20, 0), ("buy/cart", 20, 0)], "{:?}", result.requests);
        let expected = SessionCounts { started: 20, completed: 20, ..SessionCounts::default() };
        assert_eq!((sessions(&result), result.rate.offered), (&expected, None));
        assert_eq!(shop.logins(), 20);
        let users = shop.users.lock().unwrap();
        let named: BTreeSet<&str> =
            users.iter().filter_map(|user| Some(user.split_once(" at ")?.1)).collect();
        assert_eq!(named.len(), if hosts == "1" { 1 } else { 3 }, "{named:?}");
    }
}

#[test]
fn step_that_fails_ends_its_session_unless_it_continues() {
    for (on_failure, carts, completed) in [("end", 10, 10), ("continue", 20, 20)] {
        let shop = Shop::start(Some(2));
        let traffic =
            BUY.replace("  - name: buy\n", &format!("  - name: buy\n    on-failure: {on_failure}\n"));
        let folder = folder(&shop.url(), &traffic);
        let result = result_of(&folder, &["--clients", "1", "--requests", "20"]);
        let errors = &result.requests.errors;
        assert_eq!(errors["extract-failed"], 10, "{errors:?}");
        assert_eq!(sent(&result)[0], ("buy/login", 20, 10));
        // Without its token a cart is not the right one.
        assert_eq!(sent(&result)[1], ("buy/cart", carts, carts - 10));
        let counts = sessions(&result);
        assert_eq!((counts.completed, counts.failed), (completed, 20 - completed), "{counts:?}");
        let failed_at: Vec<_> =
            counts.failed_at.iter().map(|(step, count)| (step.as_str(), *count)).collect();
        let expected = [("buy/login", 10)];
        assert_eq!(failed_at, if on_failure == "end" { &expected[..] } else { &[] });
    }
}

#[test]
fn steps_without_a_response_end_their_session_by_name() {
    // Bytes of the response to the second request of a connection: none, and then the connection ends, or stays open.
    for (closes, error) in [(true, "closed"), (false, "timeout")] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let mut connection = BufReader::new(stream);
                    while next_request(&mut connection).is_some_and(|request| request.starts_with("GET /a "))
                    {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                        connection.get_mut().write_all(answer).expect("it reads");
                    }
                    if !closes {
                        next_request(&mut connection);
                    }
                });
            }
        });
        let folder = folder(&url, "sessions: [{name: s, steps: [{path: /a}, {path: /b}, {path: /c}]}]\n");
        // Connections open within it on a machine that stalls for seconds.
        let timeout: &[&str] = if closes { &[] } else { &["--timeout", "4s"] };
        let result = result_of(&folder, &[&["--clients", "2", "--requests", "4"], timeout].concat());
        let (requests, counts) = (&result.requests, sessions(&result));
        // On a machine that stalls, first requests may time out, too.
        assert_eq!((counts.started, counts.failed, counts.cut), (4, 4, 0), "{counts:?}");
        assert_eq!((requests.failed, requests.errors[error]), (4, 4), "{requests:?}");
        assert_eq!((result.kinds[1].requests.completed, result.kinds[2].requests.sent), (0, 0));
    }
}

#[test]
fn sessions_arrive_in_an_open_loop_and_are_cut_at_its_end() {
    let shop = Shop::start(None);
    let traffic =
        BUY.replace("    steps:\n", "    think: {log-normal: {median: 10h, p99: 20h}}\n    steps:\n");
    let folder = folder(&shop.url(), &traffic);
    let result = result_of(&folder, &["--rate", "50", "--duration", "400ms"]);
    let (requests, counts) = (&result.requests, sessions(&result));
    // A machine that stalls leaves the last ones unsent: they have arrived.
    assert_eq!((requests.scheduled, counts.started), (20, 20), "{requests:?}");
    assert_eq!((counts.cut, result.kinds[1].requests.sent), (counts.started, 0));
    assert_eq!(result.rate.offered, Some(50.0));
}

#[test]
fn sessions_of_which_nothing_was_sent_have_arrived() {
    // Nobody answers, so that the first one holds the only connection.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", silent.local_addr().expect("it is bound"));
    let folder = folder(&url, "sessions: [{name: s, steps: [{path: /a}, {path: /b}]}]\n");
    let result = result_of(
        &folder,
        &["--rate", "100", "--duration", "200ms", "--connections", "1", "--timeout", "4s"],
    );
    let counts = sessions(&result);
    assert_eq!((result.requests.scheduled, counts.started, counts.completed), (20, 20, 0), "{counts:?}");
    assert!(result.kinds[0].requests.unsent > 0);
}

#[test]
fn client_whose_session_outlasts_the_window_thinks_until_its_end() {
    let shop = Shop::start(None);
    let traffic = BUY.replace("    steps:\n", "    think: 1h\n    steps:\n");
    for options in [&["--clients", "3", "--threads", "1"][..], &["--clients", "3", "--threads", "2"]] {
        let before = shop.logins();
        let result = result_of(&folder(&shop.url(), &traffic), &[options, &["--duration", "3s"]].concat());
        let counts = sessions(&result);
        assert_eq!((counts.started, counts.cut, shop.logins() - before), (3, 3, 3), "{options:?}");
    }
}

#[test]
fn think_times_are_waited_for() {
    let server = Serving::start(&[]);
    let traffic = "requests: [{path: /a}]\nsessions:\n  - name: read\n    think: {file: times.txt}\n    steps:\n      \
                   - GET /a\n      - GET /a\n      - {path: /b, think: 0s}\n";
    let folder = folder(&server.url(), traffic);
    fs::write(folder.path().join("times.txt"), "200ms\n\n0.2s\n").unwrap();
    let result = result_of(&folder, &["--clients", "1", "--requests", "3"]);
    assert_eq!(sent(&result), [("read/GET /a", 3, 0), ("read/GET /a (2)", 3, 0), ("read/GET /b", 3, 0)]);
    assert!(result.duration_s >= 0.6, "{}", result.duration_s);
    assert_eq!(sessions(&result).completed, 3);
}

#[test]
fn sessions_have_their_weights_and_are_added_over_generators() {
    let server = Serving::start(&[]);
    let traffic = "sessions:\n  - {name: a, weight: 3, steps: [{path: /a}, {path: /b}]}\n  - {name: b, steps: [{path: /c}]}\n";
    let folder = folder(&server.url(), traffic);
    let parts: Vec<String> = ["1/2", "2/2"]
        .iter()
        .enumerate()
        .map(|(part, share)| {
            let options = ["--share", share, "--clients", "4", "--requests", "80", "--order", "turn"];
            let result = result_of(&folder, &[&options[..], &["--threads", "1"]].concat());
            assert_eq!(sent(&result), [("a/GET /a", 30, 0), ("a/GET /b", 30, 0), ("b/GET /c", 10, 0)]);
            assert_eq!(result.kinds.iter().map(|kind| kind.weight).collect::<Vec<_>>(), [3, 3, 1]);
            let path = folder.path().join(format!("{part}.json")).display().to_string();
            fs::write(&path, serde_json::to_vec(&result).unwrap()).unwrap();
            path
        })
        .collect();
    let merged = run(&["load", "merge", &parts[0], &parts[1], "--json", "-"]);
    let merged: LoadResult = serde_json::from_slice(&merged.stdout).unwrap();
    let kinds: Vec<_> = merged.sessions.as_ref().unwrap().kinds.iter().collect();
    let counts: Vec<_> = kinds.iter().map(|kind| (kind.name.as_str(), kind.counts.completed)).collect();
    assert_eq!((counts, sessions(&merged).started), (vec![("a", 60), ("b", 20)], 80));
    let text = stdout(&run(&["load", "merge", &parts[0], &parts[1]]));
    assert!(text.contains("80 started, 80 completed, 0 failed, 0 cut by the end"), "{text}");
}

#[test]
fn values_are_extracted_over_http2_and_data_end_sessions() {
    let server = Serving::start(&[]);
    let traffic = "sessions:\n  - name: s\n    steps:\n      \
        - {path: '/?size={size}', extract: {length: {header: Content-Length}, body: {regex: '0{3}'}}}\n      \
        - {path: '/?size={length}', headers: {X-Body: '{body}'}, expect: {status: 200, min-bytes: 1000, max-bytes: 9999}}\n\
        data:\n  size: {range: [1000, 1004], at-end: stop}\n";
    let folder = folder(&server.url(), traffic);
    for http in ["1.1", "2"] {
        let options = ["--clients", "2", "--threads", "1", "--requests", "8", "--http", http];
        let result = result_of(&folder, &options);
        assert_eq!(sent(&result), [("s/GET /?size={size}", 8, 3), ("s/GET /?size={length}", 5, 0)]);
        assert_eq!(result.requests.errors["data-ended"], 3);
        let counts = sessions(&result);
        assert_eq!((counts.started, counts.completed, counts.failed, counts.cut), (8, 5, 3, 0));
    }
}

#[test]
fn options_that_sessions_do_not_have_are_usage_errors() {
    let folder = folder(&format!("http://{NOBODY}"), "sessions: [{name: a, steps: [{path: /}]}]\n");
    for (arguments, expected) in [
        (&["--server-per", "connection"][..], "a session keeps its server"),
        (&["--rate", "1000", "--objective", "achieved=99%"], "achieved is of requests"),
    ] {
        let output =
            meshmeter().current_dir(folder.path()).arg("load").args(arguments).arg("traffic.yaml").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
