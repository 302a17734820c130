//! `meshmeter load --profile`: rates over a day, or over any other time, as stages.

use crate::cli::{ScheduleArgs, parse_stage_rate};
use crate::commands::run::files::read_text;
use crate::failure::Failure;
use experiment::definition::MAX_RUN_DURATION;
use load::{MAX_RATE, RateStage};
use results::units::parse_duration;
use std::path::Path;
use std::time::Duration;

/// Maximum number of lines with a rate.
const MAX_POINTS: usize = 100_000;
const DAY: Duration = Duration::from_hours(24);

/// A line of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    at: Duration,
    rate: f64,
}

/// Rates over time, in order.
#[derive(Debug, PartialEq)]
struct Profile {
    points: Vec<Point>,
    /// Times are those of a day, after which it begins again.
    is_of_day: bool,
}

/// The stages of a profile, in the length of the window.
pub fn stages(args: &ScheduleArgs, path: &Path) -> Result<Vec<RateStage>, Failure> {
    let about = format!("the profile `{}`", path.display());
    let text = read_text(path).map_err(|error| Failure::usage(error.to_string()).about(&about))?;
    let profile = Profile::parse(&text).map_err(|error| {
        Failure::usage(error).about(&about).with_hint(
            "each line is a time and a rate, such as `08:30,500`: a time of day, a duration from the beginning (90m), or seconds",
        )
    })?;
    let stages = profile.stages(args.profile_steps, args.profile_scale.unwrap_or(1.0), args.duration);
    let whole: Duration = stages.iter().map(|stage| stage.duration).sum();
    if whole > MAX_RUN_DURATION {
        return Err(Failure::usage("it takes longer than a run, at most 24h")
            .about(&about)
            .with_hint("--duration 10m compresses it into ten minutes"));
    }
    if stages.iter().any(|stage| stage.start_rate.max(stage.end_rate) > MAX_RATE) {
        return Err(Failure::usage(format!("a rate is above {MAX_RATE}/s")).about(&about));
    }
    Ok(stages)
}

impl Profile {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let mut points: Vec<Point> = Vec::new();
        let mut is_of_day = None;
        let mut is_head = true;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // Names of the columns.
            let is_text = line.starts_with(|first: char| first.is_alphabetic() || first == '"');
            if std::mem::take(&mut is_head) && is_text {
                continue;
            }
            let about = |error: &str| format!("line {number}: {error}");
            let (time, rate) = line.split_once(',').ok_or_else(|| about("there is no comma"))?;
            let (at, of_day) = parse_time(time.trim()).ok_or_else(|| about("the time is not one"))?;
            if *is_of_day.get_or_insert(of_day) != of_day {
                return Err(about("times of day and times from the beginning are in one file"));
            }
            if points.last().is_some_and(|last| last.at >= at) {
                return Err(about("the time is not after the one before"));
            }
            if points.len() == MAX_POINTS {
                return Err(about("there are more than 100000 lines"));
            }
            points.push(Point { at, rate: parse_stage_rate(rate.trim()).map_err(|error| about(&error))? });
        }
        let is_of_day = is_of_day.unwrap_or_default();
        match points.len() {
            0 => Err("there is no line with a time and a rate".to_owned()),
            1 if !is_of_day => Err("one line has no length".to_owned()),
            _ => Ok(Self { points, is_of_day }),
        }
    }

    /// Straight lines from one rate to the next, or steps: each rate until the next. `length`: what it is compressed into.
    fn stages(&self, has_steps: bool, scale: f64, length: Option<Duration>) -> Vec<RateStage> {
        let mut points = self.points.clone();
        let (first, last) = (points[0], points[points.len() - 1]);
        if self.is_of_day && last.at < first.at + DAY {
            points.push(Point { at: first.at + DAY, rate: first.rate });
        } else if has_steps && !self.is_of_day {
            // The last rate lasts as long as the one before it.
            let before = points[points.len() - 2].at;
            points.push(Point { at: last.at + (last.at - before), rate: last.rate });
        }
        let whole = points[points.len() - 1].at - first.at;
        let place = |at: Duration| {
            let since_first = at - first.at;
            let part = since_first.as_secs_f64() / whole.as_secs_f64();
            length.map_or(since_first, |length| {
                Duration::from_nanos((length.as_nanos() as f64 * part).round() as u64)
            })
        };
        let stage = |two: &[Point]| {
            let [from, to] = [0, 1].map(|index| two[index].rate * scale);
            RateStage::ramp(from, if has_steps { from } else { to }, place(two[1].at) - place(two[0].at))
        };
        points.windows(2).map(stage).collect()
    }
}

/// A time of day (`08:30`, `08:30:15`), a duration or seconds; true for the first.
fn parse_time(text: &str) -> Option<(Duration, bool)> {
    if text.contains(':') {
        let parts = text.split(':').map(|part| part.parse::<u64>().ok().filter(|_| part.len() <= 2));
        let (hours, minutes, seconds) = match parts.collect::<Option<Vec<_>>>()?[..] {
            [hours, minutes] => (hours, minutes, 0),
            [hours, minutes, seconds] => (hours, minutes, seconds),
            _ => return None,
        };
        let at = Duration::from_secs(hours * 3600 + minutes * 60 + seconds);
        return (minutes < 60 && seconds < 60 && at <= DAY).then_some((at, true));
    }
    let seconds = || Duration::try_from_secs_f64(text.parse().ok()?).ok();
    Some((parse_duration(text).ok().or_else(seconds)?, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn stages(text: &str, has_steps: bool, length: Option<Duration>) -> Vec<(f64, f64, f64)> {
        let stages = Profile::parse(text).unwrap().stages(has_steps, 1.0, length);
        stages.iter().map(|stage| (stage.start_rate, stage.end_rate, stage.duration.as_secs_f64())).collect()
    }

    #[test]
    fn day_is_compressed_and_ends_as_it_begins() {
        let day = "\u{feff}time,rate\n# night\n00:00,100\n06:00, 100\n12:00:00,1k\n18:00,0\n";
        let minutes = |minutes: u64| Some(Duration::from_mins(minutes));
        assert_eq!(
            stages(day, false, minutes(4)),
            [(100.0, 100.0, 60.0), (100.0, 1000.0, 60.0), (1000.0, 0.0, 60.0), (0.0, 100.0, 60.0)]
        );
        assert_eq!(
            stages(day, true, minutes(2)),
            [(100.0, 100.0, 30.0), (100.0, 100.0, 30.0), (1000.0, 1000.0, 30.0), (0.0, 0.0, 30.0)]
        );
        // From six o'clock to six o'clock.
        assert_eq!(stages("06:00,1\n18:00,3\n", false, None), [(1.0, 3.0, 43_200.0), (3.0, 1.0, 43_200.0)]);
        assert_eq!(stages("00:00,1\n24:00,3\n", false, None), [(1.0, 3.0, 86_400.0)]);
        assert_eq!(stages("08:00,7", true, Some(SECOND)), [(7.0, 7.0, 1.0)]);
    }

    #[test]
    fn times_from_the_beginning_are_durations_or_seconds() {
        let text = "0,10\n1m,20\n90,30\n";
        assert_eq!(stages(text, false, None), [(10.0, 20.0, 60.0), (20.0, 30.0, 30.0)]);
        assert_eq!(stages(text, true, None), [(10.0, 10.0, 60.0), (20.0, 20.0, 30.0), (30.0, 30.0, 30.0)]);
        let stages = Profile::parse(text).unwrap().stages(false, 0.5, Some(3 * SECOND));
        assert_eq!(stages[0], RateStage::ramp(5.0, 10.0, 2 * SECOND));
        assert_eq!(stages.iter().map(|stage| stage.duration).sum::<Duration>(), 3 * SECOND);
    }

    #[test]
    fn faults_are_named_with_their_lines() {
        for (text, expected) in [
            ("", "no line with a time"),
            ("time,rate\n", "no line with a time"),
            ("0,1", "one line has no length"),
            ("0,1\n5\n", "line 2: there is no comma"),
            ("0,1\nfive,2\n", "line 2: the time is not one"),
            ("0,1\n-5,2\n", "line 2: the time is not one"),
            ("0,1\nNaN,2\n", "line 2: the time is not one"),
            ("0,1\n5,x\n", "line 2: `x` is not a rate"),
            ("0,1\n5,-1\n", "line 2: `-1` is not a rate"),
            ("\n5,1\n5,2\n", "line 3: the time is not after"),
            ("08:00,1\n07:59,2\n", "line 2: the time is not after"),
            ("08:00,1\n90m,2\n", "line 2: times of day and"),
            ("08:60,1\n", "line 1: the time is not one"),
            ("24:01,1\n", "line 1: the time is not one"),
            ("1:2:3:4,1\n", "line 1: the time is not one"),
        ] {
            let error = Profile::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
