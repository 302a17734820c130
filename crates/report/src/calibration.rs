//! Calibrations as text: what a machine resolves, and whether that is enough for a run.

use experiment::Resolve;
use results::{CalibratedDifference, CalibratedFigure, CalibratedSpread, Calibration, ModeCalibration, Role};
use statistics::calibration::{repeats_for, resolvable};
use std::time::Duration;

/// The run whose resolution is stated first.
const STATED_REPEATS: usize = 5;
const STATED_WINDOW_S: f64 = 10.0;
/// Difference for which the number of repeats is stated, in microseconds.
const STATED_DIFFERENCE_US: f64 = 10.0;

/// Sentences about a calibration.
#[must_use]
pub fn sentences(calibration: &Calibration) -> Vec<String> {
    let modes = || calibration.modes.iter().filter(|mode| mode.repeats > 0);
    let mut sentences: Vec<String> = modes().filter_map(|mode| resolution(calibration, mode)).collect();
    sentences.extend(against_itself(calibration));
    sentences.extend(modes().filter_map(known_effects));
    if let Some(fewest) = modes().map(|mode| mode.repeats).min().filter(|n| *n < calibration.repeats_planned)
    {
        sentences.push(format!(
            "The calibration was cut short or disturbed: {fewest} of {} repeats are complete.",
            calibration.repeats_planned
        ));
    }
    sentences
}

fn resolution(calibration: &Calibration, mode: &ModeCalibration) -> Option<String> {
    let shown = |figure| {
        let spread = spread_of(mode, figure)?;
        Some(resolvable(spread, calibration.window_s, STATED_REPEATS, STATED_WINDOW_S))
    };
    let median = spread_of(mode, CalibratedFigure::P50Us)?;
    let more = match repeats_for(median, calibration.window_s, STATED_DIFFERENCE_US, STATED_WINDOW_S) {
        Some(repeats) => format!(
            "{STATED_DIFFERENCE_US:.0} µs in the median takes {repeats} repeats, {} of load for two modes",
            load_time(repeats)
        ),
        None => format!("{STATED_DIFFERENCE_US:.0} µs in the median is out of reach"),
    };
    Some(format!(
        "{}: differences of {} in the median and {} at p99 with {STATED_REPEATS} repeats of {STATED_WINDOW_S:.0} s; {more}.",
        mode.mode,
        time(shown(CalibratedFigure::P50Us)?),
        time(shown(CalibratedFigure::P99Us)?),
    ))
}

/// Total load time for two modes, such as `5 minutes`.
fn load_time(repeats: usize) -> String {
    let minutes = 2.0 * repeats as f64 * STATED_WINDOW_S / 60.0;
    match minutes {
        _ if minutes >= 90.0 => format!("{:.0} hours", minutes / 60.0),
        _ if minutes >= 1.5 => format!("{minutes:.0} minutes"),
        _ => "a minute".to_owned(),
    }
}

fn against_itself(calibration: &Calibration) -> Option<String> {
    let compared = || calibration.modes.iter().flat_map(|mode| &mode.same);
    let with_interval = compared().filter_map(|one| one.estimate).filter(|found| found.low.is_some());
    let (all, shown) = with_interval
        .fold((0, 0), |(all, shown), found| (all + 1, shown + usize::from(found.excludes_zero())));
    (all > 0).then(|| {
        format!(
            "The same mode against itself: {shown} of {all} comparisons show a difference, although there is none."
        )
    })
}

fn known_effects(mode: &ModeCalibration) -> Option<String> {
    let of_figure = |figure: CalibratedFigure| mode.known.iter().filter(move |known| known.figure == figure);
    let median: Vec<String> = of_figure(CalibratedFigure::P50Us)
        .filter_map(|known| Some(format!("{:.0} µs at {}", known.truth, found(known, 0)?)))
        .collect();
    let cpu = of_figure(CalibratedFigure::CpuCores).filter_map(|known| {
        let computing = match known.role {
            Some(Role::App) => "a service that computes for ",
            Some(Role::Proxy) => "proxies that compute for ",
            _ => "",
        };
        Some(format!("; {computing}{:.3} cores at {}", known.truth, found(known, 3)?))
    });
    (!median.is_empty()).then(|| {
        let (median, cpu): (String, String) = (median.join(", "), cpu.collect());
        format!("{}: a server slower by {median} in the median{cpu}.", mode.mode)
    })
}

/// Estimate and half-width, such as `101 ± 3`.
fn found(known: &CalibratedDifference, decimals: usize) -> Option<String> {
    let estimate = known.estimate?;
    let half = estimate.low.zip(estimate.high).map(|(low, high)| (high - low) / 2.0);
    let half = half.map(|half| format!(" ± {half:.decimals$}")).unwrap_or_default();
    Some(format!("{:.decimals$}{half}", estimate.estimate))
}

fn spread_of(mode: &ModeCalibration, figure: CalibratedFigure) -> Option<&CalibratedSpread> {
    mode.spreads.iter().find(|spread| spread.figure == figure)
}

fn time(us: f64) -> String {
    match us {
        _ if us >= 1000.0 => format!("{:.1} ms", us / 1000.0),
        _ if us >= 9.5 => format!("{us:.0} µs"),
        _ => format!("{us:.1} µs"),
    }
}

/// The smallest differences between two modes that a run with this many repeats and this window shows on its
/// machine.
#[must_use]
pub fn run_resolution(calibration: &Calibration, repeats: usize, window: Duration) -> Option<String> {
    let window_s = window.as_secs_f64();
    let worst = |figure| {
        let spreads = calibration
            .modes
            .iter()
            .filter(|mode| mode.repeats > 0)
            .filter_map(|mode| spread_of(mode, figure));
        let shown = spreads.map(|spread| resolvable(spread, calibration.window_s, repeats, window_s));
        shown.filter(|us| us.is_finite()).max_by(f64::total_cmp)
    };
    if repeats < 2 {
        return Some("no difference between modes: a single repeat has no interval".to_owned());
    }
    Some(format!(
        "differences between modes of {} in the median and {} at p99, with {repeats} repeats of {window_s} s",
        time(worst(CalibratedFigure::P50Us)?),
        time(worst(CalibratedFigure::P99Us)?),
    ))
}

/// What is said of the calibration before a run starts: what it resolves for this run, and a warning per difference that the run
/// asks for beyond that.
#[must_use]
pub fn before_run(
    resolve: &Resolve,
    repeats: usize,
    window: Duration,
    calibration: Option<&Calibration>,
) -> Vec<String> {
    let resolved = calibration.and_then(|calibration| run_resolution(calibration, repeats, window));
    let resolved = resolved.map(|text| format!("This run resolves {text}."));
    let warnings = shortfalls(resolve, repeats, window, calibration).into_iter();
    resolved.into_iter().chain(warnings.map(|shortfall| format!("warning: {shortfall}"))).collect()
}

/// What a run asks for beyond what this machine resolves; nothing where it asks for nothing.
fn shortfalls(
    resolve: &Resolve,
    repeats: usize,
    window: Duration,
    calibration: Option<&Calibration>,
) -> Vec<String> {
    let asked = [
        (CalibratedFigure::P50Us, "in the median", resolve.p50),
        (CalibratedFigure::P99Us, "at p99", resolve.p99),
    ];
    let asked = asked.into_iter().filter_map(|(figure, at, asked)| Some((figure, at, asked?)));
    let Some(calibration) = calibration else {
        let unknown = "it is not known whether this machine resolves the differences that the run requires: \
                       `meshmeter doctor --calibrate` measures it";
        return asked.take(1).map(|_| unknown.to_owned()).collect();
    };
    let shortfall = |(figure, at, asked): (CalibratedFigure, &str, Duration)| {
        let asked_us = asked.as_secs_f64() * 1e6;
        let window_s = window.as_secs_f64();
        let of_mode = |mode: &ModeCalibration| {
            let spread = *spread_of(mode, figure)?;
            Some((mode.mode, spread, resolvable(&spread, calibration.window_s, repeats, window_s)))
        };
        let resolved = calibration.modes.iter().filter_map(of_mode);
        let (mode, spread, resolved_us) = resolved.max_by(|one, other| one.2.total_cmp(&other.2))?;
        let enough = match repeats_for(&spread, calibration.window_s, asked_us, window_s) {
            Some(repeats) => format!("{repeats} repeats would be enough"),
            None => "more repeats do not help".to_owned(),
        };
        (resolved_us > asked_us).then(|| {
            format!(
                "the run requires differences of {} {at}; with {repeats} repeats of {window_s} s this machine resolves {} \
                 (mode {mode}, calibrated at {}): {enough}",
                time(asked_us),
                time(resolved_us),
                calibration.made_at
            )
        })
    };
    asked.filter_map(shortfall).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{CALIBRATION_SCHEMA, CalibratedMachine, Estimate, Mode, Pacing};

    fn calibration() -> Calibration {
        let spread = |figure, deviation| CalibratedSpread {
            figure,
            mean: 500.0,
            deviation,
            between_deployments: deviation / 2.0,
        };
        let estimate = |estimate: f64, half: f64| {
            Some(Estimate {
                estimate,
                low: Some(estimate - half),
                high: Some(estimate + half),
                n: 5,
                alone: None,
            })
        };
        let known = |figure, truth, found, half| CalibratedDifference {
            figure,
            role: None,
            truth,
            estimate: estimate(found, half),
        };
        let of_role = |role, known| CalibratedDifference { role: Some(role), ..known };
        Calibration {
            schema: CALIBRATION_SCHEMA.to_owned(),
            made_at: "2026-11-22T12:00:00Z".to_owned(),
            machine: CalibratedMachine::default(),
            rate: 1000.0,
            connections: 4,
            window_s: 1.0,
            pacing: Pacing::Economical,
            repeats_planned: 5,
            modes: vec![ModeCalibration {
                mode: Mode::Sidecar,
                repeats: 5,
                same: vec![
                    known(CalibratedFigure::P50Us, 0.0, 3.0, 9.0),
                    known(CalibratedFigure::P99Us, 0.0, 300.0, 90.0),
                ],
                known: vec![
                    known(CalibratedFigure::P50Us, 20.0, 22.4, 6.0),
                    known(CalibratedFigure::P50Us, 100.0, 98.0, 5.0),
                    of_role(Role::App, known(CalibratedFigure::CpuCores, 0.137, 0.138, 0.002)),
                    of_role(Role::Proxy, known(CalibratedFigure::CpuCores, 0.2, 0.203, 0.004)),
                ],
                spreads: vec![spread(CalibratedFigure::P50Us, 20.0), spread(CalibratedFigure::P99Us, 900.0)],
                resolution: Vec::new(),
            }],
        }
    }

    #[test]
    fn calibration_sentences_state_resolution_and_recovered_effects() {
        insta::assert_snapshot!(sentences(&calibration()).join("\n"), @r"
        sidecar: differences of 20 µs in the median and 917 µs at p99 with 5 repeats of 10 s; 10 µs in the median takes 14 repeats, 5 minutes of load for two modes.
        The same mode against itself: 1 of 2 comparisons show a difference, although there is none.
        sidecar: a server slower by 20 µs at 22 ± 6, 100 µs at 98 ± 5 in the median; a service that computes for 0.137 cores at 0.138 ± 0.002; proxies that compute for 0.200 cores at 0.203 ± 0.004.
        ");
        let cut_short = Calibration { repeats_planned: 9, ..calibration() };
        assert!(sentences(&cut_short).last().unwrap().contains("5 of 9 repeats"));
    }

    #[test]
    fn run_resolution_depends_on_repeats() {
        let said = |repeats| run_resolution(&calibration(), repeats, Duration::from_secs(10)).unwrap();
        insta::assert_snapshot!(said(5), @"differences between modes of 20 µs in the median and 917 µs at p99, with 5 repeats of 10 s");
        assert!(said(1).contains("a single repeat"));
        let none = Calibration { modes: Vec::new(), ..calibration() };
        assert_eq!(run_resolution(&none, 5, Duration::from_secs(10)), None);
        assert!(calibration().covers(&[Mode::None, Mode::Ambient]));
        assert!(none.covers(&[Mode::None]) && !none.covers(&[Mode::None, Mode::Gateway]));
    }

    #[test]
    fn run_beyond_resolution_has_shortfalls() {
        let window = Duration::from_secs(10);
        let fine = Resolve { p50: Some(Duration::from_micros(5)), p99: None };
        let coarse = Resolve { p50: Some(Duration::from_millis(1)), p99: None };
        let calibration = calibration();
        let said = shortfalls(&fine, 5, window, Some(&calibration));
        assert!(said.len() == 1 && said[0].contains("differences of 5.0 µs in the median"), "{said:?}");
        assert!(said[0].contains("repeats would be enough"), "{said:?}");
        assert!(shortfalls(&coarse, 5, window, Some(&calibration)).is_empty());
        assert!(shortfalls(&Resolve::default(), 5, window, None).is_empty());
        assert!(shortfalls(&coarse, 5, window, None)[0].contains("doctor --calibrate"));
    }

    #[test]
    fn a_calibrated_run_says_before_it_starts_what_it_resolves() {
        let (window, calibration) = (Duration::from_secs(10), calibration());
        let said = |resolve: &Resolve| before_run(resolve, 5, window, Some(&calibration));
        let [resolved] = said(&Resolve::default()).try_into().expect("one sentence");
        assert!(resolved.starts_with("This run resolves differences between modes of"), "{resolved}");
        let fine = Resolve { p50: Some(Duration::from_micros(5)), p99: None };
        assert!(said(&fine)[1].starts_with("warning: "), "{:?}", said(&fine));
        assert!(before_run(&Resolve::default(), 5, window, None).is_empty());
    }
}
