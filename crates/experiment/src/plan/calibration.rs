//! Plan of a calibration: the same mode twice, and known effects within a deployment.
//!
//! Each repeat deploys every mode twice, in random order. The first trials of both deployments are alike in all but their
//! name. One of the deployments then measures a server that computes for known times, and the same server without it.

use super::order::{SplitMix64, shuffle};
use super::{Plan, PlannedTrial};
use crate::definition::Experiment;
use crate::schema::factor::{FactorValue, Factors};
use crate::units::{format_duration, parse_duration};
use std::time::Duration;

/// The factor that tells the arms apart.
const ARM: &str = "arm";

/// CPU per response of the server that known effects are compared with. During a shorter one, the idle CPUs on the request's
/// path stay awake (a guest's kernel polls for up to 200 µs before it halts a CPU); a slower server would also add the time
/// in which they wake.
const REFERENCE: Duration = Duration::from_micros(200);

/// Role of a trial in a calibration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arm {
    /// First trial of a deployment.
    First,
    /// The same in another deployment.
    Second,
    /// Baseline of the known effects.
    Reference,
    /// The server computes for this long per request beyond the reference.
    Slower(Duration),
}

impl Arm {
    /// Known effects.
    pub const SLOWER: [Self; 4] = [
        Self::Slower(Duration::from_micros(20)),
        Self::Slower(Duration::from_micros(50)),
        Self::Slower(Duration::from_micros(100)),
        Self::Slower(Duration::from_micros(200)),
    ];

    /// The arm of a trial with these factors; absent if it is not a calibration's.
    #[must_use]
    pub fn from_factors(factors: &Factors) -> Option<Self> {
        match factors.get(ARM)?.to_string().as_str() {
            "first" => Some(Self::First),
            "second" => Some(Self::Second),
            "reference" => Some(Self::Reference),
            slower => parse_duration(slower).ok().map(Self::Slower),
        }
    }

    fn factors(self) -> Factors {
        let value = match self {
            Self::First => "first".to_owned(),
            Self::Second => "second".to_owned(),
            Self::Reference => "reference".to_owned(),
            Self::Slower(time) => format_duration(time),
        };
        Factors::from([(ARM.to_owned(), FactorValue::Text(value))])
    }

    /// By how much its server is slower than the reference.
    #[must_use]
    pub fn effect(self) -> Duration {
        if let Self::Slower(time) = self { time } else { Duration::ZERO }
    }

    fn cpu_time(self) -> Duration {
        match self {
            Self::First | Self::Second => Duration::ZERO,
            Self::Reference | Self::Slower(_) => REFERENCE + self.effect(),
        }
    }
}

impl Plan {
    /// The trials of a calibration: every mode of the experiment at its first load.
    #[must_use]
    pub fn calibration(experiment: &Experiment, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let whole = Self::new(experiment, seed);
        let mut trials: Vec<PlannedTrial> = Vec::new();
        let mut deployment = 0;
        for repeat in whole.repeats() {
            let mut deployments: Vec<(&PlannedTrial, Vec<Arm>)> = Vec::new();
            for template in repeat {
                let mut known = vec![Arm::Reference];
                known.extend(Arm::SLOWER);
                shuffle(&mut known, &mut random);
                known.insert(0, Arm::First);
                deployments.extend([(template, known), (template, vec![Arm::Second])]);
            }
            shuffle(&mut deployments, &mut random);
            for (template, arms) in deployments {
                for arm in arms {
                    trials.push(PlannedTrial {
                        index: trials.len(),
                        deployment,
                        factors: arm.factors(),
                        query: format!("cpu-time={}", format_duration(arm.cpu_time())),
                        ..template.clone()
                    });
                }
                deployment += 1;
            }
        }
        Self { trials, retakes: 0, ..whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_repeat_has_every_arm_of_every_mode_and_effects_share_a_deployment() {
        let text = "{name: c, modes: [none, sidecar], load: {rate: 1000}, repeats: 10}";
        let plan = Plan::calibration(&Experiment::parse(text, "test").unwrap(), 3);
        assert_eq!(plan.trials.len(), 10 * 2 * 7);
        assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
        let arm = |trial: &PlannedTrial| Arm::from_factors(&trial.factors).unwrap();
        let mut orders = BTreeSet::new();
        for shared in plan.trials.chunk_by(|one, next| one.deployment == next.deployment) {
            let arms: Vec<Arm> = shared.iter().map(arm).collect();
            match arms[0] {
                Arm::First => assert_eq!(arms.len(), 6),
                first => assert_eq!((first, arms.len()), (Arm::Second, 1)),
            }
            orders.insert(format!("{arms:?}"));
        }
        assert!(orders.len() > 10, "{}", orders.len());
        for trial in &plan.trials {
            assert_eq!(trial.query, format!("cpu-time={}", format_duration(arm(trial).cpu_time())));
        }
        let cells: BTreeSet<String> =
            plan.repeats().next().unwrap().iter().map(|trial| format!("{:?}", trial.cell())).collect();
        assert_eq!(cells.len(), 14);
    }
}
