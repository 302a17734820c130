//! Programs that this test runs in its pods: a minimal service and a minimal generator that speak just enough
//! HTTP/1.1.

use rustix::time::{ClockId, clock_gettime};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Nothing in these tests takes longer.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// `serve --listen=ADDRESS:PORT --size=BYTES …`: answers every request with a body of that size.
pub fn serve(arguments: &[String]) -> ExitCode {
    let option = |name: &str| {
        arguments
            .iter()
            .find_map(|argument| argument.strip_prefix(name))
            .expect("the arrangement gives every option")
    };
    let size: usize = option("--size=").parse().expect("a size");
    let listener = TcpListener::bind(option("--listen=")).expect("the port is free in a new pod");
    for stream in listener.incoming() {
        let stream = stream.expect("connections can be accepted");
        // A client or proxy that goes away ends its connection, which is not worth reporting.
        std::thread::spawn(move || answer_all(&stream, size));
    }
    ExitCode::SUCCESS
}

fn answer_all(stream: &TcpStream, size: usize) -> io::Result<()> {
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n{}", "x".repeat(size));
    let mut requests = BufReader::new(stream);
    while read_head(&mut requests)?.is_some() {
        (&*stream).write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// The lines of a head up to the empty line; `None` at the end of the connection.
fn read_head(stream: &mut impl BufRead) -> io::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            return Ok(Some(lines));
        }
        lines.push(line);
    }
}

/// `load URL REQUESTS CONNECTIONS GO`: sends this number of requests, one after the other on each connection,
/// once the file `GO` exists. It reports on standard error when its window opens and closes. The exit code is
/// the number of requests that were not answered with 200, at most 100.
pub fn load(arguments: &[String]) -> ExitCode {
    let authority = arguments[2].trim_start_matches("http://").trim_end_matches('/').to_owned();
    let requests: usize = arguments[3].parse().expect("a number of requests");
    let connections: usize = arguments[4].parse().expect("a number of connections");
    event("window-opened");
    let go = Path::new(&arguments[5]);
    lab::wait_for("the test says go", TEST_TIMEOUT, || Ok(go.exists().then_some(()))).expect("it does");
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let authority = authority.clone();
            std::thread::spawn(move || send(&authority, requests / connections))
        })
        .collect();
    let answered: usize = workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum();
    event("window-closed");
    ExitCode::from(u8::try_from((requests - answered).min(100)).expect("at most 100"))
}

fn event(name: &str) {
    // The test reads it. If the test has gone, there is no reader.
    let _ = io::stderr().write_all(format!("{name}\n").as_bytes());
}

/// One HTTP/1.1 request.
pub fn request(authority: &str) -> String {
    format!("GET / HTTP/1.1\r\nhost: {authority}\r\n\r\n")
}

/// Sends requests on one connection until all are answered or one is not.
fn send(authority: &str, requests: usize) -> usize {
    let mut answered = 0;
    let _ = TcpStream::connect(authority).and_then(|stream| {
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        let mut answers = BufReader::new(&stream);
        for _ in 0..requests {
            (&stream).write_all(request(authority).as_bytes())?;
            let head = read_head(&mut answers)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
            let length =
                length.and_then(|length| length.trim().parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
            io::copy(&mut answers.by_ref().take(length), &mut io::sink())?;
            if !head[0].contains(" 200 ") {
                return Err(io::ErrorKind::InvalidData.into());
            }
            answered += 1;
        }
        Ok(())
    });
    answered
}

/// `burn MILLISECONDS GO`: reports on standard output that it is ready, uses this much CPU time once the file
/// `GO` exists, reports that too, and then stays until it is killed.
pub fn burn(arguments: &[String]) -> ExitCode {
    let cpu = Duration::from_millis(arguments[2].parse().expect("milliseconds"));
    let used = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("CPU time is positive");
    say("ready");
    let go = Path::new(&arguments[3]);
    lab::wait_for("the test says go", TEST_TIMEOUT, || Ok(go.exists().then_some(()))).expect("it does");
    let end = used() + cpu;
    while used() < end {
        // Reading this clock is a system call, and the loop should mostly burn CPU in user mode.
        (0..10_000).for_each(|_| std::hint::spin_loop());
    }
    say("burnt");
    loop {
        std::thread::park_timeout(TEST_TIMEOUT);
    }
}

fn say(word: &str) {
    let mut output = io::stdout();
    output
        .write_all(format!("{word}\n").as_bytes())
        .and_then(|()| output.flush())
        .expect("standard output is a log file");
}
