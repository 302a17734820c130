//! Which differences of a run are significant, given everything that the run tests.
//!
//! A run compares many pairs of modes under many loads at several figures. A single 95 % confidence interval
//! is wrong once in twenty. Taken together, they would "show" something in every third run without any
//! effect. Holm's weighted procedure (S. Holm, 1979) limits the chance of any false statement in a run to 5
//! %: docs/decisions/0017-families.md.

/// Familywise error rate: the chance of any false statement in a run.
const LEVEL: f64 = 0.05;

/// One hypothesis to test: its p-value (`p_value`), and its share (`weight`) of the error budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    pub p_value: f64,
    pub weight: f64,
}

/// True for each test whose difference is shown.
pub(crate) fn shown(tests: &[Test]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..tests.len()).collect();
    let rank = |test: &Test| test.p_value / test.weight;
    order.sort_by(|one, other| rank(&tests[*one]).total_cmp(&rank(&tests[*other])));
    let mut remaining: f64 = tests.iter().map(|test| test.weight).sum();
    let mut shown = vec![false; tests.len()];
    for index in order {
        let Test { p_value, weight } = tests[index];
        if p_value > LEVEL * weight / remaining {
            break;
        }
        shown[index] = true;
        remaining = (remaining - weight).max(f64::MIN_POSITIVE);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(chances: &[f64]) -> Vec<bool> {
        shown(&chances.iter().map(|p_value| Test { p_value: *p_value, weight: 2.0 }).collect::<Vec<_>>())
    }

    #[test]
    fn each_shown_test_leaves_more_error_budget_to_the_rest() {
        assert_eq!(equal(&[0.04]), [true]);
        assert_eq!(equal(&[0.04, 0.04]), [false, false]);
        assert_eq!(equal(&[0.04, 0.02]), [true, true]);
        assert_eq!(equal(&[0.02, 0.01, 0.9]), [true, true, false]);
        assert_eq!(equal(&[0.02, 0.017, 0.018]), [false, false, false]);
        assert_eq!(equal(&[]), Vec::<bool>::new());
    }

    #[test]
    fn weight_is_a_share_of_the_error_budget() {
        let test = |p_value, weight| Test { p_value, weight };
        assert_eq!(shown(&[test(0.03, 3.0), test(0.03, 1.0)]), [true, true]);
        assert_eq!(shown(&[test(0.9, 3.0), test(0.03, 1.0)]), [false, false]);
        assert_eq!(shown(&[test(0.9, 3.0), test(0.01, 1.0)]), [false, true]);
    }
}
