//! `meshmeter serve` as a process: readiness, signals, errors and memory.

mod command;

use command::{Serving, run, stderr};
use rustix::process::{Resource, Rlimit, Signal, prlimit};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout for what should happen immediately: a busy machine takes seconds, a stall lasts a quarter of an
/// hour.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn failing(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(&[&["serve"], arguments].concat());
    (output.status.code(), stderr(&output))
}

#[test]
fn server_follows_its_options_and_counts_at_the_end() {
    let serving = Serving::start(&["--size", "1KB", "--status", "503", "--delay", "1ms", "--threads", "2"]);
    let response = serving.get("/");
    assert!(response.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{response}");
    assert_eq!(response.split_once("\r\n\r\n").unwrap().1.len(), 1000);
    assert!(serving.get("/meshmeter/counters").contains("{\"requests\":1,\"errors\":0,"));
    let (status, said, _) = serving.end(Signal::TERM);
    assert_eq!(status, Some(0));
    assert!(said.starts_with("served 1 requests, ") && said.ends_with(" bytes\n"), "{said}");
}

#[test]
fn signal_ends_server_immediately_even_in_a_stall() {
    let serving = Serving::start(&["--stall", "999s/1000s"]);
    // It stalls from the second second on: wait until it no longer responds.
    let mut stream = TcpStream::connect(serving.authority()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let answers = |stream: &mut TcpStream| {
        stream.write_all(b"GET /?size=0 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        matches!(stream.read(&mut [0; 4096]), Ok(1..))
    };
    let started = Instant::now();
    while answers(&mut stream) {
        assert!(started.elapsed() < TEST_TIMEOUT, "it never stalls");
    }
    let (status, said, took) = serving.end(Signal::INT);
    assert_eq!(status, Some(0), "{said}");
    assert!(took < TEST_TIMEOUT, "it took {took:?}");
}

#[test]
fn server_that_cannot_start_is_one_line_error_with_hint_and_status() {
    let serving = Serving::start(&[]);
    let (status, said) = failing(&["--listen", serving.authority()]);
    assert_eq!(status, Some(3));
    assert_eq!(
        said,
        format!(
            "error: listen on {}: Address already in use (os error 98)\n\
             hint: something listens there already: choose another port, or port 0 for any free one\n",
            serving.authority()
        )
    );
    // 192.0.2.0/24 is reserved for documentation: no machine has it.
    let (status, said) = failing(&["--listen", "192.0.2.1:8080"]);
    assert_eq!(status, Some(3));
    assert!(said.contains("this machine has no such address"), "{said}");
    for (arguments, words) in [
        (["--listen", "localhost"], "expected an IP address and a port"),
        (["--size", "big"], "is not a size"),
        (["--delay", "5"], "a unit is missing"),
        (["--error-rate", "5"], "0% to 100%"),
        (["--stall", "2s/1s"], "above zero and below the period"),
        (["--threads", "0"], "not in 1..=1024"),
        (["--status", "99"], "not in 200..=599"),
        (["--idle-timeout", "0s"], "expected an idle timeout above zero"),
    ] {
        let (status, said) = failing(&arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words) && !said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn server_without_free_file_descriptors_does_not_spin() {
    let serving = Serving::start(&[]);
    let few = Rlimit { current: Some(20), maximum: Some(20) };
    prlimit(Some(serving.process()), Resource::Nofile, few).unwrap();
    let held: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(serving.authority()).unwrap()).collect();
    let cpu_ms = |serving: &Serving| {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", serving.process())).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1_000_000
    };
    let (before_ms, started) = (cpu_ms(&serving), Instant::now());
    // The interval over which CPU time is measured, not a wait for anything.
    std::thread::sleep(Duration::from_millis(500));
    let (used_ms, in_ms) = (cpu_ms(&serving) - before_ms, started.elapsed().as_millis());
    assert!(u128::from(used_ms) < in_ms / 5, "waiting for room took {used_ms} ms of CPU in {in_ms} ms");
    drop(held);
    assert!(serving.get("/").starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn idle_server_uses_little_memory() {
    let serving = Serving::start(&["--size", "1KiB"]);
    serving.get("/");
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", serving.process())).unwrap();
    let (mut of_program, mut own_kb) = (false, 0);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Anonymous:"), Some(kb)) if !of_program => own_kb += kb.parse::<u64>().unwrap(),
            // Start of a mapping: its addresses, …, and its file if it has one.
            (Some(addresses), _) if !addresses.ends_with(':') => of_program = line.contains(" /"),
            _ => {}
        }
    }
    // Pages of the program itself, including those that the loader writes to, grow with its commands: the
    // benchmark checks the total, in a release build, against 5 MB. So does the heap, slightly: it keeps the
    // memory in which the options of all commands were parsed.
    assert!((1..1100).contains(&own_kb), "{own_kb} kB of its own");
}

#[test]
fn server_listens_for_every_protocol_and_generates_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    let any = "127.0.0.1:0";
    let serving = Serving::start(
        &[
            &["--tls-listen", any, "--tls-name", "shop.example", "--tls-ca-out", authority.to_str().unwrap()]
                [..],
            &[
                "--tcp-listen",
                any,
                "--tcp-tls-listen",
                any,
                "--tcp-request-size",
                "3",
                "--tcp-reply-size",
                "5",
            ],
        ]
        .concat(),
    );
    let schemes: Vec<&str> = serving
        .listeners()
        .iter()
        .filter_map(|url| url.split_once("://"))
        .map(|(scheme, _)| scheme)
        .collect();
    assert_eq!(schemes, ["http", "https", "tcp", "tls"]);
    assert!(std::fs::read_to_string(&authority).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let tcp = serving.listeners()[2].strip_prefix("tcp://").unwrap();
    let mut stream = TcpStream::connect(tcp).unwrap();
    stream.write_all(b"abc").unwrap();
    let mut reply = [9; 5];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [0, 1, 2, 3, 4]);
    assert!(serving.get("/meshmeter/counters").contains("\"tcp\":{\"connections\":1,\"requests\":1,"));
}

#[test]
fn contradictory_tls_and_tcp_options_are_rejected() {
    for (arguments, status, words) in [
        (
            &["--tls-ca-out", "ca.pem"][..],
            2,
            "--tls-ca-out says how to serve TLS, and nothing is served over TLS",
        ),
        (&["--client-ca", "ca.pem"], 2, "hint: add --tls, --tls-listen or --tcp-tls-listen"),
        (&["--tls-cert", "server.pem"], 2, "--tls-key <FILE>"),
        (&["--tls-cert", "a", "--tls-key", "b", "--tls-name", "c"], 2, "cannot be used with"),
        (&["--tls", "--tls-name", "naïve"], 2, "make a certificate for naïve"),
        (
            &["--tls-cert", "/nowhere/a", "--tls-key", "/nowhere/b"],
            3,
            "read the certificate in /nowhere/a: No such file",
        ),
        (
            &["--tls", "--tls-listen", "127.0.0.1:0", "--tls-ca-out", "/nowhere/ca.pem"],
            3,
            "write /nowhere/ca.pem: No such file",
        ),
        (&["--tcp-listen", "127.0.0.1:0", "--tcp-reply-size", "0"], 2, "expected one byte at least"),
    ] {
        let (code, said) = failing(&[&["--listen", "127.0.0.1:0"], arguments].concat());
        assert_eq!(code, Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

/// A service `web` that calls `cart`, `slow` that takes an hour, and one over raw TCP.
const SHOP: &str = "\
name: shop
services:
  - name: web
    script: [{call: cart}]
    response: 500
  - {name: cart, protocol: grpc, response: 1KiB}
  - {name: slow, script: [{sleep: 1h}]}
  - {name: raw, protocol: tcp, response: 100}
drivers:
  - {name: generator, in: client, target: web}
";

fn topology_file(folder: &Path, text: &str) -> String {
    let file = folder.join("shop.yaml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn service_of(file: &str, name: &str, arguments: &[&str]) -> Serving {
    let node = ["--topology", file, "--service", name, "--admin-listen", "127.0.0.1:0"];
    Serving::start(&[&node, arguments].concat())
}

#[test]
fn services_of_a_topology_call_each_other_and_count_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = topology_file(folder.path(), SHOP);
    let cart = service_of(&file, "cart", &[]);
    let web =
        service_of(&file, "web", &["--threads", "2", "--connect", &format!("cart={}", cart.authority())]);
    let json = folder.path().join("load.json");
    let loaded = run(&[
        "load",
        "--rate=200",
        "--duration=1s",
        "--warmup=0s",
        "--json",
        json.to_str().unwrap(),
        &web.url(),
    ]);
    let result: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    // Requests that a busy machine leaves at the end of the window are not sent.
    let sent = result["requests"]["sent"].as_u64().unwrap();
    assert!(sent > 0 && result["requests"]["status"]["200"] == sent, "{}", stderr(&loaded));
    for serving in [web, cart] {
        let (status, said, _) = serving.end(Signal::TERM);
        assert_eq!(status, Some(0), "{said}");
        assert!(
            said.starts_with(&format!("served {sent} requests, ")) && said.ends_with(" bytes\n"),
            "{said}"
        );
    }
}

#[test]
fn second_signal_ends_topology_service_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let file = topology_file(folder.path(), SHOP);
    let slow = service_of(&file, "slow", &[]);
    let mut stream = TcpStream::connect(slow.authority()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let process = slow.process();
    rustix::process::kill_process(process, Signal::INT).unwrap();
    // It no longer listens: the first signal has arrived.
    let started = Instant::now();
    while TcpStream::connect(slow.authority()).is_ok() {
        assert!(started.elapsed() < TEST_TIMEOUT, "it goes on");
    }
    let (status, said, took) = slow.end(Signal::INT);
    assert_eq!(status, Some(130), "{said}");
    assert!(took < TEST_TIMEOUT, "it took {took:?}");
}

#[test]
fn invalid_topologies_and_services_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = topology_file(folder.path(), SHOP);
    let wrong = folder.path().join("wrong.yaml");
    std::fs::write(&wrong, "name: shop\nservices:\n  - {name: web, script: [{call: nobody}]}\n").unwrap();
    let wrong = wrong.to_str().unwrap();
    for (arguments, words) in [
        (&["--topology", file.as_str()][..], "--service <NAME>"),
        (&["--service", "web"], "--topology <FILE>"),
        (&["--topology", "/nowhere/shop.yaml", "--service", "web"], "read the topology `/nowhere/shop.yaml`"),
        (&["--topology", wrong, "--service", "web"], "nobody"),
        (&["--topology", &file, "--service", "nobody"], "hint: it has web, cart, slow, raw"),
        (&["--topology", &file, "--service", "client"], "client"),
        (&["--topology", &file, "--service", "web", "--connect", "cart"], "a service and where it is"),
        (&["--topology", &file, "--service", "web", "--connect", "shop=a:1"], "has no service shop"),
        (&["--topology", &file, "--service", "web", "--connect", "cart=a"], "expected a host and a port"),
        (&["--topology", &file, "--service", "web", "--size", "1KB"], "cannot be used with"),
    ] {
        let (status, said) = failing(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words) && !said.contains("panicked"), "{arguments:?}: {said}");
    }
    let serving = Serving::start(&[]);
    let taken = ["--topology", &file, "--service", "web", "--listen", serving.authority()];
    assert_eq!(failing(&taken).0, Some(3));
}
