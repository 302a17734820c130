//! The parts of the benchmark, their rounds in turn, and their tables.

use crate::client::{Client, Round};
use crate::contest::promise::Promise;
use crate::contest::{Outcome, median, turns};
use crate::protocol_alone::{Cost, Side, measure};
use crate::responses::{Fields, Kind};
use crate::task::Task;
use std::fmt;
use std::time::Duration;

/// Maximum time of the protocol alone over that of the `h2` crate, and allocations per request, if fields are indexed.
const MAX_PROTOCOL_RATIO: f64 = 0.5;
const MAX_ALLOCATIONS: f64 = 0.01;
/// Maximum CPU per request over that of the `h2` crate on tokio.
const MAX_CLOSED_CPU_RATIO: f64 = 0.8;
const MAX_OPEN_CPU_RATIO: f64 = 1.0;
/// Maximum memory of a connection over that of the `h2` crate on tokio.
const MAX_CONNECTION_MEMORY_RATIO: f64 = 0.5;
/// The row whose figures are promised.
const PROMISED_ROW: &str = "GET, 32 per turn";

/// Size of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub rounds: usize,
    /// Duration of a run.
    pub duration: Duration,
    /// Requests of a round without sockets.
    pub requests: usize,
    /// Rate of the open loop.
    pub rate: u32,
    /// Connections of the runs that show the memory of one.
    pub many: usize,
}

/// Connections of the loops, and the streams of each.
const CONNECTIONS: usize = 8;
const CLOSED_STREAMS: usize = 8;
const OPEN_STREAMS: usize = 32;
/// Memory differs little between rounds.
const MAX_MEMORY_ROUNDS: usize = 3;
/// Streams of each connection in the runs that show the memory of one.
const MANY_STREAMS: usize = 10;

/// Rounds of a contender.
pub struct Contender {
    client: Client,
    rounds: Vec<Round>,
}

/// A load, and the contenders' rounds under it.
pub struct LoadPart {
    title: String,
    contenders: Vec<Contender>,
    /// Subject and bound of the promise about CPU, if there is one.
    promise: Option<(&'static str, f64)>,
}

impl LoadPart {
    /// A closed loop on all streams.
    pub fn closed(effort: Effort) -> Outcome<Self> {
        let task =
            Task { rate: None, connections: CONNECTIONS, streams: CLOSED_STREAMS, duration: effort.duration };
        let title = format!("closed loop, {CONNECTIONS} connections of {CLOSED_STREAMS} streams");
        let promise = Some(("closed loop: CPU over that of h2", MAX_CLOSED_CPU_RATIO));
        Self::run(title, promise, task, &[Client::Engine, Client::EngineOnEpoll, Client::H2], effort.rounds)
    }

    /// An open loop with economical pacing.
    pub fn open(effort: Effort) -> Outcome<Self> {
        let (rate, duration) = (Some(effort.rate), effort.duration);
        let task = Task { rate, connections: CONNECTIONS, streams: OPEN_STREAMS, duration };
        let title = format!("open loop, {}/s on {CONNECTIONS} connections, economical pacing", effort.rate);
        let promise = Some(("open loop: CPU over that of h2", MAX_OPEN_CPU_RATIO));
        Self::run(title, promise, task, &[Client::Engine, Client::H2], effort.rounds)
    }

    fn run(
        title: String,
        promise: Option<(&'static str, f64)>,
        task: Task,
        clients: &[Client],
        rounds: usize,
    ) -> Outcome<Self> {
        let contenders = clients.iter().map(|client| Contender { client: *client, rounds: Vec::new() });
        let mut contenders: Vec<Contender> = contenders.collect();
        for round in 0..rounds {
            for index in turns(round, contenders.len()) {
                let contender = &mut contenders[index];
                contender.rounds.push(contender.client.run(task)?);
            }
        }
        Ok(Self { title, contenders, promise })
    }

    fn contender(&self, client: Client) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.client == client)
    }

    /// Promise of the engine, with the network that it chooses.
    pub fn promise(&self) -> Option<Promise> {
        let (what, most) = self.promise?;
        Some(Promise::at_most(what, self.cpu_ratio(Client::Engine)?.median, most))
    }

    /// CPU per request of a contender over that of the `h2` crate, round by round.
    fn cpu_ratio(&self, client: Client) -> Option<Ratio> {
        let cpu_us = |round: &Round| round.cpu_us_per_request;
        Some(Ratio::new(&self.contender(client)?.rounds, &self.contender(Client::H2)?.rounds, cpu_us))
    }

    fn rate_ratio(&self, client: Client) -> Option<Ratio> {
        let rate = |round: &Round| round.seen.requests_per_second;
        Some(Ratio::new(&self.contender(client)?.rounds, &self.contender(Client::H2)?.rounds, rate))
    }
}

impl Contender {
    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }
}

/// Ratio of two contenders' figures, by rounds.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    median: f64,
    min: f64,
    max: f64,
}

impl Ratio {
    fn new<T>(ours: &[T], theirs: &[T], figure: impl Fn(&T) -> f64) -> Self {
        let ratios: Vec<f64> =
            ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs)).collect();
        Self {
            median: median(ratios.iter().copied()),
            min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            max: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.median, self.min, self.max)
    }
}

impl fmt::Display for LoadPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, medians of {} rounds", self.title, self.contenders[0].rounds.len())?;
        writeln!(
            f,
            "{:<18} {:>12} {:>16} {:>12} {:>12} {:>12}",
            "", "requests/s", "CPU us/request", "late p50 us", "late p99 us", "memory MB"
        )?;
        for contender in &self.contenders {
            let late = |figure: fn(&Round) -> f64| match contender.median(figure) {
                late_us if late_us.is_finite() => format!("{late_us:.0}"),
                _ => "-".to_owned(),
            };
            writeln!(
                f,
                "{:<18} {:>12.0} {:>16.2} {:>12} {:>12} {:>12.1}",
                contender.client.label(),
                contender.median(|round| round.seen.requests_per_second),
                contender.median(|round| round.cpu_us_per_request),
                late(|round| round.seen.late_p50_us),
                late(|round| round.seen.late_p99_us),
                contender.median(|round| round.resident_bytes as f64 / 1e6),
            )?;
        }
        let ours =
            self.contenders.iter().map(|contender| contender.client).filter(|client| *client != Client::H2);
        for client in ours {
            if let (Some(cpu), Some(rate)) = (self.cpu_ratio(client), self.rate_ratio(client)) {
                writeln!(f, "{} over h2, by rounds: CPU {cpu}, requests/s {rate}", client.label())?;
            }
        }
        Ok(())
    }
}

/// Memory of the contenders by connections and streams, in closed loops.
pub struct MemoryPart {
    /// Connections, and the streams of each.
    sizes: [(usize, usize); 3],
    parts: Vec<LoadPart>,
}

impl MemoryPart {
    pub fn run(effort: Effort) -> Outcome<Self> {
        let sizes = [(1, 1), (effort.many, 1), (effort.many, MANY_STREAMS)];
        let part = |(connections, streams)| {
            let task = Task { rate: None, connections, streams, duration: effort.duration };
            let clients = [Client::Engine, Client::EngineOnEpoll, Client::H2];
            LoadPart::run(String::new(), None, task, &clients, effort.rounds.min(MAX_MEMORY_ROUNDS))
        };
        Ok(Self { sizes, parts: sizes.into_iter().map(part).collect::<Outcome<_>>()? })
    }

    /// Median resident memory at each size, bytes.
    fn resident_bytes(&self, client: Client) -> [f64; 3] {
        let of = |index: usize| match self.parts[index].contender(client) {
            Some(contender) => contender.median(|round| round.resident_bytes as f64),
            None => f64::NAN,
        };
        [of(0), of(1), of(2)]
    }

    pub fn promises(&self) -> Vec<Promise> {
        let [engine, h2] = [Client::Engine, Client::H2].map(|client| self.of_connection_bytes(client));
        vec![Promise::at_most(
            "memory of a connection over that of h2",
            engine / h2,
            MAX_CONNECTION_MEMORY_RATIO,
        )]
    }

    /// Memory of a connection with one stream, bytes.
    fn of_connection_bytes(&self, client: Client) -> f64 {
        let [one, many, _] = self.resident_bytes(client);
        (many - one) / (self.sizes[1].0 - self.sizes[0].0) as f64
    }

    /// Memory of a further stream, bytes.
    fn of_stream_bytes(&self, client: Client) -> f64 {
        let [_, few, many] = self.resident_bytes(client);
        let [_, (connections, streams), (_, many_streams)] = self.sizes;
        (many - few) / (connections * (many_streams - streams)) as f64
    }
}

impl fmt::Display for MemoryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "resident memory at the end of closed loops, medians of the rounds")?;
        let titles = self.sizes.map(|(connections, streams)| format!("{connections} x {streams}, MB"));
        write!(f, "{:<18}", "")?;
        titles.iter().try_for_each(|title| write!(f, " {title:>14}"))?;
        writeln!(f, " {:>16} {:>16}", "KiB/connection", "KiB/stream")?;
        for contender in &self.parts[0].contenders {
            write!(f, "{:<18}", contender.client.label())?;
            let resident = self.resident_bytes(contender.client);
            resident.iter().try_for_each(|bytes| write!(f, " {:>14.1}", bytes / 1e6))?;
            let [connection, stream] =
                [self.of_connection_bytes(contender.client), self.of_stream_bytes(contender.client)];
            writeln!(f, " {:>16.2} {:>16.2}", connection / 1024.0, stream / 1024.0)?;
        }
        Ok(())
    }
}

/// The protocol alone, by kind of request and by requests per turn.
pub struct ProtocolPart {
    rows: Vec<ProtocolRow>,
}

struct ProtocolRow {
    name: &'static str,
    engine: Vec<Cost>,
    h2: Vec<Cost>,
}

impl ProtocolPart {
    pub fn run(effort: Effort) -> Outcome<Self> {
        let mut rows = Vec::new();
        for (name, kind, fields, per_turn) in [
            ("GET, 1 per turn", Kind::Plain, Fields::Indexed, 1),
            (PROMISED_ROW, Kind::Plain, Fields::Indexed, 32),
            ("same, fields as from nginx", Kind::Plain, Fields::Added, 32),
            ("unary gRPC call, 1 per turn", Kind::Grpc, Fields::Indexed, 1),
            ("unary gRPC call, 32 per turn", Kind::Grpc, Fields::Indexed, 32),
        ] {
            let mut row = ProtocolRow { name, engine: Vec::new(), h2: Vec::new() };
            for round in 0..effort.rounds {
                for index in turns(round, 2) {
                    let (side, costs) = match index {
                        0 => (Side::Engine, &mut row.engine),
                        _ => (Side::H2, &mut row.h2),
                    };
                    costs.push(measure(side, kind, fields, per_turn, effort.requests)?);
                }
            }
            rows.push(row);
        }
        Ok(Self { rows })
    }

    /// The row of the promises.
    fn promised(&self) -> Option<&ProtocolRow> {
        self.rows.iter().find(|row| row.name == PROMISED_ROW)
    }

    pub fn promises(&self) -> Vec<Promise> {
        let Some(row) = self.promised() else { return Vec::new() };
        let allocations = median(row.engine.iter().map(|cost| cost.allocations));
        vec![
            Promise::at_most("protocol alone: time over that of h2", row.ratio().median, MAX_PROTOCOL_RATIO),
            Promise::at_most("protocol alone: allocations per request", allocations, MAX_ALLOCATIONS),
        ]
    }
}

impl ProtocolRow {
    fn ratio(&self) -> Ratio {
        Ratio::new(&self.engine, &self.h2, |cost| cost.ns)
    }
}

impl fmt::Display for ProtocolPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the protocol alone, without sockets, medians of the rounds")?;
        writeln!(
            f,
            "{:<28} {:>10} {:>8} {:>22} {:>22}",
            "", "engine ns", "h2 ns", "engine over h2", "allocations: engine, h2"
        )?;
        for row in &self.rows {
            let of = |costs: &[Cost], figure: fn(&Cost) -> f64| median(costs.iter().map(figure));
            writeln!(
                f,
                "{:<28} {:>10.0} {:>8.0} {:>22} {:>15.2} {:>7.2}",
                row.name,
                of(&row.engine, |cost| cost.ns),
                of(&row.h2, |cost| cost.ns),
                row.ratio().to_string(),
                of(&row.engine, |cost| cost.allocations),
                of(&row.h2, |cost| cost.allocations),
            )?;
        }
        Ok(())
    }
}
