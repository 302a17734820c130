//! Short commands with a timeout: no program that the lab queries may hang it.

use super::supervised_command::Running;
use crate::process_end::ends_within;
use crate::process_table;
use confinement::confine_question;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Bytes kept per stream; the rest is read and dropped.
const KEPT_BYTES: u64 = 256 * 1024;

/// Time for the streams to close after the command has ended. A process that it left behind may hold them for
/// good; a process that another thread is just starting holds them until it has started.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum idle time of a command that only prints, that is neither running nor waiting for a CPU or a disk.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a command and collects its output. Kills it after `limit`.
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    output(command, limit, limit)
}

/// Asks a program that comes from a registry or an image: it runs confined ([`confine_question`]), with
/// these arguments and environment only. Otherwise like [`answer_within`]. It is not run on a machine that
/// refuses to confine it.
pub fn confined_answer_within(
    program: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
    limit: Duration,
) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment.iter().copied());
    let confinement = confine_question(&mut command, vec![program.to_owned()])?;
    answer_within(&mut command, limit).map_err(|error| confinement.explain(error))
}

/// Like [`output_within`], for a command that never waits: it is also killed after 3 s of idleness.
pub fn answer_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    output(command, limit, IDLE_TIMEOUT)
}

fn output(command: &mut Command, limit: Duration, idle_limit: Duration) -> io::Result<Output> {
    let mut running = Running::start(command)?;
    let stdout = running.child.stdout.take().map(collect);
    let stderr = running.child.stderr.take().map(collect);
    watch(&running, limit, idle_limit)?;
    let status = running.child.wait()?;
    Ok(Output { status, stdout: collected(stdout)?, stderr: collected(stderr)? })
}

fn watch(running: &Running, limit: Duration, idle_limit: Duration) -> io::Result<()> {
    let late = |what: String| Err(io::Error::new(io::ErrorKind::TimedOut, what));
    let began_at = Instant::now();
    let mut active_at = began_at;
    loop {
        if ends_within(&running.end, POLL_INTERVAL.min(limit)) {
            return Ok(());
        }
        if began_at.elapsed() >= limit {
            return late(format!("it had not ended after {} s", limit.as_secs()));
        }
        if process_table::is_active(Path::new("/proc"), running.child.id().cast_signed()) {
            active_at = Instant::now();
        } else if active_at.elapsed() >= idle_limit {
            return late(format!(
                "it hangs: it had not ended, and did nothing for {} s",
                idle_limit.as_secs()
            ));
        }
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        // A stream that breaks is as good as one that ends: the exit status decides.
        let _ = stream.by_ref().take(KEPT_BYTES).read_to_end(&mut kept);
        let _ = io::copy(&mut stream, &mut io::sink());
        // After the timeout there is no receiver any more.
        let _ = sender.send(kept);
    });
    receiver
}

fn collected(stream: Option<Receiver<Vec<u8>>>) -> io::Result<Vec<u8>> {
    let unended = |_| io::Error::new(io::ErrorKind::TimedOut, "it has ended, and its output has not");
    stream.map_or(Ok(Vec::new()), |stream| stream.recv_timeout(STREAM_TIMEOUT).map_err(unended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_has_both_streams_and_status() {
        let output = output_within(
            Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]),
            Duration::from_secs(20),
        )
        .unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
    }

    #[test]
    fn hanging_command_is_killed_at_limit() {
        let error = output_within(Command::new("sleep").arg("600"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn idle_command_is_killed_before_limit_and_busy_one_is_not() {
        let limit = Duration::from_secs(600);
        let idle = |script: &str| output(Command::new("sh").args(["-c", script]), limit, POLL_INTERVAL * 4);
        let error = idle("sleep 600; exit 1").unwrap_err();
        assert!(error.to_string().starts_with("it hangs: "), "{error}");
        // Its child works for longer than the idle timeout.
        let working = "(n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done); echo said";
        assert_eq!(idle(working).unwrap().stdout, b"said\n");
    }
}
