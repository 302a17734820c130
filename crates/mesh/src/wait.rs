//! Bounded waits for a state.

use crate::Result;
use experiment::environment::EnvironmentError;
use std::thread;
use std::time::{Duration, Instant};

/// Short enough to add no noticeable time to a bring-up of many steps, long enough not to load the machine.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A check that takes longer than this loads the component being checked.
const LONG_CHECK: Duration = Duration::from_millis(50);
/// Bounds the delay of signal handling, however long a check takes.
const MAX_SLEEP: Duration = Duration::from_millis(500);

/// Waits up to `timeout` until `check` returns a value. `Ok(None)` means "not yet"; an error ends the wait.
pub fn wait_for<T>(what: &str, timeout: Duration, mut check: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let give_up_at = Instant::now() + timeout;
    loop {
        if let Some(value) = check()? {
            return Ok(value);
        }
        if Instant::now() >= give_up_at {
            let waited = format!("timed out after {:.1} s", timeout.as_secs_f64());
            return Err(EnvironmentError::new(format!("wait until {what}"), waited));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[derive(Debug)]
pub enum Progress<T, P> {
    Done(T),
    At(P),
}

/// Waits until `check` returns [`Progress::Done`]. Times out after `timeout` without progress. Slow checks
/// are spaced out, so that the checked component has half the time to itself.
pub fn wait_with_progress<T, P: PartialEq>(
    what: &str,
    timeout: Duration,
    mut check: impl FnMut() -> Result<Progress<T, P>>,
) -> Result<T> {
    let (mut last, mut changed_at) = (None, Instant::now());
    loop {
        let began = Instant::now();
        match check()? {
            Progress::Done(value) => return Ok(value),
            Progress::At(place) if last.as_ref() != Some(&place) => {
                (last, changed_at) = (Some(place), Instant::now());
            }
            Progress::At(_) if changed_at.elapsed() >= timeout => {
                let waited = format!("no progress for {:.1} s", timeout.as_secs_f64());
                return Err(EnvironmentError::new(format!("wait until {what}"), waited));
            }
            Progress::At(_) => {}
        }
        let took = began.elapsed();
        thread::sleep(if took > LONG_CHECK { took.min(MAX_SLEEP) } else { POLL_INTERVAL });
    }
}

/// Adds what the last check saw to the error, unless it is empty or the error has a better hint.
pub fn with_last_state(error: EnvironmentError, last: &str) -> EnvironmentError {
    if last.is_empty() || error.hint.is_some() {
        return error;
    }
    error.with_hint(format!("the last observation: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn wait_for_value_returns() {
        let mut looks = 0;
        let value = wait_for("the third look", Duration::from_secs(5), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(value.ok(), Some(3));
    }

    #[test]
    fn wait_for_timeout_error_names_awaited_state() {
        let error =
            wait_for::<()>("pigs fly", Duration::from_millis(20), || Ok(None)).expect_err("they never do");
        assert_eq!(error.to_string(), "wait until pigs fly");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("timed out after 0.0 s"));
    }

    #[test]
    fn wait_with_progress_times_out_only_without_progress() {
        let limit = Duration::from_millis(20);
        let begun = Instant::now();
        let mut looks = 0;
        let value = wait_with_progress("the hundredth look", limit, || {
            looks += 1;
            Ok::<_, EnvironmentError>(if looks == 100 { Progress::Done(looks) } else { Progress::At(looks) })
        });
        assert_eq!(value.ok(), Some(100));
        assert!(begun.elapsed() > limit, "each check shows progress");
        let still = wait_with_progress::<(), _>("pigs fly", limit, || Ok(Progress::At("on the ground")));
        let cause = still.expect_err("they never do").source().map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("no progress for 0.0 s"));
    }

    #[test]
    fn wait_for_error_returns_immediately() {
        let before = Instant::now();
        let result = wait_for::<()>("nothing", Duration::from_secs(60), || {
            Err(EnvironmentError::new("look", "blind"))
        });
        assert!(result.is_err());
        assert!(before.elapsed() < Duration::from_secs(10));
    }
}
