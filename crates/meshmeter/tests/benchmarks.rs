//! Runs the benchmarks in a tiny form, so that they keep working. Their figures mean nothing here.

#[path = "../benches/lateness/arrivals.rs"]
mod arrivals;
#[path = "../benches/fan_out/bare.rs"]
mod bare;
#[path = "../benches/contest/mod.rs"]
mod contest;
#[path = "../benches/fan_out/fan_out_contest.rs"]
mod fan_out_contest;
#[path = "../benches/lateness/frontier.rs"]
mod frontier;
#[path = "../benches/load_against_peers/generator_contest.rs"]
mod generator_contest;
#[path = "../benches/load_against_peers/generators.rs"]
mod generators;
#[path = "../benches/load_against_peers/parts.rs"]
mod parts;
#[path = "../benches/load_against_peers/peers/mod.rs"]
mod peers;
#[path = "../benches/load_against_peers/promises.rs"]
mod promises;
#[path = "../benches/lateness/schedule.rs"]
mod schedule;
#[path = "../benches/serve_against_nginx/server_contest.rs"]
mod server_contest;
#[path = "../benches/lateness/timestamped.rs"]
mod timestamped;

use contest::process::run_to_end;
use contest::{h2load, median, turns};
use frontier::Frontier;
use generator_contest::{
    CPU_US, ContenderResult, Effort, HANDSHAKES, IMBALANCE_PERCENT, LAG_P99_US, MEMORY_MB, P50_US, P99_US,
    PartResult, RATE, Round,
};
use generators::{Generator, Latency, Reading};
use parts::{
    ALONE, AUTO, BRISK, CALM, CHURN, ECONOMICAL, FOUR_TIMES, HTTP2, LASTING, MANY, ON_EPOLL, ON_IO_URING,
    PRECISE, PRECISE_ON_IO_URING, Size, effort, parts,
};
use peers::{Peer, Peers, fortio, oha, wrk2};
use promises::promises;
use schedule::{Arrival, Lateness, Schedule, hidden_us};
use server_contest::Contest;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const MESHMETER: &str = env!("CARGO_BIN_EXE_meshmeter");
const TINY: Size = Size { brisk_rate: 1000, many_connections: 100 };

#[test]
fn serve_against_nginx() {
    let contest = Contest { meshmeter: MESHMETER.into(), rounds: 1, seconds: 1, connections: 8 };
    let result = contest.run().unwrap_or_else(|error| panic!("{error}"));
    for server in &result.servers {
        assert!(server.idle_memory_bytes > 100_000, "{} has {} bytes", server.name, server.idle_memory_bytes);
        let rate = server.median(|round| round.requests_per_second);
        assert!(rate > 100.0, "{} answers {rate} per second", server.name);
    }
    assert!(result.requests_per_core_ratio().is_finite(), "{result}");
}

#[test]
fn fan_out() {
    let contest = fan_out_contest::Contest { meshmeter: MESHMETER.into(), rounds: 1, seconds: 1, rate: 100 };
    let result = contest.run().unwrap_or_else(|error| panic!("{error}"));
    for pair in &result.pairs {
        assert!(pair.callee_p50_us > 1.0 && pair.caller_p50_us > 1.0, "{result}");
    }
    assert!(result.idle_memory_bytes > 100_000, "{result}");
    assert!(result.added_p50_us(fan_out_contest::PROMISED).is_some(), "{result}");
    assert!(result.pairs.iter().any(|pair| pair.bare_p50_us.is_some_and(|p50_us| p50_us > 1.0)), "{result}");
}

#[test]
fn load_against_peers() {
    let effort = Effort { rounds: 1, seconds: 1 };
    let results: Vec<PartResult> = parts(Path::new(MESHMETER), &Peers::find(|_| None, |_| None), TINY)
        .into_iter()
        .filter(|part| part.title != LASTING)
        .map(|part| part.run(effort).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    let labels: Vec<Vec<&str>> = results
        .iter()
        .map(|result| result.contenders.iter().map(|contender| contender.label).collect())
        .collect();
    assert_eq!(
        labels,
        [
            vec!["meshmeter load", ON_EPOLL, "wrk"],
            vec!["meshmeter load", ALONE, ECONOMICAL],
            vec!["meshmeter load", ON_IO_URING, PRECISE, PRECISE_ON_IO_URING, AUTO],
            vec![
                "meshmeter load",
                "same, 50us tolerated",
                "same, 200us tolerated",
                "same, 400us tolerated",
                "same, 1ms tolerated"
            ],
            vec!["meshmeter load", ON_EPOLL, "h2load"],
            vec!["meshmeter load", ON_EPOLL, "wrk"],
            vec!["meshmeter load", ON_EPOLL, "wrk"],
            vec!["meshmeter load", ON_IO_URING],
        ]
    );
    for result in &results {
        let text = result.to_string();
        for contender in &result.contenders {
            assert!(contender.median(RATE) > 100.0, "{text}");
            assert!(contender.median(CPU_US) > 0.0, "{text}");
        }
        let ours = result.contender("meshmeter load").unwrap();
        // On a busy machine requests are sent late or not at all, and the verdict says so; or so few responses come that
        // the requests of 16 clients which wait at the end are more than a hundredth. Percentiles then have no value.
        let without_percentiles =
            |round: &Round| !round.reading.invalid.is_empty() || round.reading.requests < 1600.0;
        assert!(
            ours.rounds.iter().any(without_percentiles)
                || (1.0..=ours.median(P99_US)).contains(&ours.median(P50_US)),
            "{text}"
        );
        assert!(ours.median(LAG_P99_US).is_finite(), "{text}");
    }
    let text = results[0].to_string();
    assert!(text.contains("not run: fortio is not on PATH"), "{text}");
    let ours = |title: &str| {
        let result = results.iter().find(|result| result.title == title).expect("it ran");
        result.contender("meshmeter load").expect("it was there")
    };
    assert!(ours(CHURN).median(HANDSHAKES) > 10.0 && ours(MANY).median(MEMORY_MB) > 1.0);
    assert!(
        (0.0..100.0).contains(&ours(MANY).median(IMBALANCE_PERCENT)),
        "each connection had some of the requests"
    );
    assert!(text.contains("meshmeter load over wrk:  answers/s x "), "{text}");
}

#[test]
fn lateness() {
    let frontier = Frontier::new(500, Path::new(MESHMETER), &Peers::find(|_| None, |_| None));
    let result = frontier.run(1, 1).unwrap_or_else(|error| panic!("{error}"));
    let text = result.to_string();
    for contender in &result.contenders {
        assert!(contender.median(|round| Some(round.requests_per_second)) > 100.0, "{text}");
        assert!(contender.median(|round| Some(round.cpu_us_per_request)) > 0.0, "{text}");
        // No request is earlier than announced, but for the steps of two clocks.
        assert!(contender.median(|round| round.hidden_us) > -100.0, "{text}");
    }
    assert_eq!(result.contenders.len(), 6);
    assert!(
        text.contains("meshmeter, 1 ms tolerated") && text.contains("not run: oha is not on PATH"),
        "{text}"
    );
}

/// Requests of `connections` in turn, each this late after its slot of a millisecond.
fn arrivals_late_by(late_us: &[u64], connections: usize) -> Vec<Arrival> {
    let at_us = late_us.iter().zip(0_u64..).map(|(late_us, slot)| 1_000_000 + 1000 * slot + late_us);
    let arrivals = at_us.enumerate();
    arrivals
        .map(|(number, at_us)| Arrival { connection: number % connections, at: Duration::from_micros(at_us) })
        .collect()
}

#[test]
fn lateness_is_by_the_last_schedule_that_no_arrival_precedes() {
    let late_us = [27, 7, 7, 507, 7, 7, 7, 7, 7, 7];
    let arrivals = arrivals_late_by(&late_us, 3);
    let lateness = Lateness::fitted(&arrivals, 1000.0, Schedule::Load);
    let percentiles = [50.0, 80.0, 90.0, 100.0].map(|percent| lateness.percentile_us(percent).round());
    assert_eq!(percentiles, [0.0, 0.0, 20.0, 500.0]);
    // It hides what all are late by.
    let announced = Duration::from_secs(1);
    assert!((hidden_us(&arrivals, 1000.0, announced, 0) - 7.0).abs() < 0.01);
    assert!((hidden_us(&arrivals[4..], 1000.0, announced, 4) - 7.0).abs() < 0.01);
    // Half of the rate is missed: the last of ten requests is nine slots late.
    let lateness = Lateness::fitted(&arrivals_late_by(&[0; 10], 1), 2000.0, Schedule::Load);
    assert_eq!(lateness.percentile_us(100.0).round(), 4500.0);
}

#[test]
fn a_schedule_per_connection_is_one_if_it_fits_better() {
    // Four connections fire together every four milliseconds.
    let arrivals: Vec<Arrival> = (0..40)
        .map(|number| Arrival {
            connection: number % 4,
            at: Duration::from_millis(1000 + 4 * (number as u64 / 4)),
        })
        .collect();
    let load = Lateness::fitted(&arrivals, 1000.0, Schedule::Load);
    assert_eq!((load.percentile_us(25.0).round(), load.percentile_us(100.0).round()), (0.0, 3000.0));
    let best = Lateness::best(&arrivals, 1000.0);
    assert_eq!((best.schedule, best.percentile_us(100.0).round()), (Schedule::Connection, 0.0));
    // Whichever connection is free sends the next request.
    let mut arrivals = arrivals_late_by(&[0; 40], 4);
    arrivals.iter_mut().take(10).for_each(|arrival| arrival.connection = 0);
    assert_eq!(Lateness::best(&arrivals, 1000.0).schedule, Schedule::Load);
}

fn round(reading: Reading, cpu_us_per_request: f64) -> Round {
    Round {
        reading,
        cpu_us_per_request,
        server_busy_fraction: 0.5,
        handshakes_per_second: None,
        imbalance: None,
    }
}

#[test]
fn promises_of_memory_balance_and_handshakes() {
    let contender = |label, memory_mb: f64, imbalance: f64, handshakes: f64| {
        let memory_peak_bytes = Some(memory_mb * 1e6);
        let reading = Reading { requests_per_second: 1000.0, memory_peak_bytes, ..Reading::default() };
        let rounds = vec![Round {
            imbalance: Some(imbalance),
            handshakes_per_second: Some(handshakes),
            ..round(reading, 1.0)
        }];
        ContenderResult { label, rounds }
    };
    let kept = |title, contenders| {
        let result = PartResult { title, not_run: Vec::new(), contenders };
        promises(&[result]).iter().map(|promise| promise.kept).collect::<Vec<bool>>()
    };
    let ours =
        |memory_mb, imbalance, handshakes| contender("meshmeter load", memory_mb, imbalance, handshakes);
    assert_eq!(kept(MANY, vec![ours(96.0, 0.05, 0.0)]), [true; 3]);
    assert_eq!(kept(MANY, vec![ours(97.0, 0.06, 0.0)]), [true, false, false]);
    assert_eq!(kept(CHURN, vec![ours(1.0, 0.0, 995.0)]), [true; 2]);
    assert_eq!(kept(CHURN, vec![ours(1.0, 0.0, 900.0)]), [true, false]);
    let long = |memory_mb| contender(FOUR_TIMES, memory_mb, 0.0, 0.0);
    assert_eq!(kept(LASTING, vec![ours(32.0, 0.0, 0.0), long(33.0)]), [true; 3]);
    assert_eq!(kept(LASTING, vec![ours(33.0, 0.0, 0.0), long(37.0)]), [true, false, false]);
}

#[test]
fn a_first_look_is_quick() {
    for part in parts(Path::new(MESHMETER), &Peers::find(|_| None, |_| None), TINY) {
        let (whole, quick) = (effort(part.title, false), effort(part.title, true));
        assert!(quick.rounds <= 2 && quick.seconds == 1 && whole.seconds >= 3, "{}", part.title);
    }
}

#[test]
fn promises_are_checked_by_medians() {
    let contender = |label, p50: f64, lag_us_p99: f64, invalid: &[&str]| {
        let reading = Reading {
            requests: 5000.0,
            requests_per_second: 1000.0,
            latency_us: Some(Latency { p50, p99: 2.0 * p50 }),
            schedule_lag_us_p99: Some(lag_us_p99),
            invalid: invalid.iter().map(|reason| (*reason).to_owned()).collect(),
            ..Reading::default()
        };
        let cpu_us_per_request = if label == "meshmeter load" { 9.0 } else { 12.0 };
        let rounds = vec![round(reading, cpu_us_per_request)];
        ContenderResult { label, rounds }
    };
    let kept = |contenders| {
        let calm = PartResult { title: CALM, not_run: Vec::new(), contenders };
        promises(&[calm]).iter().map(|promise| promise.kept).collect::<Vec<bool>>()
    };
    let fortio = || contender("fortio", 120.0, f64::NAN, &[]);
    assert_eq!(kept(vec![contender("meshmeter load", 120.0, 99.0, &[]), fortio()]), [true, true, true]);
    assert_eq!(
        kept(vec![contender("meshmeter load", 121.0, 100.5, &["saturated: x"]), fortio()]),
        [false; 3]
    );
    let alone = |p50| contender(ALONE, p50, 1.0, &[]);
    assert_eq!(kept(vec![contender("meshmeter load", 121.0, 99.0, &[]), alone(112.0)]), [true; 3]);
    assert_eq!(kept(vec![contender("meshmeter load", 121.0, 99.0, &[]), alone(132.0)]), [true, true, false]);
    assert_eq!(kept(vec![contender("meshmeter load", 121.0, 99.0, &[])]), [true, true]);
    assert_eq!(kept(vec![contender("meshmeter load", 121.0, f64::NAN, &[])]), [true, false]);
    let brisk = PartResult {
        title: BRISK,
        not_run: Vec::new(),
        contenders: vec![
            contender("meshmeter load", 90.0, 101.0, &[]),
            contender(PRECISE, 40.0, 30.0, &[]),
            fortio(),
            contender("oha", 100.0, f64::NAN, &[]),
        ],
    };
    let kept: Vec<bool> = promises(&[brisk]).iter().map(|promise| promise.kept).collect();
    // Valid; lag of both; 9 of fortio's 12 is exactly at the limit, and too much for oha's.
    assert_eq!(kept, [true, false, true, true, false]);
}

#[test]
fn the_promise_over_http_2_is_about_cpu() {
    let contender = |label, cpu_us_per_request| {
        let reading = Reading { requests: 1000.0, requests_per_second: 1000.0, ..Reading::default() };
        let rounds = vec![round(reading, cpu_us_per_request)];
        ContenderResult { label, rounds }
    };
    let kept = |own_us, peers: &[(&'static str, f64)]| {
        let mut contenders = vec![contender("meshmeter load", own_us)];
        contenders.extend(peers.iter().map(|(label, cpu_us)| contender(label, *cpu_us)));
        let result = PartResult { title: HTTP2, not_run: Vec::new(), contenders };
        promises(&[result]).iter().map(|promise| promise.kept).collect::<Vec<bool>>()
    };
    assert_eq!(kept(7.0, &[("h2load", 7.0), ("fortio", 10.0)]), [true, true, true]);
    assert_eq!(kept(7.1, &[("h2load", 7.0), ("fortio", 10.0)]), [true, false, false]);
    assert_eq!(kept(7.1, &[("h2load", 7.0)]), [true, false]);
}

#[test]
fn h2load_output_is_parsed() {
    let said = "finished in 3.00s, 126743.33 req/s, 132.11MB/s\n\
                requests: 380230 total, 380486 started, 380230 done, 380230 succeeded, 0 failed, 0 errored, 0 timeout\n\
                status codes: 380230 2xx, 0 3xx, 0 4xx, 0 5xx\n";
    let ended = |text: &str| {
        let mut command = Command::new("printf");
        run_to_end(command.args(["%s", text]), Duration::from_secs(60)).unwrap()
    };
    let reading = h2load::read(&ended(said)).unwrap();
    assert_eq!((reading.requests, reading.requests_per_second), (380_230.0, 126_743.33));
    for (from, to) in [("0 failed", "1 failed"), ("0 3xx", "1 3xx"), (" done,", "")] {
        let error = h2load::read(&ended(&said.replace(from, to))).unwrap_err().to_string();
        assert!(error.starts_with("h2load: "), "{error}");
    }
}

#[test]
fn peers_are_found_by_variable_or_path() {
    let here = || Some(MESHMETER.into());
    assert!(matches!(Peer::Fortio.find(here(), None), Ok(Generator::Peer(Peer::Fortio, _))));
    assert!(matches!(Peer::Oha.find(None, here()), Ok(Generator::Peer(Peer::Oha, _))));
    // A wrongly named program is an error: no other program replaces it.
    let error = Peer::Fortio.find(Some("/nonexistent/fortio".into()), here()).unwrap_err();
    assert!(error.contains("FORTIO names `/nonexistent/fortio`"), "{error}");
}

#[test]
fn fortio_output_is_parsed() {
    let json = r#"{"ActualQPS": 999.5, "RetCodes": {"200": 5000},
        "DurationHistogram": {"Count": 5000, "Percentiles":
            [{"Percentile": 50, "Value": 0.0001252}, {"Percentile": 99, "Value": 0.0004}]}}"#;
    let reading = fortio::read(json).unwrap();
    assert_eq!((reading.requests, reading.requests_per_second), (5000.0, 999.5));
    let Latency { p50, p99 } = reading.latency_us.unwrap();
    assert!((p50 - 125.2).abs() < 1e-6 && (p99 - 400.0).abs() < 1e-6, "{p50} {p99}");
    for (from, to, words) in [
        ("\"200\": 5000", "\"200\": 4999, \"503\": 1", "answers other than 200"),
        ("\"Percentile\": 99", "\"Percentile\": 98", "no percentile 99"),
        ("ActualQPS", "QPS", "no figure /ActualQPS"),
    ] {
        let error = fortio::read(&json.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn oha_output_is_parsed() {
    let json = r#"{"summary": {"total": 5.0}, "latencyPercentiles": {"p50": 0.0002, "p99": 0.001},
        "statusCodeDistribution": {"200": 100000}, "errorDistribution": {"aborted due to deadline": 3}}"#;
    let reading = oha::read(json).unwrap();
    assert_eq!((reading.requests, reading.requests_per_second), (100_000.0, 20_000.0));
    assert_eq!(reading.latency_us, Some(Latency { p50: 200.0, p99: 1000.0 }));
    let error =
        oha::read(&json.replace("{\"200\": 100000}", "{\"200\": 1, \"502\": 1}")).unwrap_err().to_string();
    assert!(error.contains("answers other than 200"), "{error}");
}

#[test]
fn wrk2_output_is_parsed() {
    let text = " 50.000%    1.05ms\n 75.000%    1.41ms\n 99.000%  871.00us\n  99930 requests in 5.00s, 117.51MB read\n\
                Requests/sec:  19985.20\n";
    let ended = run_to_end(Command::new("printf").args(["%s", text]), Duration::from_secs(10)).unwrap();
    let reading = wrk2::read(&ended).unwrap();
    assert_eq!((reading.requests, reading.requests_per_second), (99_930.0, 19_985.2));
    assert_eq!(reading.latency_us, Some(Latency { p50: 1050.0, p99: 871.0 }));
}

#[test]
fn programs_time_out_and_their_cpu_time_is_read() {
    let started = Instant::now();
    let error = run_to_end(Command::new("sleep").arg("60"), Duration::from_millis(50)).err().unwrap();
    assert!(error.to_string().contains("did not end within"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(30));
    // The CPU time is that of the child, here a shell that counts, not of this process.
    let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo counted";
    let ended = run_to_end(Command::new("sh").args(["-c", count]), Duration::from_secs(60)).unwrap();
    assert!(ended.status.success() && ended.stdout == "counted\n", "{} {}", ended.stdout, ended.stderr);
    assert!(ended.cpu_s > 0.0 && ended.cpu_s < 60.0, "{}", ended.cpu_s);
}

#[test]
fn medians_and_turns() {
    assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
    assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    assert!(median(std::iter::empty()).is_nan());
    let orders: Vec<Vec<usize>> = (0..3).map(|round| turns(round, 3).collect()).collect();
    assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
}
