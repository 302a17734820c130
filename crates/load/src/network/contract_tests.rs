//! The contract of every [`Network`], tested against real sockets: [`contract_tests!`] generates the tests
//! for one network.

use super::{Event, Network, Route, wall_clock};
use crate::target::Address;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType, sockopt};
use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// Upper bound on every wait; events come long before.
const SOON: Duration = Duration::from_secs(60);

/// A network under test.
pub(super) trait Contract: Network + Sized {
    /// Creates a network with this many slots.
    fn with_slots(slots: usize) -> Self;

    /// Starts to open a TCP connection.
    fn open_ip(&mut self, slot: usize, address: SocketAddr) -> io::Result<()> {
        self.open(slot, Route::from(&Address::from(address)), None)
    }

    /// Opens a connection in slot 0 on which the peer has already sent `bytes` before the first wait.
    fn connected(bytes: &[u8]) -> (Self, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut network = Self::with_slots(1);
        let mut peer = network.meet(0, &listener);
        peer.write_all(bytes).unwrap();
        (network, peer)
    }

    /// Opens a connection in slot 0 and consumes its `Opened` event.
    fn opened() -> (Self, TcpStream) {
        let (mut network, peer) = Self::connected(b"");
        assert!(matches!(network.await_event(&mut []), (0, Event::Opened)));
        (network, peer)
    }

    /// Starts to open a connection, and lets the listener accept it.
    fn meet(&mut self, slot: usize, listener: &TcpListener) -> TcpStream {
        self.open_ip(slot, listener.local_addr().unwrap()).unwrap();
        // Pending operations start with the wait, at the latest.
        assert!(self.wait(SOON).unwrap());
        listener.accept().unwrap().0
    }

    /// Returns the next event, after any number of waits.
    fn await_event(&mut self, buffer: &mut [u8]) -> (usize, Event) {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(event) = self.next_event(buffer) {
                return event;
            }
            assert!(Instant::now() < deadline, "no event");
            self.wait(deadline.saturating_duration_since(Instant::now())).unwrap();
        }
    }

    /// Receives this many bytes on slot 0.
    fn await_bytes(&mut self, length: usize, buffer: &mut [u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let (0, Event::Received(received)) = self.await_event(buffer) else {
                panic!("bytes are awaited")
            };
            bytes.extend_from_slice(&buffer[..received]);
        }
        bytes
    }
}

/// Generates the tests for one network.
macro_rules! contract_tests {
    ($network:ty) => {
        $crate::network::contract_tests::contract_tests!($network:
            peer_that_speaks_first_is_received
            data_larger_than_buffer_arrives_in_pieces
            bytes_not_accepted_at_once_follow_in_order
            closed_port_fails_opening
            half_closed_peer_can_still_be_sent_to
            reset_is_error
            send_to_gone_peer_is_error_or_event
            wait_without_events_ends_on_time
            close_is_seen_by_peer
            close_with_unsent_bytes_releases_peer
            connection_gets_no_events_of_earlier_one_in_its_slot
            connection_can_be_closed_while_opening
            bytes_sent_before_close_are_delivered
            many_flooded_connections_lose_nothing
            events_beyond_queue_capacity_all_arrive
            dropping_network_ends_its_connections
            late_read_reports_when_bytes_came
            unix_socket_carries_bytes_without_receive_timestamps
            missing_unix_socket_fails_opening
            added_slot_carries_a_connection
            full_queue_of_unix_socket_is_waited_for
        );
    };
    ($network:ty: $($test:ident)*) => {
        $(#[test]
        fn $test() {
            $crate::network::contract_tests::$test::<$network>();
        })*
    };
}
pub(super) use contract_tests;

pub(super) fn peer_that_speaks_first_is_received<N: Contract>() {
    let (mut network, _peer) = N::connected(b"220 mail.example ready\r\n");
    let mut buffer = [0; 100];
    assert!(matches!(network.await_event(&mut buffer), (0, Event::Opened)));
    assert_eq!(network.await_bytes(24, &mut buffer), b"220 mail.example ready\r\n");
    assert!(network.next_event(&mut buffer).is_none());
}

pub(super) fn data_larger_than_buffer_arrives_in_pieces<N: Contract>() {
    let sent: Vec<u8> = (0..100_000_u32).map(|index| (index % 251) as u8).collect();
    let (mut network, mut peer) = N::opened();
    peer.write_all(&sent).unwrap();
    assert!(network.await_bytes(sent.len(), &mut [0; 1000]) == sent);
}

pub(super) fn bytes_not_accepted_at_once_follow_in_order<N: Contract>() {
    let (first, second) = (vec![b'x'; 16 << 20], b"the end".as_slice());
    let (mut network, mut peer) = N::opened();
    network.send(0, &first).unwrap();
    network.wait(Duration::ZERO).unwrap();
    assert!(network.next_event(&mut []).is_none());
    assert!(!network.has_sent_all(0), "no socket takes so much unread");
    network.send(0, second).unwrap();
    let expected = first.len() + second.len();
    let reader = std::thread::spawn(move || {
        let mut read = vec![0; expected];
        peer.read_exact(&mut read).map(|()| read)
    });
    while !network.has_sent_all(0) {
        assert!(network.wait(SOON).unwrap(), "the peer reads");
        assert!(network.next_event(&mut []).is_none());
    }
    let read = reader.join().unwrap().unwrap();
    assert!(read.ends_with(second) && read.starts_with(&first));
    // Bytes sent afterwards go out at once again.
    network.send(0, b"more").unwrap();
    network.wait(Duration::ZERO).unwrap();
    assert!(network.has_sent_all(0));
}

pub(super) fn closed_port_fails_opening<N: Contract>() {
    let mut network = N::with_slots(1);
    network.open_ip(0, free_address()).unwrap();
    let (0, Event::OpenFailed(error)) = network.await_event(&mut []) else { panic!("nothing listens") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

pub(super) fn half_closed_peer_can_still_be_sent_to<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    peer.write_all(b"farewell").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(network.await_bytes(8, &mut buffer), b"farewell");
    assert!(matches!(network.await_event(&mut buffer), (0, Event::Ended)));
    network.send(0, b"and you").unwrap();
    network.wait(Duration::ZERO).unwrap();
    let mut read = [0; 7];
    peer.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"and you");
}

pub(super) fn reset_is_error<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, b"a request of which the peer reads the start").unwrap();
    network.wait(Duration::ZERO).unwrap();
    peer.read_exact(&mut [0; 1]).unwrap();
    // Closing a socket with unread bytes resets its connection.
    drop(peer);
    let (0, Event::Failed(error)) = network.await_event(&mut [0; 100]) else { panic!("a reset") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

pub(super) fn send_to_gone_peer_is_error_or_event<N: Contract>() {
    let (mut network, peer) = N::opened();
    drop(peer);
    let mut buffer = [0; 100];
    assert!(matches!(network.await_event(&mut buffer), (0, Event::Ended)));
    // The first bytes trigger the reset, the next ones hit it.
    let deadline = Instant::now() + SOON;
    let failed = loop {
        assert!(Instant::now() < deadline, "no error");
        if network.send(0, b"still there?").is_err() {
            break true;
        }
        network.wait(Duration::from_millis(1)).unwrap();
        if let Some((0, Event::Failed(_))) = network.next_event(&mut buffer) {
            break true;
        }
    };
    assert!(failed);
}

pub(super) fn wait_without_events_ends_on_time<N: Contract>() {
    let (mut network, _peer) = N::opened();
    for at_most in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(5)] {
        // The first wait may still see an event of the opening.
        network.wait(at_most).unwrap();
        assert!(network.next_event(&mut []).is_none());
        let begun = Instant::now();
        assert!(!network.wait(at_most).unwrap());
        assert!(begun.elapsed() >= at_most, "{:?} instead of {at_most:?}", begun.elapsed());
    }
}

pub(super) fn close_is_seen_by_peer<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    // By now every operation that waits for bytes is pending.
    network.wait(Duration::ZERO).unwrap();
    network.close(0);
    network.wait(Duration::ZERO).unwrap();
    peer.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    assert!(network.next_event(&mut []).is_none(), "no event follows a close");
    // There is nothing left to close.
    network.close(0);
    assert!(network.send(0, b"too late").is_err());
}

pub(super) fn close_with_unsent_bytes_releases_peer<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, &vec![b'x'; 16 << 20]).unwrap();
    network.wait(Duration::ZERO).unwrap();
    // As soon as the peer reads a little, more follows: all ways of sending are in progress.
    peer.read_exact(&mut [0; 1000]).unwrap();
    network.wait(Duration::from_millis(5)).unwrap();
    assert!(network.next_event(&mut []).is_none());
    assert!(!network.has_sent_all(0));
    network.close(0);
    assert!(network.has_sent_all(0));
    for _ in 0..3 {
        network.wait(Duration::from_millis(1)).unwrap();
        assert!(network.next_event(&mut []).is_none(), "no event follows a close");
    }
    peer.set_read_timeout(Some(SOON)).unwrap();
    assert!(io::copy(&mut peer, &mut io::sink()).unwrap() < 16 << 20, "the rest is not sent");
}

pub(super) fn connection_gets_no_events_of_earlier_one_in_its_slot<N: Contract>() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut network = N::with_slots(1);
    let mut buffer = [0; 100];
    let mut earlier = Vec::new();
    for round in 0..50 {
        let mut peer = network.meet(0, &listener);
        let (0, Event::Opened) = network.await_event(&mut buffer) else { panic!("only its own opening") };
        peer.write_all(&[round]).unwrap();
        assert_eq!(network.await_bytes(1, &mut buffer), [round]);
        // These bytes arrive between waits, and some are read with the next wait.
        peer.write_all(b"nobody hears this").unwrap();
        if round % 2 == 0 {
            network.wait(SOON).unwrap();
        }
        earlier.push(peer);
        network.close(0);
    }
}

pub(super) fn connection_can_be_closed_while_opening<N: Contract>() {
    let (earlier, listener) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let mut network = N::with_slots(1);
    network.open_ip(0, earlier.local_addr().unwrap()).unwrap();
    network.close(0);
    // TEST-NET-1 (RFC 5737): nothing answers, whether there is a route or not.
    network.open_ip(0, "192.0.2.1:9".parse().unwrap()).unwrap_or_default();
    network.wait(Duration::ZERO).unwrap();
    network.close(0);
    let mut peer = network.meet(0, &listener);
    peer.write_all(b"1").unwrap();
    assert!(matches!(network.await_event(&mut []), (0, Event::Opened)));
    assert_eq!(network.await_bytes(1, &mut [0; 10]), b"1");
}

pub(super) fn bytes_sent_before_close_are_delivered<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, b"last words").unwrap();
    network.close(0);
    network.wait(Duration::ZERO).unwrap();
    peer.set_read_timeout(Some(SOON)).unwrap();
    let mut read = Vec::new();
    peer.read_to_end(&mut read).unwrap();
    assert_eq!(read, b"last words");
}

pub(super) fn many_flooded_connections_lose_nothing<N: Contract>() {
    const CONNECTIONS: usize = 300;
    const BYTES: usize = 100_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut network = N::with_slots(CONNECTIONS);
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let flood = |mut peer: TcpStream| {
            peer.read_exact(&mut [0; 4])?;
            // Large enough that neither peer waits for the other.
            sockopt::set_socket_send_buffer_size(&peer, 2 * BYTES)?;
            peer.write_all(&[b'x'; BYTES])?;
            io::Result::Ok(peer)
        };
        listener.incoming().take(CONNECTIONS).map(|peer| peer.and_then(flood)).collect::<Result<Vec<_>, _>>()
    });
    for slot in 0..CONNECTIONS {
        network.open_ip(slot, address).unwrap();
    }
    let (mut received, mut buffer) = (vec![0; CONNECTIONS], vec![0; 64 * 1024]);
    while received.iter().sum::<usize>() < CONNECTIONS * BYTES {
        match network.await_event(&mut buffer) {
            (slot, Event::Opened) => network.send(slot, b"now!").unwrap(),
            (slot, Event::Received(length)) => received[slot] += length,
            (slot, event) => panic!("{slot}: {event:?}"),
        }
    }
    assert!(received.iter().all(|received| *received == BYTES));
    server.join().unwrap().unwrap();
}

pub(super) fn events_beyond_queue_capacity_all_arrive<N: Contract>() {
    const CONNECTIONS: usize = 3000;
    allow_open_files();
    let mut network = N::with_slots(CONNECTIONS);
    let address = free_address();
    for slot in 0..CONNECTIONS {
        network.open_ip(slot, address).unwrap();
    }
    let mut told = vec![false; CONNECTIONS];
    for _ in 0..CONNECTIONS {
        let (slot, Event::OpenFailed(_)) = network.await_event(&mut []) else { panic!("nothing listens") };
        assert!(!std::mem::replace(&mut told[slot], true), "{slot} was told already");
        network.close(slot);
    }
    assert!(network.next_event(&mut []).is_none());
}

pub(super) fn dropping_network_ends_its_connections<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, &vec![b'x'; 16 << 20]).unwrap();
    network.wait(Duration::ZERO).unwrap();
    network.wait(Duration::ZERO).unwrap();
    drop(network);
    peer.set_read_timeout(Some(SOON)).unwrap();
    assert!(io::copy(&mut peer, &mut io::sink()).unwrap() < 16 << 20);
}

/// Returns an address at which nothing listens. A port that was free a moment ago may be another test's by
/// now.
fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

/// Raises the limit on open files to the maximum for this process.
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

pub(super) fn late_read_reports_when_bytes_came<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    peer.set_nodelay(true).unwrap();
    let mut buffer = [0; 100];
    // The kernel starts timestamping some time after it is enabled, if no other socket had it enabled already.
    let deadline = Instant::now() + SOON;
    while network.arrived().is_none() {
        assert!(Instant::now() < deadline, "nothing is noted");
        peer.write_all(b"hello").unwrap();
        network.await_bytes(5, &mut buffer);
    }
    let before = wall_clock();
    peer.write_all(b"answer").unwrap();
    let written = wall_clock();
    // A busy kernel may deliver it later.
    let deadline = Instant::now() + SOON;
    while !network.sleep_through(Duration::from_millis(20)).unwrap() {
        assert!(Instant::now() < deadline, "it has come meanwhile, and ended nothing");
    }
    assert!(wall_clock() >= written + Duration::from_millis(20));
    assert!(matches!(network.next_event(&mut buffer), Some((0, Event::Received(6)))));
    let arrived = network.arrived().expect("the kernel notes it");
    assert!((before..=written).contains(&arrived), "{arrived:?} of {before:?} to {written:?}");
}

pub(super) fn unix_socket_carries_bytes_without_receive_timestamps<N: Contract>() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut network = N::with_slots(1);
    network.open(0, Route::from(&Address::unix_socket(&path).unwrap()), None).unwrap();
    assert!(matches!(network.await_event(&mut []), (0, Event::Opened)));
    let mut peer = listener.accept().unwrap().0;
    network.send(0, b"question").unwrap();
    network.wait(Duration::ZERO).unwrap();
    let mut question = [0; 8];
    peer.read_exact(&mut question).unwrap();
    assert_eq!(&question, b"question");
    peer.write_all(b"answer").unwrap();
    let mut buffer = [0; 100];
    assert_eq!(network.await_bytes(6, &mut buffer), b"answer");
    assert_eq!(network.arrived(), None);
    drop(peer);
    assert!(matches!(network.await_event(&mut buffer), (0, Event::Ended)));
}

pub(super) fn missing_unix_socket_fails_opening<N: Contract>() {
    let folder = tempfile::tempdir().unwrap();
    let absent = Address::Unix(folder.path().join("absent").into());
    let mut network = N::with_slots(1);
    let error = network.open(0, Route::from(&absent), None).err().unwrap_or_else(|| {
        let (0, Event::OpenFailed(error)) = network.await_event(&mut []) else { panic!("nothing is there") };
        error
    });
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

pub(super) fn added_slot_carries_a_connection<N: Contract>() {
    let (mut network, _first) = N::opened();
    network.grow();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = network.meet(1, &listener);
    assert!(matches!(network.await_event(&mut []), (1, Event::Opened)));
    peer.write_all(b"hello").unwrap();
    let mut buffer = [0; 100];
    assert!(matches!(network.await_event(&mut buffer), (1, Event::Received(5))));
    network.close(1);
    network.wait(Duration::ZERO).unwrap();
    assert_eq!(peer.read(&mut buffer).unwrap(), 0);
}

pub(super) fn full_queue_of_unix_socket_is_waited_for<N: Contract>() {
    const CONNECTIONS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    net::listen(&socket, 1).unwrap();
    let listener = UnixListener::from(socket);
    let mut network = N::with_slots(CONNECTIONS);
    let address = Address::unix_socket(&path).unwrap();
    (0..CONNECTIONS).for_each(|slot| network.open(slot, Route::from(&address), None).unwrap());
    let accept = move || listener.accept().unwrap().0;
    let accepting = std::thread::spawn(move || (0..CONNECTIONS).map(|_| accept()).collect::<Vec<_>>());
    let opened: BTreeSet<usize> = (0..CONNECTIONS)
        .map(|_| {
            let (slot, Event::Opened) = network.await_event(&mut []) else { panic!("all are accepted") };
            slot
        })
        .collect();
    assert_eq!(opened.len(), CONNECTIONS);
    assert_eq!(accepting.join().unwrap().len(), CONNECTIONS);
}
