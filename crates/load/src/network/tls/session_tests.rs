//! A session against another library's buffered server, both in memory.

use super::outgoing::Outgoing;
use super::session::{Session, Step};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};
use std::io::{Read as _, Write as _};
use std::sync::Arc;

/// Space for plaintext: slightly more than a record, so that several records are reported one at a time.
const ROOM_BYTES: usize = 17_000;

/// Creates a session with a completed handshake, and its server.
fn established() -> (Session, ServerConnection) {
    let certified = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    server.set_buffer_limit(None);
    let mut session = Session::new(&Arc::new(client), &"server".try_into().unwrap()).unwrap();
    let (mut outgoing, mut plain) = (Outgoing::default(), vec![0; ROOM_BYTES]);
    while !session.is_established() {
        let mut records = records_of(&mut server);
        session.receive(&mut records, &mut outgoing, &mut plain);
        take(&mut server, &mut outgoing);
    }
    let mut tickets = records_of(&mut server);
    assert_eq!(session.receive(&mut tickets, &mut outgoing, &mut plain), Step::NeedsMore);
    (session, server)
}

/// Returns the server's pending records.
fn records_of(server: &mut ServerConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut records).unwrap();
    }
    records
}

/// Passes the client's output to the server, and returns its plaintext.
fn take(server: &mut ServerConnection, outgoing: &mut Outgoing) -> Vec<u8> {
    let mut bytes = outgoing.bytes();
    while !bytes.is_empty() {
        server.read_tls(&mut bytes).unwrap();
        server.process_new_packets().unwrap();
    }
    outgoing.clear();
    let mut plain = Vec::new();
    // Running out of data is reported as an error, too.
    let _ = server.reader().read_to_end(&mut plain);
    plain
}

/// HTTP/2 sends WINDOW_UPDATE for a large response before all received data has been reported to it.
#[test]
fn send_between_records_received_together_loses_none() {
    let (mut session, mut server) = established();
    let sent: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    server.writer().write_all(&sent).unwrap();
    server.send_close_notify();
    let mut records = records_of(&mut server);
    let (mut outgoing, mut plain, mut received) = (Outgoing::default(), vec![0; ROOM_BYTES], Vec::new());
    let mut step = session.receive(&mut records, &mut outgoing, &mut plain);
    let mut told = 0;
    while let Step::Received { length, more } = step {
        assert!(more, "the end is to be told yet");
        received.extend_from_slice(&plain[..length]);
        told += 1;
        session.encrypt(b"more room", &mut outgoing).unwrap();
        assert_eq!(take(&mut server, &mut outgoing), b"more room");
        step = session.receive(&mut [], &mut outgoing, &mut plain);
    }
    assert_eq!(step, Step::Ended);
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    assert!(told > 2, "it came in {told} parts");
}

/// What is told last has nothing after it in the same read: the next bytes have an arrival of their own.
#[test]
fn last_part_that_a_send_has_decrypted_has_no_more_after_it() {
    let (mut session, mut server) = established();
    // Two records, and the start of a third.
    server.writer().write_all(&[b'x'; 2 * 16_384]).unwrap();
    let mut records = records_of(&mut server);
    server.writer().write_all(b"later").unwrap();
    let mut later = records_of(&mut server);
    let (mut outgoing, mut plain) = (Outgoing::default(), vec![0; ROOM_BYTES]);
    records.extend(later.drain(..3));
    let mut receive = |session: &mut Session, records: &mut [u8]| {
        session.receive(records, &mut Outgoing::default(), &mut plain)
    };
    assert_eq!(receive(&mut session, &mut records), Step::Received { length: 16_384, more: true });
    session.encrypt(b"more room", &mut outgoing).unwrap();
    assert_eq!(receive(&mut session, &mut []), Step::Received { length: 16_384, more: false });
    assert_eq!(receive(&mut session, &mut later), Step::Received { length: 5, more: false });
}
