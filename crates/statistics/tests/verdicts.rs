//! Over simulated runs: what is shown has an interval without zero, and what is not shown, one with zero. In the summary as in
//! its JSON, of which all other outputs are made.

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "studies/simulator.rs"]
mod simulator;

use results::{Estimate, FindingVerdict, Host, Summary};
use serde_json::Value;
use simulator::{Design, Upgrade};
use statistics::summarize;

/// Runs of each design.
const RUNS: u64 = 25;

/// Findings whose verdict is on their estimate.
const OF_DIFFERENCES: [&str; 10] = [
    "headline",
    "added-latency",
    "order",
    "factor-difference",
    "factor-effect",
    "factor-corner",
    "mesh-size",
    "slowest-driver",
    "greatest-added-time",
    "greatest-added-cpu",
];

fn designs() -> Vec<Design> {
    let base = Design { repeats: 3, between: 0.03, more_by_mode: 0.5, ..Design::default() };
    let upgrade = Upgrade { cpu: 0.06, memory: 0.01, configuration: 0.02, is_same_program: false };
    let on_off = Design {
        modes: "none, sidecar",
        load: "rate: 300",
        words: "off, text",
        another_factor: true,
        effect: 0.06,
        effect_of_word: 0.05,
        ..base
    };
    vec![
        Design { effect: 0.05, ..base },
        Design { effect: 0.05, mode_repeat: 0.02, ..base },
        Design { repeats: 2, ..on_off.clone() },
        Design { repeats: 4, ..on_off },
        Design { modes: "none, sidecar, ambient", load: "clients: [4, 16]", effect: 0.07, ..base },
        Design { load: "rate: 500, connections: [2, 4, 8]", per_connection: 0.01, ..base },
        Design { load: "rate: 500, connections: [2, 4, 8]", per_connection: 0.01, repeats: 2, ..base },
        Design { modes: "sidecar", load: "rate: 300", upgrade: Some(upgrade), ..base },
        Design {
            modes: "sidecar",
            load: "rate: 300",
            upgrade: Some(upgrade),
            words: "off, text, json",
            effect_of_word: 0.03,
            ..base
        },
        Design {
            modes: "none, sidecar, ambient",
            load: "clients: [4, 16]",
            effect: 0.07,
            more: ", istio: {sidecar-scope: [off, on], ztunnel: [shared, per-pod]}",
            ..base
        },
        Design {
            modes: "none, ingress",
            load: "rate: 300",
            words: "off, text",
            effect: 0.07,
            effect_of_word: 0.05,
            more: ", ingress: {scenario: [no-filters, jwt, direct]}, gateway: {workers: [1, 2]}",
            ..base
        },
    ]
}

/// Numbers of differences: shown, not shown, and those not shown although their own intervals exclude zero.
#[derive(Debug, Default)]
struct Seen {
    shown: usize,
    not_shown: usize,
    by_correction: usize,
}

impl Seen {
    fn check(&mut self, estimate: &Estimate, verdict: FindingVerdict, what: &str) {
        match verdict {
            FindingVerdict::Shown => {
                assert!(
                    estimate.excludes_zero() && estimate.alone.is_none(),
                    "{what} is shown: {estimate:?}"
                );
                self.shown += 1;
            }
            FindingVerdict::NotShown => {
                assert!(!estimate.excludes_zero(), "{what} is not shown: {estimate:?}");
                self.not_shown += 1;
                if let Some([low, high]) = estimate.alone {
                    assert!(low > 0.0 || high < 0.0, "{what} is corrected without need: {estimate:?}");
                    assert!(estimate.low <= Some(low) && estimate.high >= Some(high), "{what}: {estimate:?}");
                    self.by_correction += 1;
                }
            }
            FindingVerdict::CannotTell => assert_eq!(estimate.low, None, "{what}"),
        }
    }

    fn of_summary(&mut self, summary: &Summary) {
        for one in &summary.comparisons {
            let times = one.response_time_us;
            let times = results::Figure::TIMES.into_iter().filter_map(|figure| times.judged(figure));
            let others = [one.judged_throughput(), one.judged_proxy_cpu()].into_iter().flatten();
            for (estimate, verdict) in times.chain(others) {
                self.check(&estimate, verdict, "a comparison of modes");
            }
        }
        for one in &summary.factor_differences {
            self.check(&one.estimate, one.verdict, "a difference of values");
            if let Some(relative) = &one.relative {
                self.check(relative, one.verdict, "a change between values");
            }
        }
        for one in &summary.corner_differences {
            self.check(&one.estimate, one.verdict, "a far corner");
            if let Some(relative) = &one.relative {
                self.check(relative, one.verdict, "a change between corners");
            }
        }
        for one in &summary.factor_effects {
            self.check(&one.per_unit, one.verdict, "a slope");
            self.check(&one.change(), one.verdict, "a change along a factor");
        }
    }

    fn of_findings(&mut self, json: &Value) {
        for finding in json["findings"].as_array().expect("a list") {
            let is_of_difference = OF_DIFFERENCES.contains(&finding["kind"].as_str().expect("a kind"));
            let (Some(estimate), Some(verdict)) = (finding.get("estimate"), finding.get("verdict")) else {
                continue;
            };
            if is_of_difference {
                let estimate = serde_json::from_value(estimate.clone()).expect("an estimate");
                let verdict = serde_json::from_value(verdict.clone()).expect("a verdict");
                self.check(&estimate, verdict, &finding.to_string());
            }
        }
    }
}

#[test]
fn verdicts_agree_with_the_intervals_beside_them() {
    let mut all = Seen::default();
    for design in designs() {
        for seed in 0..RUNS {
            let (experiment, trials) = design.study(seed);
            let summary = summarize(&experiment, seed, trials.len(), &Host::default(), &trials);
            all.of_summary(&summary);
            all.of_findings(&serde_json::to_value(&summary).expect("a summary has JSON"));
            assert!(summary.tests > 0, "{design:?}");
        }
    }
    assert!(all.shown > 500 && all.not_shown > 500 && all.by_correction > 50, "{all:?}");
}
