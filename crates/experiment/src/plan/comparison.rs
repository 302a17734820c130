//! Plan of a comparison: two sets of settings, and the first once more as a control.
//!
//! An arm is a value of the factor `arm`. Each repeat measures every cell in all three arms, one right after the other, in a
//! random order that the next repeat reverses, so that the steady drift of a machine cancels over two repeats. If a change of
//! arms restarts the control plane, a repeat measures all cells of an arm before the next arm.

use super::calibration::ARM;
use super::{Plan, PlannedTrial, cells};
use crate::definition::Experiment;
use crate::environment::spec::DeploymentSpec;
use results::random::{SplitMix64, shuffle};
use results::{FactorValue, Factors, OwnedCellKey};

/// Arm of a comparison.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ComparisonArm {
    /// Settings compared with.
    Base,
    /// Settings that are judged.
    Head,
    /// The base, deployed once more.
    Control,
}

impl ComparisonArm {
    /// All arms.
    pub const ALL: [Self; 3] = [Self::Base, Self::Head, Self::Control];

    /// Name in files and in the output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Head => "head",
            Self::Control => "control",
        }
    }

    /// Arm of a trial with these factors; absent if the trial is not part of a comparison.
    #[must_use]
    pub fn from_factors(factors: &Factors) -> Option<Self> {
        let name = factors.get(ARM)?.to_string();
        Self::ALL.into_iter().find(|arm| arm.name() == name)
    }

    /// Cell of this arm.
    #[must_use]
    pub fn cell(self, cell: &ComparedCell) -> OwnedCellKey {
        let own = if self == Self::Head { &cell.head } else { &cell.base };
        OwnedCellKey { factors: self.with_factors(&own.factors), ..own.clone() }
    }

    fn with_factors(self, factors: &Factors) -> Factors {
        let mut factors = factors.clone();
        factors.insert(ARM.to_owned(), FactorValue::Text(self.name().to_owned()));
        factors
    }
}

/// A cell of both experiments, which may differ in its load.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCell {
    /// Cell of the base.
    pub base: OwnedCellKey,
    /// Cell of the head.
    pub head: OwnedCellKey,
}

/// Cells that both experiments have and that a change of these keys can touch. Without keys, all are touched.
///
/// # Errors
/// Returns what keeps the experiments from being compared.
pub fn compared_cells(
    base: &Experiment,
    head: &Experiment,
    keys: &[&str],
) -> Result<Vec<ComparedCell>, String> {
    let (of_base, of_head) = (cells(base), cells(head));
    let same = |(base, head): (&OwnedCellKey, &OwnedCellKey)| {
        base.mode == head.mode && base.factors == head.factors && base.load.is_fleet() == head.load.is_fleet()
    };
    if base.mesh != head.mesh {
        return Err(format!("the base has mesh {}, the head {}", base.mesh, head.mesh));
    }
    if of_base.len() != of_head.len() || !of_base.iter().zip(&of_head).all(same) {
        return Err("base and head must have the same modes, factors and number of loads".to_owned());
    }
    let pairs = of_base.into_iter().zip(of_head).map(|(base, head)| ComparedCell { base, head });
    let is_touched = |OwnedCellKey { mode, factors, .. }: &OwnedCellKey| {
        keys.is_empty() || keys.iter().any(|key| base.touches_cells(*mode, factors, key))
    };
    Ok(pairs.filter(|cell| is_touched(&cell.base)).collect())
}

impl Plan {
    /// Plans a comparison of these cells, which [`compared_cells`] found in both experiments.
    #[must_use]
    pub fn comparison(base: &Experiment, head: &Experiment, compared: &[ComparedCell], seed: u64) -> Self {
        let whole = Self::new(base, seed);
        let of_head = Self::new(head, seed);
        let mut random = SplitMix64::new(seed ^ ORDER_OF_ARMS);
        let mut order = ComparisonArm::ALL;
        let mut trials: Vec<PlannedTrial> = Vec::new();
        for (number, (repeat, head)) in whole.repeats().zip(of_head.repeats()).enumerate() {
            if number % 2 == 0 {
                shuffle(&mut order, &mut random);
            } else {
                order.reverse();
            }
            let in_base = |trial: &&PlannedTrial| compared.iter().any(|cell| cell.base.key() == trial.cell());
            let own: Vec<&PlannedTrial> = repeat.iter().filter(in_base).collect();
            let in_arm = |arm: ComparisonArm, trial: &PlannedTrial| in_arm(arm, trial, head, compared);
            let restarts = own
                .iter()
                .any(|trial| restarts_control_plane(&trial.spec, &in_arm(ComparisonArm::Head, trial).spec));
            let deployments: Vec<&[&PlannedTrial]> = match restarts {
                true => vec![&own],
                false => own.chunk_by(|one, next| one.deployment == next.deployment).collect(),
            };
            for shared in deployments {
                for arm in order {
                    let mut last: Option<(usize, DeploymentSpec)> = None;
                    for template in shared {
                        let trial = in_arm(arm, template);
                        let goes_on = last.as_ref().is_some_and(|(deployment, spec)| {
                            *deployment == template.deployment && *spec == trial.spec
                        });
                        let next = trials.last().map_or(0, |last| last.deployment + 1);
                        let deployment = if goes_on { next - 1 } else { next };
                        last = Some((template.deployment, trial.spec.clone()));
                        trials.push(PlannedTrial { index: trials.len(), deployment, ..trial });
                    }
                }
            }
        }
        Self { trials, ..whole }
    }
}

/// Distinguishes the random numbers of the arms from those of the cells.
const ORDER_OF_ARMS: u64 = 0x61_72_6d_73;

/// A trial of the base in another arm: with the same arrivals.
fn in_arm(
    arm: ComparisonArm,
    template: &PlannedTrial,
    head: &[PlannedTrial],
    compared: &[ComparedCell],
) -> PlannedTrial {
    let mut trial = template.clone();
    if arm == ComparisonArm::Head {
        let cell = compared.iter().find(|cell| cell.base.key() == template.cell());
        let cell = cell.expect("only compared cells are planned").head.key();
        let own = head.iter().find(|trial| trial.cell() == cell);
        trial = own.expect("a cell of the head is in each of its repeats").clone();
        trial.generator_seed = template.generator_seed;
    }
    trial.factors = arm.with_factors(&trial.factors);
    trial
}

/// True if the control plane of one deployment cannot serve the other, or takes seconds to change.
fn restarts_control_plane(one: &DeploymentSpec, other: &DeploymentSpec) -> bool {
    let istiod = |spec: &DeploymentSpec| {
        let istiod = spec.components.programs().find(|(name, _)| *name == "istiod");
        istiod.map(|(_, path)| path.to_owned())
    };
    one.components.istio != other.components.istio
        || istiod(one) != istiod(other)
        || one.istio.telemetry != other.istio.telemetry
        || one.istio.background_services != other.istio.background_services
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{NoFiles, Override};
    use results::Mode;
    use std::collections::BTreeSet;

    fn read(text: &str, setting: &str) -> Experiment {
        Experiment::parse_with(text, "test", &[Override::set(setting)], &NoFiles).unwrap()
    }

    fn plan(text: &str, base: &str, head: &str) -> Result<Plan, String> {
        let key = base.split('=').next().unwrap();
        let (base, head) = (read(text, base), read(text, head));
        let compared = compared_cells(&base, &head, &[key])?;
        Ok(Plan::comparison(&base, &head, &compared, 1))
    }

    fn arms(trials: &[PlannedTrial]) -> Vec<ComparisonArm> {
        trials.iter().map(|trial| ComparisonArm::from_factors(&trial.factors).unwrap()).collect()
    }

    const TEXT: &str =
        "{name: c, mesh: envoy, modes: [none, gateway, sidecar], load: {rate: [500, 1000]}, repeats: 12}";

    #[test]
    fn arms_are_adjacent_and_each_order_is_followed_by_its_reverse() {
        let plan = plan(TEXT, "proxy.workers=1", "proxy.workers=2").unwrap();
        assert_eq!(plan.trials.len(), 12 * 2 * 2 * 3, "mode none has no proxy to compare");
        assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
        let mut orders = BTreeSet::new();
        let repeats: Vec<&[PlannedTrial]> = plan.repeats().collect();
        for (number, repeat) in repeats.iter().enumerate() {
            for cell in repeat.chunks(3) {
                let first = &cell[0];
                assert!(cell.iter().all(|trial| {
                    trial.mode() == first.mode()
                        && trial.load == first.load
                        && trial.generator_seed == first.generator_seed
                }));
                assert_eq!(arms(cell), arms(&repeat[..3]), "all cells of a repeat have one order");
            }
            if number % 2 == 1 {
                let mut mirrored = arms(&repeats[number - 1][..3]);
                mirrored.reverse();
                assert_eq!(arms(&repeat[..3]), mirrored);
            }
            orders.insert(arms(&repeat[..3]));
        }
        assert!(orders.len() >= 4, "{orders:?}");
        for trial in &plan.trials {
            let is_head = ComparisonArm::from_factors(&trial.factors) == Some(ComparisonArm::Head);
            assert_eq!(trial.spec.proxy.workers, if is_head { 2 } else { 1 });
        }
        let deployments: BTreeSet<usize> = plan.trials.iter().map(|trial| trial.deployment).collect();
        assert_eq!(deployments.len(), plan.trials.len(), "the control is deployed anew");
    }

    #[test]
    fn loads_share_a_deployment_within_an_arm_only() {
        let text = TEXT.replace("repeats: 12", "repeats: 2, fresh: mode");
        let plan = plan(&text, "proxy.workers=1", "proxy.workers=1").unwrap();
        assert_eq!(plan.trials.len(), 2 * 2 * 2 * 3);
        for (number, shared) in plan.trials.chunks(2).enumerate() {
            assert!(shared.iter().all(|trial| trial.deployment == number));
            assert_eq!(arms(&shared[..1]), arms(&shared[1..]));
        }
    }

    #[test]
    fn control_plane_is_restarted_once_per_arm() {
        let text = "{name: c, mesh: istio, modes: [none, sidecar], load: {rate: [500, 1000]}, repeats: 4}";
        let plan = plan(text, "components.istio=1.29.4", "components.istio=1.30.4").unwrap();
        for repeat in plan.repeats() {
            let mut order = arms(repeat);
            order.dedup();
            assert_eq!(order.len(), 3);
        }
        assert!(plan.trials.iter().all(|trial| trial.mode() == Mode::Sidecar));
    }

    #[test]
    fn loads_may_differ_and_modes_may_not() {
        let one = "{name: c, modes: [sidecar], load: {rate: 500}, repeats: 4}";
        let plan = plan(one, "load.rate=500", "load.rate=600").unwrap();
        let rates: BTreeSet<u64> = plan.trials.iter().map(|trial| trial.load.rate.unwrap() as u64).collect();
        assert_eq!(rates, BTreeSet::from([500, 600]));
        let refused = self::plan(TEXT, "modes=[none, sidecar]", "modes=[none, gateway]").unwrap_err();
        assert!(refused.contains("the same modes"), "{refused}");
    }
}
