//! A cost as a sum of terms: weighted least squares within each repeat, intervals over the repeats.
//!
//! Each repeat has the whole design, so its coefficients are one observation. The spread between repeats
//! therefore covers what all trials of a repeat have in common, and the covariance of the coefficients.
//! Weights assume errors proportional to the cost. Coefficients are not bounded: one that is truly zero has
//! an interval around zero.
//!
//! A variable that the trials cannot separate from the terms before it is left out, and its dependence on
//! them is recorded. The law then holds only for meshes with the same dependence.

use crate::interval;
use results::{CostLaw, CostResidual, CostTerm, Estimate};
use std::collections::BTreeMap;

/// A variable is left out if less than this fraction of it (in length) is not explained by the terms before
/// it.
const MIN_OWN_SHARE: f64 = 0.05;
/// A confounded variable may differ by this fraction from the value that its dependence predicts.
const DEPENDENCE_TOLERANCE: f64 = 0.1;

/// The cost in one trial.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    pub repeat: usize,
    /// Index of its cell.
    pub cell: usize,
    /// Values of the variables, without the constant.
    pub at: Vec<f64>,
    pub cost: f64,
}

/// Names of a law's variables and its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub unit: &'static str,
    pub variables: &'static [&'static str],
    /// A fit of the constant alone does not count as a law.
    pub needs_slope: bool,
}

/// A fitted law.
#[derive(Clone, Debug)]
pub(crate) struct FittedLaw {
    terms: Terms,
    /// Columns kept in the law: 0 is the constant, others are variables.
    kept: Vec<usize>,
    /// Columns that cannot be separated from those before them, with their coefficients on the kept columns.
    confounded: Vec<(usize, Vec<f64>)>,
    /// Coefficients of the kept columns, by repeat.
    repeats: BTreeMap<usize, Vec<f64>>,
    /// Coefficients of all trials together, used if no repeat has the whole design.
    all: Vec<f64>,
    residuals: Vec<CostResidual>,
}

/// Reason why a law cannot be fitted or does not hold for a mesh.
pub(crate) type Unresolved = String;

impl FittedLaw {
    pub fn fit(terms: Terms, observations: &[Observation]) -> Result<Self, Unresolved> {
        if observations.is_empty() {
            return Err("no valid trial measured it".to_owned());
        }
        let rows = weighted(observations);
        let (kept, confounded) = select(&rows, terms.variables.len() + 1);
        if terms.needs_slope && kept.len() < 2 {
            let variables = terms.variables.join(" and ");
            return Err(format!("{variables} did not vary: a slope needs trials at two values"));
        }
        let mut by_repeat: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
        for (row, observation) in rows.iter().zip(observations) {
            by_repeat.entry(observation.repeat).or_default().push(row);
        }
        let of_repeat = |(repeat, rows): (usize, Vec<&Row>)| Some((repeat, solve(&rows, &kept)?));
        let repeats = by_repeat.into_iter().filter_map(of_repeat).collect();
        let all = solve(&rows.iter().collect::<Vec<_>>(), &kept)
            .ok_or_else(|| "the trials do not separate its terms".to_owned())?;
        let mut law = Self { terms, kept, confounded, repeats, all, residuals: Vec::new() };
        law.residuals = law.residuals_of(observations);
        Ok(law)
    }

    /// The repeats for which the law has coefficients.
    pub fn repeats(&self) -> impl Iterator<Item = usize> + '_ {
        self.repeats.keys().copied()
    }

    /// Cost by the coefficients of a repeat, or of all trials if `repeat` is `None`.
    pub fn cost(&self, repeat: Option<usize>, at: &[f64]) -> f64 {
        let coefficients = repeat.and_then(|repeat| self.repeats.get(&repeat)).unwrap_or(&self.all);
        self.kept.iter().zip(coefficients).map(|(column, one)| one * column_of(at, *column)).sum()
    }

    /// The part of the cost that does not depend on the variables in `left_out`.
    pub fn cost_without(&self, repeat: Option<usize>, at: &[f64], left_out: &[usize]) -> f64 {
        let mut at = at.to_vec();
        left_out.iter().for_each(|variable| at[*variable] = 0.0);
        self.cost(repeat, &at)
    }

    /// Checks that the law holds for these values: confounded variables must have the same dependence as in
    /// the trials.
    pub fn check(&self, at: &[f64]) -> Result<(), Unresolved> {
        for (column, on_kept) in &self.confounded {
            let asked = column_of(at, *column);
            let dependent: f64 =
                self.kept.iter().zip(on_kept).map(|(kept, one)| one * column_of(at, *kept)).sum();
            if (asked - dependent).abs() > DEPENDENCE_TOLERANCE * asked.abs().max(dependent.abs()) {
                let name = self.terms.variables[column - 1];
                let others: Vec<&str> =
                    self.kept.iter().skip(1).map(|kept| self.terms.variables[kept - 1]).collect();
                if others.is_empty() {
                    return Err(format!("{name} did not vary: {dependent:.0} in the trials, not {asked:.0}"));
                }
                return Err(format!(
                    "the trials do not separate {name} from {}: in them it would be {dependent:.0} here, not {asked:.0}; vary it \
                     by itself",
                    others.join(" and ")
                ));
            }
        }
        Ok(())
    }

    /// The law in the form of the result schema.
    pub fn described(&self) -> CostLaw {
        let term = |(place, column): (usize, &usize)| CostTerm {
            variable: self.name(*column),
            coefficient: self.coefficient(place),
            verdict: None,
        };
        CostLaw {
            unit: self.terms.unit.to_owned(),
            terms: self.kept.iter().enumerate().map(term).collect(),
            confounded: self.confounded.iter().map(|(column, _)| self.name(*column)).collect(),
            residuals: self.residuals.clone(),
            refusal: None,
        }
    }

    /// How likely its first slope is by chance if there is none; absent without a slope, and of too few repeats.
    pub fn chance_of_slope(&self) -> Option<f64> {
        let slopes = self.repeats.values().map(|coefficients| coefficients.get(1).copied());
        interval::p_value_of_mean(&slopes.collect::<Option<Vec<f64>>>()?)
    }

    fn name(&self, column: usize) -> String {
        if column == 0 { "1".to_owned() } else { self.terms.variables[column - 1].to_owned() }
    }

    fn coefficient(&self, place: usize) -> Estimate {
        let values: Vec<f64> = self.repeats.values().map(|coefficients| coefficients[place]).collect();
        over_repeats(&values).unwrap_or_else(|| Estimate::single(self.all[place]))
    }

    fn residuals_of(&self, observations: &[Observation]) -> Vec<CostResidual> {
        let mut cells: BTreeMap<usize, Vec<&Observation>> = BTreeMap::new();
        observations.iter().for_each(|one| cells.entry(one.cell).or_default().push(one));
        let residual = |cell: Vec<&Observation>| {
            let count = cell.len() as f64;
            let mean =
                |read: &dyn Fn(&Observation) -> f64| cell.iter().map(|one| read(one)).sum::<f64>() / count;
            let at: Vec<f64> =
                (0..self.terms.variables.len()).map(|place| mean(&|one| one.at[place])).collect();
            let at_of_terms = self.kept.iter().skip(1).map(|column| column_of(&at, *column)).collect();
            let fitted = self.cost(None, &at);
            CostResidual { at: at_of_terms, measured: mean(&|one| one.cost), fitted, n: cell.len() }
        };
        cells.into_values().map(residual).collect()
    }
}

/// The mean over repeats with its interval; `None` if `values` is empty.
pub(crate) fn over_repeats(values: &[f64]) -> Option<Estimate> {
    interval::mean(values, 0.0)
}

fn column_of(at: &[f64], column: usize) -> f64 {
    if column == 0 { 1.0 } else { at[column - 1] }
}

/// A trial weighted by the mean cost of its cell: columns and cost are divided by that mean.
struct Row {
    columns: Vec<f64>,
    cost: f64,
}

fn weighted(observations: &[Observation]) -> Vec<Row> {
    let mut means: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for one in observations {
        let (sum, count) = means.entry(one.cell).or_default();
        (*sum, *count) = (*sum + one.cost.abs(), *count + 1.0);
    }
    let greatest = means.values().map(|(sum, count)| sum / count).fold(0.0, f64::max);
    // A zero cost would have infinite weight.
    let least = if greatest > 0.0 { greatest * 1e-3 } else { 1.0 };
    let row = |one: &Observation| {
        let (sum, count) = means[&one.cell];
        let scale = 1.0 / (sum / count).max(least);
        let columns = (0..=one.at.len()).map(|column| column_of(&one.at, column) * scale).collect();
        Row { columns, cost: one.cost * scale }
    };
    observations.iter().map(row).collect()
}

/// The columns that the rows can separate, and the other columns with their dependence on those.
fn select(rows: &[Row], columns: usize) -> (Vec<usize>, Vec<(usize, Vec<f64>)>) {
    let all: Vec<&Row> = rows.iter().collect();
    let (mut kept, mut confounded): (Vec<usize>, Vec<(usize, Vec<f64>)>) = (vec![0], Vec::new());
    for column in 1..columns {
        let Some(on_kept) = regress(&all, &kept, |row| row.columns[column]) else { continue };
        if own_share(&all, &kept, column, &on_kept) < MIN_OWN_SHARE {
            confounded.push((column, on_kept));
        } else {
            kept.push(column);
        }
    }
    (kept, confounded)
}

/// Fraction of a column (in length) that the kept columns do not explain.
fn own_share(rows: &[&Row], kept: &[usize], column: usize, on_kept: &[f64]) -> f64 {
    let (mut own, mut whole) = (0.0, 0.0);
    for row in rows {
        let explained: f64 = kept.iter().zip(on_kept).map(|(kept, one)| one * row.columns[*kept]).sum();
        own += (row.columns[column] - explained).powi(2);
        whole += row.columns[column].powi(2);
    }
    if whole > 0.0 { (own / whole).sqrt() } else { 0.0 }
}

/// Coefficients of the kept columns; `None` if the rows cannot separate them.
fn solve(rows: &[&Row], kept: &[usize]) -> Option<Vec<f64>> {
    for place in 1..kept.len() {
        let on_others = regress(rows, &kept[..place], |row| row.columns[kept[place]])?;
        if own_share(rows, &kept[..place], kept[place], &on_others) < MIN_OWN_SHARE {
            return None;
        }
    }
    (rows.len() >= kept.len()).then(|| regress(rows, kept, |row| row.cost)).flatten()
}

/// Least squares of a value on columns, each scaled to length 1.
fn regress(rows: &[&Row], columns: &[usize], value: impl Fn(&Row) -> f64) -> Option<Vec<f64>> {
    let length = |column: &usize| rows.iter().map(|row| row.columns[*column].powi(2)).sum::<f64>().sqrt();
    let lengths: Vec<f64> = columns.iter().map(length).collect();
    if lengths.iter().any(|length| *length <= 0.0 || !length.is_finite()) {
        return None;
    }
    let scaled = |row: &Row, place: usize| row.columns[columns[place]] / lengths[place];
    let count = columns.len();
    let mut matrix: Vec<Vec<f64>> = (0..count)
        .map(|row_of| {
            let products = (0..count)
                .map(|column| rows.iter().map(|row| scaled(row, row_of) * scaled(row, column)).sum::<f64>());
            let right = rows.iter().map(|row| scaled(row, row_of) * value(row)).sum::<f64>();
            products.chain([right]).collect()
        })
        .collect();
    let solution = eliminate(&mut matrix)?;
    Some(solution.into_iter().zip(lengths).map(|(one, length)| one / length).collect())
}

/// Gaussian elimination with pivoting; the last column is the right-hand side.
fn eliminate(matrix: &mut [Vec<f64>]) -> Option<Vec<f64>> {
    let count = matrix.len();
    for place in 0..count {
        let pivot = (place..count)
            .max_by(|one, other| matrix[*one][place].abs().total_cmp(&matrix[*other][place].abs()))?;
        matrix.swap(place, pivot);
        if matrix[place][place].abs() < 1e-12 {
            return None;
        }
        let of_pivot = matrix[place].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(index, _)| *index != place) {
            let factor = row[place] / of_pivot[place];
            row.iter_mut().zip(&of_pivot).for_each(|(value, of_pivot)| *value -= factor * of_pivot);
        }
    }
    Some((0..count).map(|row| matrix[row][count] / matrix[row][row]).collect())
}
