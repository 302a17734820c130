//! Methods described by reflection: real servers on loopback, and other programs that may listen there.

mod servers;

use grpc::{DescribeError, Description, Method, MethodPath, ReflectionError, Server, Streaming, describe};
use servers::{Reflecting, Version};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

fn server(address: SocketAddr) -> Server {
    Server {
        authority: address.to_string(),
        addresses: vec![address],
        tls: None,
        metadata: Vec::new(),
        timeout: Duration::from_secs(30),
    }
}

/// Address without a listener. A port that was free a moment ago may be in use by another test now.
fn nobody() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

fn ask(server: Server, path: &str) -> Result<Method, DescribeError> {
    describe(&Description::Reflection(server), &MethodPath::parse(path).unwrap())
}

/// Reflection error of an outcome.
fn cause(outcome: Result<Method, DescribeError>) -> ReflectionError {
    match outcome.unwrap_err() {
        DescribeError::Reflection { cause, .. } => cause,
        other => panic!("{other:?}"),
    }
}

/// Server that is not gRPC: passes each connection to `serve`.
fn other_server(serve: impl Fn(std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

#[test]
fn both_versions_describe_method_with_imports() {
    for version in [Version::V1, Version::V1Alpha] {
        let reflecting = Reflecting::start(version);
        let method = ask(server(reflecting.address), "/shop.Cart/Add").unwrap();
        assert_eq!(method.streaming(), Streaming { client: true, server: false });
        assert_eq!(
            method.encode(r#"{"name": "a", "price": {"cents": 1}}"#).unwrap(),
            [b"\x0a\x01a\x12\x02\x08\x01"]
        );
    }
}

#[test]
fn unknown_service_or_method_error_lists_existing_ones() {
    let reflecting = Reflecting::start(Version::V1);
    let error = ask(server(reflecting.address), "/shop.Card/Add").unwrap_err();
    assert_eq!(error.to_string(), "there is no service `shop.Card`");
    assert!(error.hint().unwrap().contains("shop.Cart"), "{:?}", error.hint());
    let error = ask(server(reflecting.address), "/shop.Cart/Remove").unwrap_err();
    assert_eq!(error.hint().unwrap(), "it has: Add, Clear");
}

#[test]
fn metadata_is_sent_and_error_status_is_reported() {
    let reflecting = Reflecting::start(Version::V1Guarded);
    match cause(ask(server(reflecting.address), "/shop.Cart/Add")) {
        ReflectionError::Refused { code, message } => {
            assert_eq!((&*code, &*message), ("Unauthenticated", "who are you?"));
        }
        other => panic!("{other:?}"),
    }
    let mut known = server(reflecting.address);
    known.metadata.push((http::HeaderName::from_static("token"), http::HeaderValue::from_static("secret")));
    ask(known, "/shop.Cart/Add").unwrap();
}

#[test]
fn server_without_reflection_differs_from_non_grpc_server() {
    let reflecting = Reflecting::start(Version::None);
    let outcome = ask(server(reflecting.address), "/shop.Cart/Add");
    assert!(matches!(cause(outcome), ReflectionError::NotOffered));

    let http1 = other_server(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let error = ask(server(http1), "/shop.Cart/Add").unwrap_err();
    assert!(error.hint().unwrap().contains("does a gRPC server listen"), "{error:?}");
    assert!(matches!(cause(Err(error)), ReflectionError::Answer(grpc::AnswerError::NotHttp2(_))));

    let web = Reflecting::start(Version::Web);
    match cause(ask(server(web.address), "/shop.Cart/Add")) {
        ReflectionError::Answer(grpc::AnswerError::NotGrpc { status, content_type }) => {
            assert_eq!((status, &*content_type), (404, "text/html"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn unresponsive_servers_time_out() {
    assert!(matches!(cause(ask(server(nobody()), "/shop.Cart/Add")), ReflectionError::Connect { .. }));

    let silent = other_server(std::mem::forget);
    let mut server_of_silence = server(silent);
    server_of_silence.timeout = Duration::from_millis(100);
    let outcome = ask(server_of_silence, "/shop.Cart/Add");
    assert!(matches!(cause(outcome), ReflectionError::Timeout(_)));

    let closing = other_server(drop);
    let outcome = ask(server(closing), "/shop.Cart/Add");
    assert!(matches!(cause(outcome), ReflectionError::Answer(_)));
}

#[test]
fn dead_address_is_skipped() {
    let reflecting = Reflecting::start(Version::V1);
    let mut server = server(reflecting.address);
    server.addresses.insert(0, nobody());
    ask(server, "/shop.Cart/Add").unwrap();
}

#[test]
fn tls_verifies_server_and_negotiates_http2() {
    let certified = rcgen::generate_simple_self_signed(["shop.example".to_owned()]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let trusting = |roots| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    };
    let tls = |config, name: &'static str| Some(grpc::Tls { config, name: name.try_into().unwrap() });
    let reflecting = Reflecting::start_tls(&certified, &[&b"h2"[..]]);

    let mut good = server(reflecting.address);
    good.tls = tls(trusting(roots.clone()), "shop.example");
    ask(good, "/shop.Cart/Add").unwrap();

    let mut misnamed = server(reflecting.address);
    misnamed.tls = tls(trusting(roots.clone()), "other.example");
    assert!(matches!(cause(ask(misnamed, "/shop.Cart/Add")), ReflectionError::Handshake { .. }));

    let without_alpn = Reflecting::start_tls(&certified, &[]);
    let mut old = server(without_alpn.address);
    old.tls = tls(trusting(roots), "shop.example");
    assert!(matches!(cause(ask(old, "/shop.Cart/Add")), ReflectionError::NoAlpn));
}
