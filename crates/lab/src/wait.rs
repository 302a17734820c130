//! Waiting on state, always bounded.

use experiment::environment::EnvironmentError;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the state: short enough to cost no noticeable time in a set-up of many steps, long enough
/// not to load the machine.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until `check` gives a value, for `at_most` this long.
///
/// `check` returns `Ok(None)` for "not yet", and an error where waiting longer is of no use.
///
/// # Errors
/// The error of `check`, or one that names `what` was awaited and for how long.
pub fn wait_for<T>(
    what: &str,
    at_most: Duration,
    mut check: impl FnMut() -> Result<Option<T>, EnvironmentError>,
) -> Result<T, EnvironmentError> {
    let give_up_at = Instant::now() + at_most;
    loop {
        if let Some(value) = check()? {
            return Ok(value);
        }
        if Instant::now() >= give_up_at {
            let waited = format!("still not so after {:.1} s", at_most.as_secs_f64());
            return Err(EnvironmentError::new(format!("wait until {what}"), waited));
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_value_ends_the_wait() {
        let mut looks = 0;
        let value = wait_for("the third look", Duration::from_secs(5), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(value.ok(), Some(3));
    }

    #[test]
    fn the_error_names_what_was_awaited() {
        let error =
            wait_for::<()>("pigs fly", Duration::from_millis(20), || Ok(None)).expect_err("they never do");
        assert_eq!(error.to_string(), "wait until pigs fly");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("still not so after 0.0 s"));
    }

    #[test]
    fn an_error_ends_the_wait_at_once() {
        let before = Instant::now();
        let result = wait_for::<()>("nothing", Duration::from_secs(60), || {
            Err(EnvironmentError::new("look", "blind"))
        });
        assert!(result.is_err());
        assert!(before.elapsed() < Duration::from_secs(10));
    }
}
