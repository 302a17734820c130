//! Short commands with a bound on their time: nothing that the lab asks may hang it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How much of each stream is kept, bytes; what comes after is read and dropped.
const KEPT_BYTES: u64 = 256 * 1024;

/// How long to wait, after the command's end, for the end of its streams: a process that it left behind may hold them.
const STREAM_LIMIT: Duration = Duration::from_secs(1);

/// Runs a command to its end and collects what it prints.
///
/// # Errors
/// Where it cannot be started, or has not ended within `limit` (it is killed then).
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    let status = wait_within(&mut child, limit)?;
    Ok(Output { status, stdout: collected(stdout), stderr: collected(stderr) })
}

/// Waits for the end of a child, or kills it at the limit.
fn wait_within(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let ended = pidfd_open(pid, PidfdFlags::empty()).and_then(|descriptor| {
        let limit = Timespec::try_from(limit).map_err(|_| rustix::io::Errno::INVAL)?;
        poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit))
    });
    if matches!(ended, Ok(1..)) {
        return child.wait();
    }
    child.kill()?;
    child.wait()?;
    ended.map_err(|error| match error {
        // By a signal to us, which is for whoever asked for the command.
        rustix::io::Errno::INTR => io::Error::new(io::ErrorKind::Interrupted, "it was interrupted"),
        error => error.into(),
    })?;
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("it had not ended after {} s", limit.as_secs())))
}

fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        // A stream that breaks off is as good as one that ends: the exit status decides.
        let _ = stream.by_ref().take(KEPT_BYTES).read_to_end(&mut kept);
        let _ = io::copy(&mut stream, &mut io::sink());
        // Nobody listens any more where the limit has passed.
        let _ = sender.send(kept);
    });
    receiver
}

fn collected(stream: Option<Receiver<Vec<u8>>>) -> Vec<u8> {
    stream.and_then(|stream| stream.recv_timeout(STREAM_LIMIT).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collects_both_streams_and_the_status() {
        let output = output_within(
            Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]),
            Duration::from_secs(20),
        )
        .unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
    }

    #[test]
    fn a_command_that_hangs_is_killed_at_the_limit() {
        let error = output_within(Command::new("sleep").arg("600"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
