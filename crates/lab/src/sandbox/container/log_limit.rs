//! Limits the size of containers' logs: a proxy with access logs writes gigabytes within an hour of load, and a full disk
//! ends the run. A log beyond the limit is cut to its end, as logrotate's `copytruncate` does.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum size of a log between two checks.
const MAX_LOG_BYTES: u64 = 1 << 30;
/// Size of the end that a cut log keeps.
const KEPT_BYTES: u64 = 1 << 20;
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Checks logs on a thread that ends with it.
#[derive(Debug)]
pub struct LogLimiter {
    logs: Arc<Mutex<BTreeSet<PathBuf>>>,
    _stop: Sender<()>,
}

impl LogLimiter {
    pub fn start() -> io::Result<Self> {
        Self::with_limit(MAX_LOG_BYTES, KEPT_BYTES, CHECK_INTERVAL)
    }

    fn with_limit(max_bytes: u64, kept_bytes: u64, interval: Duration) -> io::Result<Self> {
        let logs = Arc::<Mutex<BTreeSet<PathBuf>>>::default();
        let (stop, stopped) = channel();
        let watched = Arc::clone(&logs);
        let watch = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let logs = lock(&watched).clone();
                // A log that cannot be cut is checked again.
                logs.iter().for_each(|log| drop(cut(log, max_bytes, kept_bytes)));
            }
        };
        thread::Builder::new().name("logs".to_owned()).spawn(watch)?;
        Ok(Self { logs, _stop: stop })
    }

    pub fn add(&self, log: &Path) {
        lock(&self.logs).insert(log.to_owned());
    }

    pub fn remove(&self, log: &Path) {
        lock(&self.logs).remove(log);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cuts a log that is longer than `max_bytes` to its last `kept_bytes`. Its writers append, so they go on behind these.
fn cut(log: &Path, max_bytes: u64, kept_bytes: u64) -> io::Result<()> {
    let length = log.metadata()?.len();
    if length <= max_bytes {
        return Ok(());
    }
    let mut file = OpenOptions::new().read(true).append(true).open(log)?;
    file.seek(SeekFrom::Start(length - kept_bytes))?;
    let mut end = Vec::new();
    (&mut file).take(kept_bytes).read_to_end(&mut end)?;
    let line_begin = end.iter().position(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    file.set_len(0)?;
    writeln!(
        file,
        "[meshmeter: {} bytes before this line were removed: the log had become too long]",
        length - kept_bytes
    )?;
    file.write_all(&end[line_begin..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Instant;

    #[test]
    fn long_log_keeps_its_end_and_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("proxy.log");
        let mut writer = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        (0..1000).for_each(|number| writeln!(writer, "line {number}").unwrap());
        let before = fs::read_to_string(&log).unwrap();
        cut(&log, before.len() as u64, 100).unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap(), before, "at the limit it is left alone");
        cut(&log, before.len() as u64 - 1, 100).unwrap();
        writeln!(writer, "line 1000").unwrap();
        let lines = fs::read_to_string(&log).unwrap();
        let mut lines = lines.lines();
        assert!(lines.next().unwrap().starts_with("[meshmeter: "));
        let numbers: Vec<&str> = lines.map(|line| line.strip_prefix("line ").unwrap()).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[numbers.len() - 1]), (12, "989", "1000"));
        fs::remove_file(&log).unwrap();
        assert!(cut(&log, 1, 1).is_err());
    }

    #[test]
    fn log_of_a_container_is_cut_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("proxy.log");
        let mut writer = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let limiter = LogLimiter::with_limit(10_000, 1000, Duration::from_millis(1)).unwrap();
        limiter.add(&log);
        let give_up = Instant::now() + Duration::from_secs(60);
        for number in 0.. {
            writeln!(writer, "line {number}").unwrap();
            // A line written meanwhile may stand before the one that says what was removed.
            if number >= 5000 && fs::read_to_string(&log).unwrap().contains("[meshmeter: ") {
                break;
            }
            assert!(Instant::now() < give_up, "{} bytes", log.metadata().unwrap().len());
        }
    }
}
