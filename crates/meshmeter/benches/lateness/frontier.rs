//! CPU per request and lateness of generators at one rate, in turn, round after round.

use crate::arrivals::ArrivalServer;
use crate::contest::{Outcome, median, turns};
use crate::generators::{Generator, Load};
use crate::peers::Peers;
use crate::schedule::{Lateness, Schedule, hidden_us};
use std::fmt;
use std::path::Path;

const CONNECTIONS: u32 = 64;
/// Fraction of the requests at the start that are not judged: connections are opened meanwhile.
const SETTLING: f64 = 0.2;

/// Labels and options of `meshmeter load`.
const OURS: [(&str, &[&str]); 6] = [
    ("meshmeter, precise", &["--pacing=precise"]),
    ("meshmeter, 100 us tolerated", &["--pacing=economical"]),
    ("meshmeter, 300 us tolerated", &["--pacing=economical", "--lag-tolerance=300us"]),
    ("meshmeter, 1 ms tolerated", &["--pacing=economical", "--lag-tolerance=1ms"]),
    ("meshmeter, 3 ms tolerated", &["--pacing=economical", "--lag-tolerance=3ms"]),
    ("meshmeter, 10 ms tolerated", &["--pacing=economical", "--lag-tolerance=10ms"]),
];

/// Generators at one rate.
pub struct Frontier {
    rate: u32,
    contenders: Vec<(&'static str, Generator)>,
    /// Missing peers, with the reason.
    not_run: Vec<String>,
}

/// Result of a frontier.
pub struct FrontierResult {
    rate: u32,
    pub contenders: Vec<Contender>,
    not_run: Vec<String>,
}

/// Rounds of a generator.
pub struct Contender {
    pub label: &'static str,
    is_peer: bool,
    rounds: Vec<Round>,
}

/// One run of a generator.
pub struct Round {
    pub requests_per_second: f64,
    pub cpu_us_per_request: f64,
    pub lateness: Lateness,
    /// Lateness that the fit hides, of a generator that announces its schedule, microseconds.
    pub hidden_us: Option<f64>,
}

impl Frontier {
    /// Requests per second; `meshmeter load` with several tolerances, and the peers that were found.
    pub fn new(rate: u32, meshmeter: &Path, peers: &Peers) -> Self {
        let ours = OURS.map(|(label, options)| (label, Generator::Meshmeter(meshmeter.to_owned(), options)));
        let mut frontier = Self { rate, contenders: ours.to_vec(), not_run: Vec::new() };
        for peer in [&peers.fortio, &peers.oha, &peers.wrk2] {
            match peer {
                Ok(generator) => frontier.contenders.push((generator.name(), generator.clone())),
                Err(reason) => frontier.not_run.push(reason.clone()),
            }
        }
        frontier
    }

    /// Runs all generators in turn.
    ///
    /// # Errors
    /// Returns an error if a generator fails, or a request does not arrive as a whole.
    pub fn run(self, rounds: usize, seconds: u32) -> Outcome<FrontierResult> {
        let mut contenders: Vec<Contender> = self
            .contenders
            .iter()
            .map(|(label, generator)| Contender {
                label,
                is_peer: matches!(generator, Generator::Peer(..)),
                rounds: Vec::new(),
            })
            .collect();
        for round in 0..rounds {
            for index in turns(round, contenders.len()) {
                let (_, generator) = &self.contenders[index];
                contenders[index].rounds.push(Round::of(generator, self.rate, seconds)?);
            }
        }
        Ok(FrontierResult { rate: self.rate, contenders, not_run: self.not_run })
    }
}

impl Round {
    fn of(generator: &Generator, rate: u32, seconds: u32) -> Outcome<Self> {
        let server = ArrivalServer::start()?;
        let load = Load::Open { rate, connections: CONNECTIONS };
        let ran = generator.run(load, seconds, &server.url);
        let arrivals = server.stop()?;
        let (reading, cpu_s) = ran?;
        let skipped = (arrivals.len() as f64 * SETTLING) as usize;
        let settled = &arrivals[skipped..];
        let (Some(first), Some(last)) = (settled.first(), settled.last()) else {
            return Err("no request arrived".into());
        };
        let requested = f64::from(rate);
        // What `meshmeter load` announces is one schedule. The others get the one that suits them.
        let announced = reading.started_at;
        let lateness = match announced {
            Some(_) => Lateness::fitted(settled, requested, Schedule::Load),
            None => Lateness::best(settled, requested),
        };
        Ok(Self {
            requests_per_second: (settled.len() - 1) as f64 / (last.at - first.at).as_secs_f64(),
            cpu_us_per_request: cpu_s * 1e6 / arrivals.len() as f64,
            lateness,
            hidden_us: announced.map(|start| hidden_us(settled, requested, start, skipped)),
        })
    }

    fn p50_us(&self) -> f64 {
        self.lateness.percentile_us(50.0)
    }

    fn p99_us(&self) -> f64 {
        self.lateness.percentile_us(99.0)
    }
}

impl Contender {
    /// Median over the rounds; NaN if there is no such figure.
    pub fn median(&self, figure: impl Fn(&Round) -> Option<f64>) -> f64 {
        median(self.rounds.iter().filter_map(figure))
    }

    fn cpu_us(&self) -> f64 {
        self.median(|round| Some(round.cpu_us_per_request))
    }

    fn p50_us(&self) -> f64 {
        self.median(|round| Some(round.p50_us()))
    }

    fn p99_us(&self) -> f64 {
        self.median(|round| Some(round.p99_us()))
    }

    fn is_no_later_than(&self, other: &Self) -> bool {
        self.p50_us() <= other.p50_us() && self.p99_us() <= other.p99_us()
    }
}

impl FrontierResult {
    /// The peers, each with the cheapest `meshmeter load` that is not later, neither at the median nor at p99.
    fn at_equal_lateness(&self) -> impl Iterator<Item = (&Contender, Option<&Contender>)> {
        let (peers, ours): (Vec<_>, Vec<_>) = self.contenders.iter().partition(|contender| contender.is_peer);
        peers.into_iter().map(move |peer| {
            let no_later = ours.iter().copied().filter(|own| own.is_no_later_than(peer));
            (peer, no_later.min_by(|a, b| a.cpu_us().total_cmp(&b.cpu_us())))
        })
    }
}

impl fmt::Display for FrontierResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}/s on {CONNECTIONS} connections, medians of the rounds", self.rate)?;
        writeln!(
            f,
            "{:<28} {:>10} {:>14} {:>11} {:>11} {:>11} {:>10}  schedule",
            "generator",
            "requests/s",
            "CPU us/request",
            "late p50 us",
            "late p99 us",
            "late max us",
            "hidden us"
        )?;
        self.contenders.iter().try_for_each(|contender| writeln!(f, "{contender}"))?;
        for reason in &self.not_run {
            writeln!(f, "not run: {reason}")?;
        }
        for (peer, own) in self.at_equal_lateness() {
            match own {
                Some(own) => {
                    let ratio = own.cpu_us() / peer.cpu_us();
                    writeln!(f, "no later than {}: {}, CPU x {ratio:.2}", peer.label, own.label)?;
                }
                None => writeln!(f, "no later than {}: none", peer.label)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.median(|round| Some(round.requests_per_second));
        let max_us = self.median(|round| Some(round.lateness.percentile_us(100.0)));
        write!(
            f,
            "{:<28} {rate:>10.0} {:>14.1} {:>11.0} {:>11.0} {max_us:>11.0}",
            self.label,
            self.cpu_us(),
            self.p50_us(),
            self.p99_us(),
        )?;
        match self.median(|round| round.hidden_us) {
            hidden_us if hidden_us.is_finite() => write!(f, " {hidden_us:>10.1}")?,
            _ => write!(f, " {:>10}", "-")?,
        }
        let per_connection =
            self.rounds.iter().filter(|round| round.lateness.schedule == Schedule::Connection).count();
        let schedule = if 2 * per_connection > self.rounds.len() { "per connection" } else { "of the load" };
        write!(f, "  {schedule}")
    }
}
