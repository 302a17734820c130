//! Tally of comparisons whose truth is known.

use crate::proportion::counted_share;
use results::{ComparedFigure, Comparison, ComparisonVerdict, FigureVerdict, InjectedEffect, SelfTestSeries};

/// A series without comparisons yet. `relative`: the effect as a fraction of its figure.
#[must_use]
pub fn series(injected: InjectedEffect, added_us: f64, relative: f64) -> SelfTestSeries {
    SelfTestSeries {
        injected,
        added_us,
        relative,
        figure: injected.figure(),
        comparisons: 0,
        worse: 0,
        better: 0,
        equivalent: 0,
        inconclusive: 0,
        failed: 0,
        share: None,
    }
}

/// Counts a comparison that has ended by itself.
pub fn add(series: &mut SelfTestSeries, comparison: &Comparison) {
    series.comparisons += 1;
    let counter = match said(series, comparison) {
        None => &mut series.failed,
        Some(FigureVerdict::Worse) => &mut series.worse,
        Some(FigureVerdict::Better) => &mut series.better,
        Some(FigureVerdict::Equivalent) => &mut series.equivalent,
        Some(FigureVerdict::Inconclusive) => &mut series.inconclusive,
    };
    *counter += 1;
    let counted = match series.injected {
        InjectedEffect::Nothing => series.worse + series.better,
        InjectedEffect::ServerCpuTime | InjectedEffect::ProxyCpuTime => series.worse,
    };
    // A comparison that failed says so, and neither accuses nor overlooks.
    series.share = counted_share(counted, series.comparisons - series.failed);
}

/// Verdict on the figure of a series, or on all figures if nothing was changed; absent if the comparison failed.
fn said(series: &SelfTestSeries, comparison: &Comparison) -> Option<FigureVerdict> {
    use FigureVerdict::{Better, Equivalent, Inconclusive, Worse};
    let is_own = |figure: &&ComparedFigure| series.figure.is_none_or(|own| own == figure.key);
    let verdicts: Vec<FigureVerdict> =
        comparison.figures.iter().filter(is_own).map(|figure| figure.verdict).collect();
    let has_failed = comparison.verdict == ComparisonVerdict::Failed || verdicts.is_empty();
    if has_failed {
        return None;
    }
    // Any alarm counts, whatever the other figures are.
    [Worse, Better, Inconclusive].into_iter().find(|verdict| verdicts.contains(verdict)).or(Some(Equivalent))
}

/// True if the false alarms of a series are shown to be more than this rate.
#[must_use]
pub fn exceeds(series: &SelfTestSeries, alarm_rate: f64) -> bool {
    series.injected == InjectedEffect::Nothing && series.share.is_some_and(|share| share.low > alarm_rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FigureVerdict::{Better, Equivalent, Inconclusive, Worse};
    use results::{
        ComparedArm, ComparisonCourse, ComparisonEnd, Factors, LoadPoint, MarginSource, Metric, Mode,
        OwnedCellKey,
    };

    /// A comparison with these verdicts on the median and on the CPU of the proxies.
    fn comparison(verdicts: [FigureVerdict; 2]) -> Comparison {
        let load = LoadPoint {
            protocol: "http/1.1".to_owned(),
            rate: Some(500.0),
            clients: None,
            connections: 4,
            requests_per_connection: None,
            payload_bytes: 1024,
            stream: None,
            arrival: "uniform".to_owned(),
            surrounding_services: None,
        };
        let figure = |(key, verdict): (Metric, FigureVerdict)| ComparedFigure {
            key,
            cell: OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load: load.clone() },
            base: None,
            head: None,
            control: None,
            difference: None,
            ratio: None,
            control_ratio: None,
            equivalence_ratio: None,
            margin: 0.03,
            margin_source: MarginSource::Default,
            verdict,
            reason: None,
            error_rate: 0.01,
            between_runs: None,
        };
        let keys = [Metric::ResponseTimeP50Us, Metric::ProxiesCpuCoresPer1000Rps];
        let figures: Vec<ComparedFigure> = keys.into_iter().zip(verdicts).map(figure).collect();
        Comparison {
            schema: String::new(),
            name: "t".to_owned(),
            seed: 1,
            base: ComparedArm::default(),
            head: ComparedArm::default(),
            control: ComparedArm::default(),
            looks: 12,
            looks_planned: 12,
            ended: ComparisonEnd::Repeats,
            verdict: ComparisonVerdict::of_figures(&figures),
            finished: None,
            figures,
            modes_not_compared: Vec::new(),
            environment_changes: Vec::new(),
            failures: Vec::new(),
            course: ComparisonCourse::default(),
        }
    }

    #[test]
    fn any_alarm_counts_without_a_change_and_only_its_own_figure_with_one() {
        let mut nothing = series(InjectedEffect::Nothing, 0.0, 0.0);
        for verdicts in
            [[Equivalent, Equivalent], [Inconclusive, Better], [Worse, Better], [Equivalent, Inconclusive]]
        {
            add(&mut nothing, &comparison(verdicts));
        }
        let SelfTestSeries { comparisons, worse, better, equivalent, inconclusive, failed, .. } = nothing;
        assert_eq!([comparisons, worse, better, equivalent, inconclusive, failed], [4, 1, 1, 1, 1, 0]);
        assert_eq!(nothing.share.map(|share| (share.count, share.of)), Some((2, 4)));
        assert!(exceeds(&nothing, 0.03) && !exceeds(&nothing, 0.1), "{nothing:?}");

        let mut slower = series(InjectedEffect::ServerCpuTime, 30.0, 0.05);
        for verdicts in [[Worse, Equivalent], [Inconclusive, Worse], [Better, Worse]] {
            add(&mut slower, &comparison(verdicts));
        }
        add(
            &mut slower,
            &Comparison { verdict: ComparisonVerdict::Failed, ..comparison([Worse, Equivalent]) },
        );
        assert_eq!(slower.share.map(|share| (share.count, share.of)), Some((1, 3)));
        assert_eq!([slower.better, slower.inconclusive, slower.failed], [1, 1, 1]);
        assert!(!exceeds(&slower, 0.0), "effects are no alarms");
    }
}
