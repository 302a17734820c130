//! Clients connect and settle, the fleet's and the Go client's in turn: CPU per megabyte, memory per client.

use crate::contest::process::{Place, pinned, resident_bytes};
use crate::contest::{Outcome, median, turns};
use crate::fleet_process::{FleetOrder, FleetProcess};
use crate::peer::Peer;
use crate::stub_process::{StubOrder, StubProcess};
use std::time::Duration;
use std::{env, fmt, fs, thread};

/// Time from completion to the reading of memory; the Go client waits as long.
const SETTLE: Duration = Duration::from_secs(2);

/// Size of the measurement.
#[derive(Clone, Debug)]
pub struct Effort {
    pub clients: usize,
    /// Bytes sent to each client.
    pub bytes: usize,
    pub rounds: usize,
    /// New connections per second.
    pub connect_rate: f64,
}

/// Result of a contender in one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub cpu_ms_per_mb: f64,
    pub memory_kib_per_client: f64,
    pub complete_s: f64,
}

/// A contender.
pub enum Client {
    Fleet,
    /// The fleet over TLS, with tokens.
    FleetOverTls,
    Peer(Peer),
}

impl Client {
    fn label(&self) -> &'static str {
        match self {
            Self::Fleet => "meshmeter fleet",
            Self::FleetOverTls => "same, TLS",
            Self::Peer(_) => "Go client",
        }
    }
}

/// A contender's rounds.
pub struct Contender {
    client: Client,
    rounds: Vec<Round>,
}

/// All contenders' rounds.
pub struct Settling {
    pub effort: Effort,
    pub contenders: Vec<Contender>,
}

impl Settling {
    /// Runs the rounds of all contenders in turn.
    ///
    /// # Errors
    /// Returns an error if a client does not complete, or if the stub complains about it.
    pub fn run(effort: Effort, clients: Vec<Client>) -> Outcome<Self> {
        let contenders = clients.into_iter().map(|client| Contender { client, rounds: Vec::new() });
        let mut contenders: Vec<_> = contenders.collect();
        for round in 0..effort.rounds {
            for index in turns(round, contenders.len()) {
                let needed = match &contenders[index].client {
                    Client::Fleet => of_fleet(&effort, false)?,
                    Client::FleetOverTls => of_fleet(&effort, true)?,
                    Client::Peer(peer) => of_peer(peer, &effort)?,
                };
                contenders[index].rounds.push(needed);
            }
        }
        Ok(Self { effort, contenders })
    }

    /// Ratio of the first contender's CPU to the Go client's for the same bytes.
    pub fn cpu_ratio(&self) -> Option<f64> {
        let peer = self.contenders.iter().find(|contender| matches!(contender.client, Client::Peer(_)))?;
        Some(
            self.contenders[0].median(|round| round.cpu_ms_per_mb) / peer.median(|round| round.cpu_ms_per_mb),
        )
    }

    /// Maximum memory per client of any contender.
    pub fn memory_kib_per_client(&self) -> f64 {
        let medians =
            self.contenders.iter().map(|contender| contender.median(|round| round.memory_kib_per_client));
        medians.fold(0.0, f64::max)
    }
}

impl Contender {
    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }
}

/// Starts a separate stub per contender: the bytes it sent are those that one contender received.
fn start_stub(effort: &Effort, tls: bool) -> Outcome<StubProcess> {
    StubProcess::start(&StubOrder { bytes: effort.bytes, churn_per_s: 0.0, tls })
}

fn of_peer(peer: &Peer, effort: &Effort) -> Outcome<Round> {
    let mut stub = start_stub(effort, false)?;
    let result = peer.run(&stub.listening.address, effort.clients, effort.connect_rate)?;
    if result.complete != effort.clients as u64 {
        return Err(
            format!("{} Go clients are complete: {}", result.complete, result.errors.join("; ")).into()
        );
    }
    Ok(Round {
        cpu_ms_per_mb: result.cpu_s * 1e3 / megabytes(&mut stub)?,
        memory_kib_per_client: per_client_kib(result.memory_settled_bytes, effort),
        complete_s: result.complete_s,
    })
}

fn of_fleet(effort: &Effort, tls: bool) -> Outcome<Round> {
    let mut stub = start_stub(effort, tls)?;
    let order = FleetOrder {
        address: stub.listening.address.clone(),
        roots: stub.listening.roots.clone(),
        proxies: effort.clients,
        connect_rate: effort.connect_rate,
    };
    let mut fleet = FleetProcess::start(pinned(Place::Generator, &env::current_exe()?)?, &order)?;
    let completion = fleet.completion()?;
    if completion.complete != effort.clients as u64 {
        let result = fleet.finish()?;
        return Err(format!("{completion:?} {}", result["violations"]).into());
    }
    let cpu_s = cpu_s(fleet.id())?;
    thread::sleep(SETTLE);
    let memory_bytes = resident_bytes(fleet.id())?;
    Ok(Round {
        cpu_ms_per_mb: cpu_s * 1e3 / megabytes(&mut stub)?,
        memory_kib_per_client: per_client_kib(memory_bytes, effort),
        complete_s: completion.complete_s,
    })
}

/// Megabytes sent by a stub. Returns an error if it has complaints about its clients.
fn megabytes(stub: &mut StubProcess) -> Outcome<f64> {
    let totals = stub.totals()?;
    if !totals.complaints.is_empty() {
        return Err(format!("the stub complains: {}", totals.complaints.join("; ")).into());
    }
    Ok(totals.body_bytes as f64 / 1e6)
}

fn per_client_kib(bytes: u64, effort: &Effort) -> f64 {
    bytes as f64 / 1024.0 / effort.clients as f64
}

/// User and system time of a process, over all threads, in seconds.
fn cpu_s(process: u32) -> Outcome<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // Parsed after the name, which may contain anything: fields 14 and 15 are the 12th and 13th there.
    let (_, fields) = stat.rsplit_once(')').ok_or("stat has no name")?;
    let ticks: Vec<u64> =
        fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64)
}

impl fmt::Display for Settling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effort { clients, bytes, rounds, .. } = self.effort;
        writeln!(f, "{clients} clients, {:.1} MB each, medians of {rounds} rounds", bytes as f64 / 1e6)?;
        writeln!(f, "{:<18} {:>14} {:>18} {:>14}", "", "CPU, ms per MB", "memory, KiB each", "complete, s")?;
        for contender in &self.contenders {
            let median = |figure: fn(&Round) -> f64| contender.median(figure);
            writeln!(
                f,
                "{:<18} {:>14.2} {:>18.1} {:>14.1}",
                contender.client.label(),
                median(|round| round.cpu_ms_per_mb),
                median(|round| round.memory_kib_per_client),
                median(|round| round.complete_s),
            )?;
        }
        match self.cpu_ratio() {
            Some(ratio) => writeln!(f, "the fleet's CPU over the Go client's: {ratio:.3}"),
            None => Ok(()),
        }
    }
}
