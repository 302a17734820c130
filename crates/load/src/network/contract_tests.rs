//! What every [`Network`] must do, tested against real sockets: [`contract_tests!`] makes the tests of one network.

use super::{Event, Network};
use rustix::net::sockopt;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Whatever is awaited comes long before.
const SOON: Duration = Duration::from_secs(60);

/// A network to be tested.
pub(super) trait Contract: Network + Sized {
    /// Room for so many connections.
    fn with_slots(slots: usize) -> Self;

    /// A connection in slot 0 on which the peer has sent `bytes` before anybody looks.
    fn connected(bytes: &[u8]) -> (Self, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut network = Self::with_slots(1);
        let mut peer = network.meet(0, &listener);
        peer.write_all(bytes).unwrap();
        (network, peer)
    }

    /// A connection in slot 0 whose opening has been told.
    fn opened() -> (Self, TcpStream) {
        let (mut network, peer) = Self::connected(b"");
        assert!(matches!(network.await_event(&mut []), (0, Event::Opened)));
        (network, peer)
    }

    /// Begins to open a connection, and lets the listener accept it.
    fn meet(&mut self, slot: usize, listener: &TcpListener) -> TcpStream {
        self.open(slot, listener.local_addr().unwrap(), None).unwrap();
        // What is to be done is begun with the wait, at the latest.
        assert!(self.wait(SOON).unwrap());
        listener.accept().unwrap().0
    }

    /// The next event, however many waits it takes.
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

    /// So many bytes of slot 0.
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

/// The tests of one network.
macro_rules! contract_tests {
    ($network:ty) => {
        $crate::network::contract_tests::contract_tests!($network:
            a_peer_that_speaks_first_is_heard
            what_is_more_than_the_buffer_comes_in_pieces
            what_the_kernel_does_not_take_at_once_follows_in_order
            a_port_where_nothing_listens_is_an_error_of_opening
            a_peer_that_ends_its_side_can_still_be_sent_to
            a_reset_is_an_error
            sending_to_a_peer_that_is_gone_is_an_error_or_an_event
            a_wait_without_events_ends_on_time
            closing_is_seen_by_the_peer
            closing_while_bytes_are_unsent_lets_go_of_the_peer
            a_connection_hears_nothing_of_an_earlier_one_in_its_slot
            a_connection_that_is_being_opened_can_be_closed
            what_was_to_be_sent_before_the_close_is_sent
            many_connections_that_are_flooded_at_once_lose_nothing
            more_news_than_there_is_room_for_come_all
            dropping_the_network_ends_its_connections
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

pub(super) fn a_peer_that_speaks_first_is_heard<N: Contract>() {
    let (mut network, _peer) = N::connected(b"220 mail.example ready\r\n");
    let mut buffer = [0; 100];
    assert!(matches!(network.await_event(&mut buffer), (0, Event::Opened)));
    assert_eq!(network.await_bytes(24, &mut buffer), b"220 mail.example ready\r\n");
    assert!(network.next_event(&mut buffer).is_none());
}

pub(super) fn what_is_more_than_the_buffer_comes_in_pieces<N: Contract>() {
    let sent: Vec<u8> = (0..100_000_u32).map(|index| (index % 251) as u8).collect();
    let (mut network, mut peer) = N::opened();
    peer.write_all(&sent).unwrap();
    assert!(network.await_bytes(sent.len(), &mut [0; 1000]) == sent);
}

pub(super) fn what_the_kernel_does_not_take_at_once_follows_in_order<N: Contract>() {
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
    // And what comes afterwards is sent at once again.
    network.send(0, b"more").unwrap();
    network.wait(Duration::ZERO).unwrap();
    assert!(network.has_sent_all(0));
}

pub(super) fn a_port_where_nothing_listens_is_an_error_of_opening<N: Contract>() {
    let mut network = N::with_slots(1);
    network.open(0, free_address(), None).unwrap();
    let (0, Event::OpenFailed(error)) = network.await_event(&mut []) else { panic!("nothing listens") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

pub(super) fn a_peer_that_ends_its_side_can_still_be_sent_to<N: Contract>() {
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

pub(super) fn a_reset_is_an_error<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, b"a request of which the peer reads the start").unwrap();
    network.wait(Duration::ZERO).unwrap();
    peer.read_exact(&mut [0; 1]).unwrap();
    // Closed with unread bytes, a socket resets its connection.
    drop(peer);
    let (0, Event::Failed(error)) = network.await_event(&mut [0; 100]) else { panic!("a reset") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

pub(super) fn sending_to_a_peer_that_is_gone_is_an_error_or_an_event<N: Contract>() {
    let (mut network, peer) = N::opened();
    drop(peer);
    let mut buffer = [0; 100];
    assert!(matches!(network.await_event(&mut buffer), (0, Event::Ended)));
    // The first bytes bring the reset, the next ones meet it.
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

pub(super) fn a_wait_without_events_ends_on_time<N: Contract>() {
    let (mut network, _peer) = N::opened();
    for at_most in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(5)] {
        // The first one may meet what is left of the opening.
        network.wait(at_most).unwrap();
        assert!(network.next_event(&mut []).is_none());
        let begun = Instant::now();
        assert!(!network.wait(at_most).unwrap());
        assert!(begun.elapsed() >= at_most, "{:?} instead of {at_most:?}", begun.elapsed());
    }
}

pub(super) fn closing_is_seen_by_the_peer<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    // Whatever waits for bytes is waiting.
    network.wait(Duration::ZERO).unwrap();
    network.close(0);
    network.wait(Duration::ZERO).unwrap();
    peer.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    assert!(network.next_event(&mut []).is_none(), "no event follows a close");
    // There is nothing to close any more.
    network.close(0);
    assert!(network.send(0, b"too late").is_err());
}

pub(super) fn closing_while_bytes_are_unsent_lets_go_of_the_peer<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, &vec![b'x'; 16 << 20]).unwrap();
    network.wait(Duration::ZERO).unwrap();
    // As soon as the peer reads a little, more follows: all of the ways to send are under way.
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

pub(super) fn a_connection_hears_nothing_of_an_earlier_one_in_its_slot<N: Contract>() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut network = N::with_slots(1);
    let mut buffer = [0; 100];
    let mut earlier = Vec::new();
    for round in 0..50 {
        let mut peer = network.meet(0, &listener);
        let (0, Event::Opened) = network.await_event(&mut buffer) else { panic!("only its own opening") };
        peer.write_all(&[round]).unwrap();
        assert_eq!(network.await_bytes(1, &mut buffer), [round]);
        // These come while nobody looks, and some are taken in with the next wait.
        peer.write_all(b"nobody hears this").unwrap();
        if round % 2 == 0 {
            network.wait(SOON).unwrap();
        }
        earlier.push(peer);
        network.close(0);
    }
}

pub(super) fn a_connection_that_is_being_opened_can_be_closed<N: Contract>() {
    let (earlier, listener) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let mut network = N::with_slots(1);
    network.open(0, earlier.local_addr().unwrap(), None).unwrap();
    network.close(0);
    // TEST-NET-1 (RFC 5737): whether there is a route or not, nothing answers.
    network.open(0, "192.0.2.1:9".parse().unwrap(), None).unwrap_or_default();
    network.wait(Duration::ZERO).unwrap();
    network.close(0);
    let mut peer = network.meet(0, &listener);
    peer.write_all(b"1").unwrap();
    assert!(matches!(network.await_event(&mut []), (0, Event::Opened)));
    assert_eq!(network.await_bytes(1, &mut [0; 10]), b"1");
}

pub(super) fn what_was_to_be_sent_before_the_close_is_sent<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, b"last words").unwrap();
    network.close(0);
    network.wait(Duration::ZERO).unwrap();
    peer.set_read_timeout(Some(SOON)).unwrap();
    let mut read = Vec::new();
    peer.read_to_end(&mut read).unwrap();
    assert_eq!(read, b"last words");
}

pub(super) fn many_connections_that_are_flooded_at_once_lose_nothing<N: Contract>() {
    const CONNECTIONS: usize = 300;
    const BYTES: usize = 100_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut network = N::with_slots(CONNECTIONS);
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let flood = |mut peer: TcpStream| {
            peer.read_exact(&mut [0; 4])?;
            // Room enough that no peer waits for another.
            sockopt::set_socket_send_buffer_size(&peer, 2 * BYTES)?;
            peer.write_all(&[b'x'; BYTES])?;
            io::Result::Ok(peer)
        };
        listener.incoming().take(CONNECTIONS).map(|peer| peer.and_then(flood)).collect::<Result<Vec<_>, _>>()
    });
    for slot in 0..CONNECTIONS {
        network.open(slot, address, None).unwrap();
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

pub(super) fn more_news_than_there_is_room_for_come_all<N: Contract>() {
    const CONNECTIONS: usize = 3000;
    allow_open_files();
    let mut network = N::with_slots(CONNECTIONS);
    let address = free_address();
    for slot in 0..CONNECTIONS {
        network.open(slot, address, None).unwrap();
    }
    let mut told = vec![false; CONNECTIONS];
    for _ in 0..CONNECTIONS {
        let (slot, Event::OpenFailed(_)) = network.await_event(&mut []) else { panic!("nothing listens") };
        assert!(!std::mem::replace(&mut told[slot], true), "{slot} was told already");
        network.close(slot);
    }
    assert!(network.next_event(&mut []).is_none());
}

pub(super) fn dropping_the_network_ends_its_connections<N: Contract>() {
    let (mut network, mut peer) = N::opened();
    network.send(0, &vec![b'x'; 16 << 20]).unwrap();
    network.wait(Duration::ZERO).unwrap();
    network.wait(Duration::ZERO).unwrap();
    drop(network);
    peer.set_read_timeout(Some(SOON)).unwrap();
    assert!(io::copy(&mut peer, &mut io::sink()).unwrap() < 16 << 20);
}

/// An address at which nothing listens: a port that was free a moment ago may be another test's by now.
fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

/// As many open files as this process may have.
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
