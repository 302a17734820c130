//! CPU that live metrics take per snapshot on the measuring thread and on the sending thread, which is about
//! what they take per second of a load.

use export::{
    Destination, Exporter, HistogramForm, LoadFigures, ProcessFigures, Protocol, SecondFigures, Settings,
};
use results::LatencyHistogram;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Requests per second of the load.
const REQUESTS: u64 = 20_000;
/// Response of a 2.0 receiver.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nX-Prometheus-Remote-Write-Samples-Written: 100000\r\n\
    X-Prometheus-Remote-Write-Histograms-Written: 100000\r\nContent-Length: 0\r\n\r\n";

#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn main() {
    // When run as a test, it does very little.
    let snapshots = if std::env::args().any(|argument| argument == "--bench") { 300 } else { 3 };
    println!("{REQUESTS} requests per snapshot, per snapshot:");
    for protocol in [
        Protocol::RemoteWrite1(HistogramForm::Classic),
        Protocol::RemoteWrite2(HistogramForm::Native),
        Protocol::Otlp,
    ] {
        measure(protocol, snapshots);
    }
}

#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn measure(protocol: Protocol, snapshots: u32) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (received, sizes) = channel();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| receive(&stream, &received)));
    let destination = Destination::new(&url, protocol, Default::default()).expect("a URL");
    let settings = Settings { destinations: vec![destination], ..Settings::default() };
    let mut exporter =
        Exporter::start(settings, |text| panic!("the receiver takes everything: {text}")).expect("a thread");
    let mut figures = LoadFigures::starting_now();
    let (mut publishing, mut bytes) = (Duration::ZERO, 0);
    for number in 0..snapshots {
        let times = second(u64::from(number));
        let begun = Instant::now();
        figures.add(&SecondFigures {
            sent: REQUESTS,
            completed: REQUESTS,
            statuses: vec![("200".to_owned(), REQUESTS)],
            response_time: Some(&times),
            service_time: Some(&times),
            schedule_lag: Some(&times),
            ..SecondFigures::default()
        });
        exporter.publish(figures.families(ProcessFigures::default()));
        publishing += begun.elapsed();
        bytes += next(&sizes);
    }
    let sending = cpu_of_newest("export");
    let records = exporter.finish();
    assert_eq!(records[0].dropped(), 0, "{records:?}");
    println!(
        "{:<15} {:>6.0} µs to publish, {:>6.0} µs of CPU to send, {:>6} bytes",
        protocol.name(),
        publishing.as_secs_f64() * 1e6 / f64::from(snapshots),
        sending.as_secs_f64() * 1e6 / f64::from(snapshots),
        bytes / snapshots as usize
    );
}

/// Response times of one second: most near 300 µs, with a tail up to 40 ms.
fn second(seed: u64) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    for request in 0..REQUESTS {
        // A multiplicative hash spreads requests over the distribution.
        let part = (request + seed * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let share = part as f64 / f64::from(1 << 24);
        let us = 150.0 + 150.0 * share + 20.0 / (1.0 - share).max(5e-4);
        histogram.record(Duration::from_secs_f64(us / 1e6));
    }
    histogram
}

fn next(sizes: &Receiver<usize>) -> usize {
    sizes.recv_timeout(Duration::from_secs(10)).expect("each snapshot is sent")
}

/// CPU time of the newest thread with this name, as reported by the scheduler; an older one may still be
/// exiting.
fn cpu_of_newest(name: &str) -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("the threads of this process").flatten();
    let named = tasks
        .map(|task| task.path())
        .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|known| known.trim_end() == name));
    let number = |task: &Path| task.file_name()?.to_str()?.parse::<u32>().ok();
    let Some(task) = named.max_by_key(|task| number(task)) else { return Duration::ZERO };
    let schedstat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    Duration::from_nanos(schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Answers every request of a connection, and sends the sizes of their bodies to `sizes`.
fn receive(stream: &TcpStream, sizes: &Sender<usize>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            if let Some(text) = line.to_lowercase().strip_prefix("content-length: ") {
                length = text.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        let read = reader.read_exact(&mut vec![0; length]);
        // The receiver may be gone before the last request, which only ends series.
        let _ = sizes.send(length);
        if read.is_err() || (&mut &*stream).write_all(RESPONSE).is_err() {
            return;
        }
    }
}
