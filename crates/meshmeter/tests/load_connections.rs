//! Ways of connecting of `meshmeter load`: what is refused, and what a server sees.

mod command;

use command::{NOBODY, Serving, run, stderr, stdout};
use results::{ConnectionSettings, LoadResult};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[test]
fn options_that_contradict_each_other_are_refused() {
    let url = "http://127.0.0.1:1/";
    for (options, named) in [
        (&["--source", "127.0.0.1", "--unix-socket", "/x"][..], "--unix-socket"),
        (&["--connect-to", NOBODY, "--unix-socket", "/x"], "--unix-socket"),
        (&["--new-connection-per-request", "--requests-per-connection", "1"], "--requests-per-connection"),
        (&["--new-connection-per-request", "--http", "2", "--streams", "2"], "--streams"),
        (&["--new-connection-per-request", "--server-per", "connection"], "--server-per connection"),
        (&["--new-connection-per-request", "--connections-per-server", "1"], "--connections-per-server"),
        (&["--source", "10.0.0.5/24"], "the address has bits beyond its prefix"),
        (&["--source", "::1"], "the source address ::1 is IPv6, and `127.0.0.1:1` has no such address"),
        (&["--proxy-protocol", "3"], "--proxy-protocol"),
        (&["--resolve-every", "30s", "--unix-socket", "/x"], "--unix-socket"),
        (&["--resolve-every", "10ms"], "must be at least 100ms"),
        (&["--resolve-every", "30s"], "--resolve-every: the hosts are addresses"),
    ] {
        let output = run(&[&["load", "--rate", "1"], options, &[url]].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{options:?}: {}", stderr(&output));
    }
}

#[test]
fn unusable_unix_sockets_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let [absent, file, closed] = ["absent", "file", "closed"].map(|name| folder.path().join(name));
    fs::write(&file, "").unwrap();
    drop(UnixListener::bind(&closed).unwrap());
    let long = format!("/{}", "x".repeat(107));
    let load = |path: &str| {
        run(&["load", "--progress", "off", "--rate", "1", "--unix-socket", path, "http://shop/"])
    };
    for (path, status, said) in [
        (absent.to_str().unwrap(), 3, "No such file or directory"),
        (file.to_str().unwrap(), 2, "is not a unix socket"),
        (&long, 2, "has 108 bytes, and the kernel takes at most 107"),
        (closed.to_str().unwrap(), 3, "connection refused: nothing listens there"),
    ] {
        let output = load(path);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{error}");
        assert!(error.contains(path) && error.contains(said), "{error}");
    }
}

#[test]
fn grpc_method_over_unix_socket_needs_its_description() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let url = "grpc://shop/package.Service/Method";
    let output = run(&["load", "--rate", "1", "--unix-socket", path.to_str().unwrap(), url]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("hint: describe the method with --proto or --protoset"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn foreign_source_address_is_refused_with_remedy() {
    // Documentation addresses (RFC 5737) are nobody's.
    let output = run(&["load", "--rate", "1", "--source", "192.0.2.7", "http://127.0.0.1:1/"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("--source: use the source address 192.0.2.7"), "{error}");
    assert!(error.contains("ip addr add 192.0.2.7/32"), "{error}");
}

#[test]
fn more_connections_than_local_ports_are_refused() {
    // No range has more than 64 512 ports: 1024 to 65535.
    let output = run(&["load", "--rate", "1", "--connections", "70000", "http://127.0.0.1:1/"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(
        error.contains("70000 connections to 127.0.0.1:1 need a local port each, and there are "),
        "{error}"
    );
    assert!(
        error.contains("net.ipv4.ip_local_port_range: ") && error.contains("--source 127.0.0.0/24"),
        "{error}"
    );
}

#[test]
fn more_connections_than_open_files_are_refused() {
    let meshmeter = env!("CARGO_BIN_EXE_meshmeter");
    let script =
        format!("ulimit -n 100 && exec {meshmeter} load --rate 1 --connections 200 http://{NOBODY}/");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("200 connections take 216 open files, and the limit is 100"), "{error}");
}

/// Reads the head of a request, and answers it. Returns the head; `None` if the connection ends before.
fn answer(stream: TcpStream) -> Option<String> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    Some(head)
}

#[test]
fn requests_with_connections_of_their_own_say_that_they_are_the_last() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (heads, seen) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let heads = heads.clone();
            // The test may be over.
            thread::spawn(move || heads.send(answer(stream.unwrap())).unwrap_or_default());
        }
    });
    for (options, says_close) in [(&[][..], true), (&["-H", "Connection: keep-alive"], false)] {
        let arguments =
            [&["load", "--json", "-", "--progress", "off", "--new-connection-per-request"], options];
        let closed_loop = ["--clients", "2", "--requests", "20", &url];
        let output = run(&[&arguments.concat()[..], &closed_loop].concat());
        let result: LoadResult =
            serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert_eq!((result.requests.completed, result.requests.failed), (20, 0), "{:?}", result.requests);
        assert!(result.connections <= 2, "{}", result.connections);
        let expected = ConnectionSettings { new_per_request: true, ..ConnectionSettings::default() };
        assert_eq!(result.connection_settings, Some(expected));
        // One connection shows before the start that the server can be reached.
        let next = || seen.recv_timeout(Duration::from_secs(60)).expect("21 connections");
        let all: Vec<Option<String>> = (0..21).map(|_| next()).collect();
        assert_eq!(all.iter().filter(|head| head.is_none()).count(), 1);
        for head in all.iter().flatten() {
            assert_eq!(head.to_lowercase().contains("\r\nconnection: close\r\n"), says_close, "{head}");
        }
    }
}

/// Memory of an idle connection that the generator may have at most, bytes.
const MAX_IDLE_BYTES: f64 = 2500.0;
/// With the limit on open files that many machines have, 20 000.
const IDLE_CONNECTIONS: u64 = 15_000;

#[test]
#[allow(clippy::print_stdout, reason = "the figure, for --nocapture")]
fn idle_connections_take_little_memory() {
    let server = Serving::start(&[]);
    let peak_bytes = |network: &str, connections: u64| {
        let arguments =
            ["load", "--progress", "off", "--json", "-", "--network", network, "--duration", "1s"];
        let connections = connections.to_string();
        let output =
            run(&[&arguments[..], &["--rate", "5", "--connections", &connections, &server.url()]].concat());
        let result: LoadResult = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
        assert_eq!((result.connections.to_string(), result.requests.failed), (connections, 0), "{result:?}");
        result.generator.memory_peak_bytes as f64
    };
    for network in ["epoll", "io-uring"] {
        let few = peak_bytes(network, 100);
        let of_each = (peak_bytes(network, IDLE_CONNECTIONS) - few) / (IDLE_CONNECTIONS - 100) as f64;
        println!("{network}: {of_each:.0} bytes per idle connection");
        assert!(of_each <= MAX_IDLE_BYTES, "{network}: {of_each:.0} bytes per idle connection");
    }
}
