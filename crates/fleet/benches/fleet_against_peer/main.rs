//! `cargo bench -p meshmeter-fleet --bench fleet_against_peer`: compares a fleet with a Go client (grpc-go,
//! go-control-plane's types, everything decoded).
//! First, both run in turn, pinned to CPU 1, against a stub of a control plane on CPU 0 that sends each
//! client 2 MB. Then ten thousand clients of the fleet run alone, in plaintext and over TLS. Last, times of
//! arrival are measured at two thousand clients under churn. It takes about ten minutes and 1 GB; do not use
//! the machine meanwhile. Go must be installed.
//! Words after `--` choose parts: `peer`, `many`, `arrivals`. A number among them replaces the part's number
//! of clients, and `--quick` gives a first impression in half a minute.
//! Exits with status 1 if a promise is not kept.

mod arrivals;
#[path = "../../../meshmeter/benches/contest/mod.rs"]
mod contest;
#[path = "../../tests/fleet_process/mod.rs"]
mod fleet_process;
mod peer;
mod settling;
#[path = "../../tests/setup/mod.rs"]
mod setup;
mod stub_process;

use arrivals::Arrivals;
use contest::{Outcome, exit_code};
use fleet_process::FLEET;
use peer::Peer;
use settling::{Client, Effort, Settling};
use std::env;
use std::process::ExitCode;
use stub_process::STUB;

/// Promises of the fleet.
const MAX_CPU_RATIO: f64 = 0.25;
const MAX_MEMORY_KIB_PER_CLIENT: f64 = 64.0;
const MAX_ERROR_P99_US: f64 = 1000.0;

/// Bytes sent to each client.
const BYTES: usize = 2_000_000;
/// New connections per second: about the maximum that the stub's CPU can serve.
const CONNECT_RATE: f64 = 300.0;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let kept = match &words[..] {
        [first, order] if first == STUB => stub_process::run(order).map(|()| true),
        [first, order] if first == FLEET => fleet_process::run(order).map(|()| true),
        // Cargo adds `--bench`.
        words => {
            contest(&words.iter().map(String::as_str).filter(|word| *word != "--bench").collect::<Vec<_>>())
        }
    };
    exit_code(kept)
}

/// Returns true if every promise was kept.
#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn contest(words: &[&str]) -> Outcome<bool> {
    const PARTS: [&str; 3] = ["peer", "many", "arrivals"];
    let clients = words.iter().find_map(|word| word.parse::<usize>().ok());
    let quick = words.contains(&"--quick");
    let unknown =
        |word: &&&str| !PARTS.contains(*word) && **word != "--quick" && word.parse::<usize>().is_err();
    if let Some(word) = words.iter().find(unknown) {
        return Err(format!("`{word}` is not a part: expected one of {}", PARTS.join(", ")).into());
    }
    let all = !words.iter().any(|word| PARTS.contains(word));
    let is_chosen = |part| all || words.contains(&part);
    let mut promises = Vec::new();
    if is_chosen("peer") {
        let (usual, rounds) = if quick { (50, 1) } else { (1000, 3) };
        let effort =
            Effort { clients: clients.unwrap_or(usual), bytes: BYTES, rounds, connect_rate: CONNECT_RATE };
        let result = Settling::run(effort, vec![Client::Fleet, Client::Peer(Peer::build()?)])?;
        println!("{result}");
        promises.push(("CPU over the Go client's", result.cpu_ratio().unwrap_or(f64::NAN), MAX_CPU_RATIO));
    }
    if is_chosen("many") {
        let usual = if quick { 1000 } else { 10_000 };
        let effort =
            Effort { clients: clients.unwrap_or(usual), bytes: BYTES, rounds: 1, connect_rate: CONNECT_RATE };
        let result = Settling::run(effort, vec![Client::Fleet, Client::FleetOverTls])?;
        println!("{result}");
        promises.push(("memory of a client, KiB", result.memory_kib_per_client(), MAX_MEMORY_KIB_PER_CLIENT));
    }
    if is_chosen("arrivals") {
        let (usual, marks) = if quick { (200, 3) } else { (2000, 30) };
        let result = Arrivals::run(arrivals::Effort {
            clients: clients.unwrap_or(usual),
            bytes: BYTES,
            connect_rate: CONNECT_RATE,
            churn_per_s: 2.0,
            marks,
        })?;
        println!("{result}");
        promises.push(("error of an arrival at p99, us", result.error_p99_us(), MAX_ERROR_P99_US));
        promises.push(("error of an arrival over its stated bound, p99", result.error_over_stated(), 1.0));
    }
    for (what, figure, most) in &promises {
        let kept = if figure <= most { "kept:" } else { "NOT KEPT:" };
        println!("{kept:<9} {what}: {figure:.3}, at most {most}");
    }
    Ok(promises.iter().all(|(_, figure, most)| figure <= most))
}
