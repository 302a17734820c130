//! Script steps other than unconditional calls.

use crate::graph::{call, get, get_with, service, start, topology, with_endpoints};
use experiment::protocol::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::{CallStep, Endpoint, Step};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::spawn;
use std::time::{Duration, Instant};

#[test]
fn calls_with_probability_match_it_and_are_counted_exactly() {
    const REQUESTS: u64 = 1000;
    let seldom = Step::Call(CallStep { probability: 0.25, ..CallStep::new(1) });
    let shop = topology(vec![
        service("web", Protocol::Http1, vec![seldom]),
        service("cart", Protocol::Grpc, vec![]),
    ]);
    let nodes = start(&shop);
    let mut stream = TcpStream::connect(nodes[0].address).unwrap();
    for _ in 0..REQUESTS {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        read_response(&mut stream);
    }
    let sent = nodes[0].calls("cart", "sent");
    // Five standard deviations of a binomial distribution; the seed makes the test deterministic.
    let deviation = (REQUESTS as f64 * 0.25 * 0.75).sqrt();
    assert!((sent as f64 - REQUESTS as f64 * 0.25).abs() < 5.0 * deviation, "{sent} of {REQUESTS}");
    assert_eq!(nodes[1].counters()["requests"], sent);
}

/// One response of 100 bytes.
fn read_response(stream: &mut TcpStream) {
    let mut received = Vec::new();
    let mut room = [0; 4096];
    loop {
        let length = stream.read(&mut room).unwrap();
        assert_ne!(length, 0, "a whole response comes");
        received.extend_from_slice(&room[..length]);
        if let Some(head) = received.windows(4).position(|end| end == b"\r\n\r\n")
            && received.len() == head + 4 + 100
        {
            return;
        }
    }
}

#[test]
fn sleep_ends_within_a_millisecond_of_its_time() {
    let slept = Duration::from_micros(300);
    let nap = Step::Sleep(Distribution::Fixed(slept.as_secs_f64()));
    let shop = topology(vec![
        service("web", Protocol::Http1, vec![call(1)]),
        service("bed", Protocol::Http1, vec![nap]),
    ]);
    let nodes = start(&shop);
    let shortest = (0..100).map(|_| timed(nodes[0].address)).min().unwrap();
    // On a busy machine most take longer: the shortest one shows what the timer can do.
    assert!(shortest >= slept, "{shortest:?}");
    assert!(shortest < slept + Duration::from_millis(1), "{shortest:?}");
}

fn timed(address: std::net::SocketAddr) -> Duration {
    let started = Instant::now();
    assert_eq!(get(address, "/").0, 200);
    started.elapsed()
}

#[test]
fn parallel_sleeps_take_as_long_as_the_longest() {
    let nap = |ms: u32| Step::Sleep(Distribution::Fixed(f64::from(ms) / 1000.0));
    let naps = Step::Parallel(vec![nap(60), Step::Sequence(vec![nap(20), nap(20)]), nap(50)]);
    let shop = topology(vec![service("web", Protocol::Http1, vec![naps])]);
    let nodes = start(&shop);
    let shortest = (0..5).map(|_| timed(nodes[0].address)).min().unwrap();
    assert!(shortest >= Duration::from_millis(60), "{shortest:?}");
    assert!(shortest < Duration::from_millis(150), "one after the other: {shortest:?}");
}

#[test]
fn computing_uses_cpu_time_and_memory_is_held_until_response() {
    let steps = vec![
        Step::Compute(Distribution::Fixed(0.002)),
        Step::Hold(Distribution::Fixed(1_048_576.0)),
        Step::Compute(Distribution::Uniform { low: 0.001, high: 0.002 }),
    ];
    let shop = topology(vec![service("web", Protocol::Http1, steps)]);
    let nodes = start(&shop);
    assert!(timed(nodes[0].address) >= Duration::from_millis(3));
}

#[test]
fn endpoints_are_selected_by_path_and_others_do_not_exist() {
    let sized = |path: &str, bytes: f64| Endpoint {
        path: path.to_owned(),
        response_bytes: Distribution::Fixed(bytes),
        ..Endpoint::default()
    };
    let to_list = Step::Call(CallStep { endpoint: "/list".to_owned(), ..CallStep::new(1) });
    let asks = Endpoint { path: "/ask".to_owned(), steps: vec![to_list], ..Endpoint::default() };
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Grpc] {
        let shop = topology(vec![
            with_endpoints("web", Protocol::Http1, vec![sized("/", 3.0), asks.clone()]),
            with_endpoints("cart", protocol, vec![sized("/", 0.0), sized("/list", 5.0)]),
        ]);
        let nodes = start(&shop);
        assert_eq!(get(nodes[0].address, "/?query=ignored").1.len(), 3);
        assert_eq!(get(nodes[0].address, "/ask").0, 200);
        let (status, body) = get(nodes[0].address, "/other");
        assert_eq!((status, body.as_str()), (404, "there is no endpoint /other\n"));
        let code = if protocol == Protocol::Grpc { "OK" } else { "200" };
        let expected = format!("meshmeter_requests_total{{endpoint=\"/list\",code=\"{code}\"}} 1\n");
        let metrics = nodes[1].shown("/metrics");
        assert!(metrics.contains(&expected), "{metrics}");
    }
}

#[test]
fn requests_have_size_from_script() {
    let sends = Step::Call(CallStep { request_bytes: Distribution::Fixed(100_000.0), ..CallStep::new(1) });
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Grpc] {
        let shop = topology(vec![
            service("web", Protocol::Http1, vec![sends.clone()]),
            service("cart", protocol, vec![]),
        ]);
        let nodes = start(&shop);
        assert_eq!(get(nodes[0].address, "/").0, 200);
        let sent = nodes[0].calls("cart", "bytes_sent");
        assert!((100_000..101_000).contains(&sent), "{protocol}: {sent}");
        assert_eq!(nodes[1].counters()["bytes_received"], sent);
    }
}

const PASSED: [(&str, &str); 9] = [
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("tracestate", "a=1,b=2"),
    ("baggage", "user=alice"),
    ("b3", "80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1"),
    ("x-b3-traceid", "80f198ee56343ba864fe8b2a57d3eff7"),
    ("x-b3-spanid", "e457b5a2e4d86bd1"),
    ("x-b3-sampled", "1"),
    ("x-request-id", "f1d7"),
    ("authorization", "Bearer token"),
];

/// Through one node per protocol to a server that shows the fields it receives.
#[test]
fn trace_and_token_fields_are_forwarded_and_others_are_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let request = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut room = [0; 1024];
        while !request.ends_with(b"\r\n\r\n") {
            let length = stream.read(&mut room).unwrap();
            request.extend_from_slice(&room[..length]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap()
    });
    let shop = topology(vec![
        service("web", Protocol::Http1, vec![call(1)]),
        service("two", Protocol::Http2, vec![call(2)]),
        service("rpc", Protocol::Grpc, vec![call(3)]),
        service("seen", Protocol::Http1, vec![]),
    ]);
    let nodes = crate::graph::start_with(&shop, |settings| {
        if settings.service == 2 {
            settings.connect.insert(3, address.to_string());
        }
    });
    let fields: String = PASSED.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (status, body) = get_with(nodes[0].address, "/", &format!("{fields}x-other: no\r\n"));
    assert_eq!(status, 200, "{body}");
    let request = request.join().unwrap();
    for (name, value) in PASSED {
        assert!(request.contains(&format!("{name}: {value}\r\n")), "{name}: {request}");
    }
    assert!(!request.contains("x-other"), "{request}");
    assert!(request.contains(&format!("host: {address}\r\n")), "{request}");
}
