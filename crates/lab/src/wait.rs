//! Waiting on state, always bounded.

use experiment::environment::EnvironmentError;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the state: short enough to cost no noticeable time in a set-up of many steps, long enough
/// not to load the machine.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A look that takes longer than this burdens what is looked at.
const LONG_LOOK: Duration = Duration::from_millis(50);

/// However long a look takes, a signal is answered soon.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

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

/// What a look at something that takes long showed.
#[derive(Debug)]
pub enum Look<T, P> {
    /// It is so.
    Done(T),
    /// Not yet; how far it is.
    At(P),
}

/// Waits until `look` finds it done, however long that takes while it gets on: only that a look shows the same for
/// `at_most` this long ends the wait. Looks that take long themselves are spaced, so that half the time goes to what is
/// looked at.
///
/// # Errors
/// The error of `look`, or one that names `what` was awaited and for how long nothing changed.
pub fn wait_while_it_gets_on<T, P: PartialEq>(
    what: &str,
    at_most: Duration,
    mut look: impl FnMut() -> Result<Look<T, P>, EnvironmentError>,
) -> Result<T, EnvironmentError> {
    let (mut last, mut changed_at) = (None, Instant::now());
    loop {
        let began = Instant::now();
        match look()? {
            Look::Done(value) => return Ok(value),
            Look::At(place) if last.as_ref() != Some(&place) => {
                (last, changed_at) = (Some(place), Instant::now());
            }
            Look::At(_) if changed_at.elapsed() >= at_most => {
                let waited = format!("still not so, and nothing new for {:.1} s", at_most.as_secs_f64());
                return Err(EnvironmentError::new(format!("wait until {what}"), waited));
            }
            Look::At(_) => {}
        }
        let took = began.elapsed();
        thread::sleep(if took > LONG_LOOK { took.min(LONGEST_SLEEP) } else { LOOK_EVERY });
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
    fn what_gets_on_is_waited_for_and_what_stands_still_is_not() {
        let limit = Duration::from_millis(20);
        let begun = Instant::now();
        let mut looks = 0;
        let value = wait_while_it_gets_on("the hundredth look", limit, || {
            looks += 1;
            Ok::<_, EnvironmentError>(if looks == 100 { Look::Done(looks) } else { Look::At(looks) })
        });
        assert_eq!(value.ok(), Some(100));
        assert!(begun.elapsed() > limit, "each look is a step, however many they are");
        let still = wait_while_it_gets_on::<(), _>("pigs fly", limit, || Ok(Look::At("on the ground")));
        let cause = still.expect_err("they never do").source().map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("still not so, and nothing new for 0.0 s"));
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
