//! Tasks of the generators: a part per aspect, with its contenders and its duration.

use crate::generator_contest::{Contender, Effort, Part};
use crate::generators::{Generator, Load};
use crate::peers::Peers;
use std::path::Path;

/// Titles. The first contender of each part is `meshmeter load`.
pub const FULL: &str = "closed loop, 64 connections";
pub const CALM: &str = "open loop, 1000/s on 4 connections";
pub const BRISK: &str = "open loop, 20 000/s on 64 connections, economical pacing";
pub const TOLERANCES: &str = "open loop, 20 000/s on 64 connections, by the lag that is tolerated";
pub const HTTP2: &str = "closed loop, HTTP/2 without TLS, 8 connections of 32 streams";
pub const TLS: &str = "closed loop, TLS, 64 connections";
pub const CHURN: &str = "closed loop, full TLS handshakes, a connection for each request of 16 clients";
pub const MANY: &str = "open loop, 20 000/s on ten thousand connections";
pub const LASTING: &str = "open loop, 5000/s on 64 connections, memory";

/// Labels of `meshmeter load` with settings that differ from the part's first contender.
pub const ON_EPOLL: &str = "same, epoll";
pub const ON_IO_URING: &str = "same, io_uring";
pub const ALONE: &str = "same, closed, 1 connection";
pub const ECONOMICAL: &str = "same, economical pacing";
pub const PRECISE: &str = "same, precise pacing";
pub const PRECISE_ON_IO_URING: &str = "same, precise, io_uring";
pub const AUTO: &str = "same, auto pacing";
pub const FOUR_TIMES: &str = "same, four times as long";

const ECONOMICALLY: &[&str] = &["--pacing=economical"];
const PRECISELY: &[&str] = &["--pacing=precise"];
/// Labels and options of tolerances above the default.
const MORE_TOLERANT: [(&str, &[&str]); 4] = [
    ("same, 50us tolerated", &["--pacing=economical", "--lag-tolerance=50us"]),
    ("same, 200us tolerated", &["--pacing=economical", "--lag-tolerance=200us"]),
    ("same, 400us tolerated", &["--pacing=economical", "--lag-tolerance=400us"]),
    ("same, 1ms tolerated", &["--pacing=economical", "--lag-tolerance=1ms"]),
];

/// Sizes of the heaviest parts.
#[derive(Clone, Copy)]
pub struct Size {
    /// Requests/s of the parts with 20 000.
    pub brisk_rate: u32,
    /// Connections of the part with ten thousand.
    pub many_connections: u32,
}

/// All parts, with the peers that were found.
pub fn parts(meshmeter: &Path, peers: &Peers, size: Size) -> Vec<Part> {
    let with = |label, options, load| Contender {
        label,
        ..Contender::new(Generator::Meshmeter(meshmeter.to_owned(), options), load)
    };
    let ours = |load| with("meshmeter load", &[], load);
    let wrk = |load| Contender::new(Generator::Wrk, load);
    let on_epoll = |load| with(ON_EPOLL, &["--network=epoll"], load);
    let on_io_uring = |options, load| with(ON_IO_URING, options, load);

    let full = Load::Closed { connections: 64 };
    let calm = Load::Open { rate: 1000, connections: 4 };
    let brisk = Load::Open { rate: size.brisk_rate, connections: 64 };
    let streams = Load::Http2 { connections: 8, streams: 32 };
    let tls = Load::Tls { connections: 64 };
    let churn = Load::TlsChurn { connections: 16 };
    let noted = Load::Noted { rate: size.brisk_rate, connections: size.many_connections };
    let steady = Load::Open { rate: 5000, connections: 64 };
    // The reference for the median of an open loop: a client that never waits for another.
    let alone = with(ALONE, &["--network=epoll"], Load::Closed { connections: 1 });
    let lasting = Contender { lasting: 4, ..with(FOUR_TIMES, &[], steady) };

    let economical = with("meshmeter load", ECONOMICALLY, brisk);
    let precise_on_io_uring = with(PRECISE_ON_IO_URING, &["--pacing=precise", "--network=io_uring"], brisk);
    let brisk_contenders = vec![
        economical.clone(),
        on_io_uring(&["--pacing=economical", "--network=io_uring"], brisk),
        with(PRECISE, PRECISELY, brisk),
        precise_on_io_uring,
        with(AUTO, &[], brisk),
    ];
    let mut tolerant = vec![economical];
    tolerant.extend(MORE_TOLERANT.map(|(label, options)| with(label, options, brisk)));

    vec![
        Part::new(FULL, vec![ours(full), on_epoll(full), wrk(full)]).against(&peers.fortio, full),
        Part::new(CALM, vec![ours(calm), alone, with(ECONOMICAL, ECONOMICALLY, calm)])
            .against(&peers.fortio, calm),
        Part::new(BRISK, brisk_contenders)
            .against(&peers.fortio, brisk)
            .against(&peers.oha, brisk)
            .against(&peers.wrk2, brisk),
        Part::new(TOLERANCES, tolerant).against(&peers.fortio, brisk).against(&peers.oha, brisk),
        Part::new(HTTP2, vec![ours(streams), on_epoll(streams), Contender::new(Generator::H2load, streams)])
            .against(&peers.fortio, streams),
        Part::new(TLS, vec![ours(tls), on_epoll(tls), wrk(tls)]),
        Part::new(CHURN, vec![ours(churn), on_epoll(churn), wrk(churn)]),
        Part::new(MANY, vec![ours(noted), on_io_uring(&["--network=io_uring"], noted)]),
        Part::new(LASTING, vec![ours(steady), lasting, on_io_uring(&["--network=io_uring"], steady)]),
    ]
}

/// Enough rounds for a median, each long enough for a p99.
pub fn effort(title: &str, quick: bool) -> Effort {
    let (rounds, seconds) = match title {
        MANY => (3, 10),
        LASTING => (1, 10),
        CALM => (5, 5),
        BRISK | TOLERANCES => (5, 3),
        _ => (7, 3),
    };
    if quick { Effort { rounds: rounds.min(2), seconds: 1 } } else { Effort { rounds, seconds } }
}
