//! Plan of a calibration: the same mode twice, and known effects.
//!
//! Each repeat deploys every mode twice, and modes with proxies once more, in random order. The first trials of the
//! first two deployments differ only in name. One of them then measures a server whose CPU time per request is drawn
//! from several, request by request, so that drift between trials affects all of them alike. In the third deployment
//! the proxies compute for a known time.

use super::{Plan, PlannedTrial};
use crate::definition::Experiment;
use results::random::{SplitMix64, shuffle};
use results::units::format_duration;
use results::{FactorValue, Factors, Mode};
use std::time::Duration;

/// Factor that names the arm of a trial.
pub(super) const ARM: &str = "arm";

/// CPU time per response of the reference server that known effects are compared with. With less, the idle
/// CPUs on the request's path stay awake (a guest kernel polls for up to 200 µs before it halts a CPU). A
/// slower server would then also add the time that they take to wake.
const REFERENCE: Duration = Duration::from_micros(200);
/// CPU of the server per response beyond the reference.
const SLOWER_BY: [Duration; 4] = [
    Duration::from_micros(20),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(200),
];
/// CPU of each proxy per request that computes.
const PROXY_CPU_TIME: Duration = Duration::from_micros(200);
/// Trials of known effects per deployment. Several short ones give a narrower interval than one long one.
const EFFECT_TRIALS: usize = 2;
/// Windows of such a trial: its requests are those of five servers.
const EFFECT_WINDOWS: f64 = 1.5;

/// Role of a trial in a calibration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arm {
    /// First trial of a deployment.
    First,
    /// First trial of another deployment of the same mode.
    Second,
    /// The server computes for one of the times of [`Arm::server_cpu_times`] per request.
    SlowerServer,
    /// Each proxy computes for [`Arm::proxy_cpu_time`] per request, in a deployment of its own.
    SlowerProxies,
}

impl Arm {
    const ALL: [Self; 4] = [Self::First, Self::Second, Self::SlowerServer, Self::SlowerProxies];

    /// Arm of a trial with these factors; absent if the trial is not part of a calibration.
    #[must_use]
    pub fn from_factors(factors: &Factors) -> Option<Self> {
        let name = factors.get(ARM)?.to_string();
        Self::ALL.into_iter().find(|arm| arm.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::SlowerServer => "slower-server",
            Self::SlowerProxies => "slower-proxies",
        }
    }

    /// Effects on the server's CPU time per request, in the order of the URLs of a trial of [`Arm::SlowerServer`]. The first is
    /// the reference, zero.
    pub fn server_effects() -> impl Iterator<Item = Duration> {
        std::iter::once(Duration::ZERO).chain(SLOWER_BY)
    }

    /// CPU per request of the servers of [`Arm::SlowerServer`], each of which answers as many requests, in the same order.
    pub fn server_cpu_times() -> impl Iterator<Item = Duration> {
        Self::server_effects().map(|effect| REFERENCE + effect)
    }

    /// CPU per request and proxy beyond the proxy's own.
    #[must_use]
    pub fn proxy_cpu_time(self) -> Duration {
        if self == Self::SlowerProxies { PROXY_CPU_TIME } else { Duration::ZERO }
    }

    /// Its trial, like `template` but for what the arm is about.
    fn trial(self, template: &PlannedTrial) -> PlannedTrial {
        let mut trial = template.clone();
        trial.factors = Factors::from([(ARM.to_owned(), FactorValue::Text(self.name().to_owned()))]);
        trial.spec.proxy.cpu_time = self.proxy_cpu_time();
        if self == Self::SlowerServer {
            let own = template.queries.first().map_or_else(String::new, |query| format!("{query}&"));
            let slower = |time| format!("{own}cpu-time={}", format_duration(time));
            trial.queries = Self::server_cpu_times().map(slower).collect();
            trial.duration = template.duration.mul_f64(EFFECT_WINDOWS);
        }
        trial
    }
}

/// Deployments of a mode in a repeat, by the arms that each measures in turn.
fn deployments(mode: Mode) -> Vec<Vec<Arm>> {
    let with_effects = std::iter::once(Arm::First).chain([Arm::SlowerServer; EFFECT_TRIALS]);
    let mut deployments = vec![with_effects.collect(), vec![Arm::Second]];
    deployments.extend((mode != Mode::None).then(|| vec![Arm::SlowerProxies]));
    deployments
}

impl Plan {
    /// Plans a calibration: every mode of the experiment at its first load.
    #[must_use]
    pub fn calibration(experiment: &Experiment, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let whole = Self::new(experiment, seed);
        let mut trials: Vec<PlannedTrial> = Vec::new();
        let mut deployment = 0;
        for repeat in whole.repeats() {
            let mut planned: Vec<(&PlannedTrial, Vec<Arm>)> = repeat
                .iter()
                .flat_map(|template| {
                    deployments(template.mode()).into_iter().map(move |arms| (template, arms))
                })
                .collect();
            shuffle(&mut planned, &mut random);
            for (template, arms) in planned {
                for arm in arms {
                    trials.push(PlannedTrial { index: trials.len(), deployment, ..arm.trial(template) });
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
    fn repeat_has_every_arm_of_every_mode_and_proxies_compute_in_their_deployment_alone() {
        let text = "{name: c, modes: [none, sidecar], load: {rate: 1000, duration: 2s}, repeats: 10}";
        let plan = Plan::calibration(&Experiment::parse(text, "test").unwrap(), 3);
        assert_eq!(plan.trials.len(), 10 * (4 + 5));
        assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
        let arm = |trial: &PlannedTrial| Arm::from_factors(&trial.factors).unwrap();
        let mut orders = BTreeSet::new();
        for shared in plan.trials.chunk_by(|one, next| one.deployment == next.deployment) {
            let arms: Vec<Arm> = shared.iter().map(arm).collect();
            let expected: &[Arm] = match arms[0] {
                Arm::First => &[Arm::First, Arm::SlowerServer, Arm::SlowerServer],
                first => &[first],
            };
            assert_eq!(arms, expected);
        }
        for repeat in plan.repeats() {
            orders.insert(format!(
                "{:?}",
                repeat.iter().map(|trial| (trial.mode(), arm(trial))).collect::<Vec<_>>()
            ));
        }
        assert!(orders.len() > 5, "{}", orders.len());
        for trial in &plan.trials {
            let effects = arm(trial) == Arm::SlowerServer;
            assert_eq!(trial.queries.len(), if effects { 5 } else { 0 });
            assert_eq!(trial.duration, Duration::from_secs(if effects { 3 } else { 2 }));
            assert_eq!(trial.spec.proxy.cpu_time.is_zero(), arm(trial) != Arm::SlowerProxies);
        }
    }
}
