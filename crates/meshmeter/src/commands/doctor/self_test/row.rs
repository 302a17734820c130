//! The table: truth, measured, difference, and what follows.

use serde::Serialize;

/// One figure of one scenario.
#[derive(Clone, Debug)]
pub struct Row {
    /// The target and the load.
    pub scenario: String,
    /// Name with its unit.
    pub figure: String,
    /// By the target's own record, or by arithmetic.
    pub truth: f64,
    /// By the generator; absent if it gives no such figure.
    pub measured: Option<f64>,
    /// Greatest difference that is still right.
    pub allowed: f64,
    /// Why the generator itself says that the figure must not be used.
    pub reason: Option<String>,
}

/// Outcome of a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The figure is right.
    Right,
    /// The figure is withheld, with a reason: nobody is misled.
    Withheld,
    /// The figure is wrong, and nothing says so.
    Wrong,
}

impl Row {
    /// Outcome. A figure that is right although the generator has doubts is right.
    pub fn outcome(&self) -> Outcome {
        match self.measured {
            Some(measured) if (measured - self.truth).abs() <= self.allowed => Outcome::Right,
            _ if self.reason.is_some() => Outcome::Withheld,
            _ => Outcome::Wrong,
        }
    }
}

/// All rows of a self-test.
#[derive(Clone, Debug, Default)]
pub struct Rows(Vec<Row>);

const SCHEMA: &str = "meshmeter.self-test/1";

/// All rows as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    figures: Vec<Record<'a>>,
}

/// A row as JSON.
#[derive(Serialize)]
struct Record<'a> {
    scenario: &'a str,
    figure: &'a str,
    truth: f64,
    measured: Option<f64>,
    difference: Option<f64>,
    allowed: f64,
    outcome: Outcome,
    reason: Option<&'a str>,
}

impl Rows {
    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        self.0.push(row);
    }

    /// True if no figure is wrong without a reason.
    pub fn is_good(&self) -> bool {
        self.0.iter().all(|row| row.outcome() != Outcome::Wrong)
    }

    /// The rows as JSON.
    pub fn json(&self) -> String {
        crate::output::json(&Document { schema: SCHEMA, figures: self.0.iter().map(record).collect() })
    }

    /// The rows as a table for people, and what follows.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<38} {:<17} {:>9} {:>9} {:>10} {:>8}\n",
            "target", "figure", "truth", "measured", "difference", "allowed"
        );
        for row in &self.0 {
            let measured =
                row.measured.map_or_else(|| "none".to_owned(), |measured| format!("{measured:.2}"));
            let difference =
                row.measured.map_or_else(String::new, |measured| format!("{:+.2}", measured - row.truth));
            let outcome = match (row.outcome(), &row.reason) {
                (Outcome::Right, _) => "right".to_owned(),
                (Outcome::Withheld, reason) => format!("withheld: {}", reason.as_deref().unwrap_or_default()),
                (Outcome::Wrong, _) => "WRONG".to_owned(),
            };
            text.push_str(&format!(
                "{:<38} {:<17} {:>9.2} {measured:>9} {difference:>10} {:>8.2}  {outcome}\n",
                row.scenario, row.figure, row.truth, row.allowed
            ));
        }
        text + "\n" + &self.conclusion() + "\n"
    }

    fn conclusion(&self) -> String {
        let count = |outcome| self.0.iter().filter(|row| row.outcome() == outcome).count();
        let (right, withheld, wrong) =
            (count(Outcome::Right), count(Outcome::Withheld), count(Outcome::Wrong));
        let mut text = format!("{right} of {} figures are right", self.0.len());
        if withheld > 0 {
            text.push_str(&format!(", {withheld} withheld with a reason: end other programs and repeat"));
        }
        if wrong > 0 {
            text.push_str(&format!(
                ", {wrong} WRONG: do not trust measurements on this machine, and report it, with this table"
            ));
        }
        text + "."
    }
}

fn record(row: &Row) -> Record<'_> {
    Record {
        scenario: &row.scenario,
        figure: &row.figure,
        truth: row.truth,
        measured: row.measured,
        difference: row.measured.map(|measured| measured - row.truth),
        allowed: row.allowed,
        outcome: row.outcome(),
        reason: row.reason.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: Option<f64>, reason: Option<&str>) -> Row {
        Row {
            scenario: "HTTP/1.1, 5 % slow".to_owned(),
            figure: "p50 (ms)".to_owned(),
            truth: 5.0,
            measured,
            allowed: 0.75,
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn wrong_figures_need_a_reason() {
        for (measured, reason, outcome) in [
            (Some(5.7), None, Outcome::Right),
            (Some(5.7), Some("schedule-lag: late"), Outcome::Right),
            (Some(5.8), Some("schedule-lag: late"), Outcome::Withheld),
            (Some(4.2), None, Outcome::Wrong),
            (None, None, Outcome::Wrong),
            (Some(f64::NAN), None, Outcome::Wrong),
        ] {
            assert_eq!(row(measured, reason).outcome(), outcome, "{measured:?} {reason:?}");
        }
    }

    #[test]
    fn table_says_what_is_right_withheld_and_wrong() {
        let rows = [row(Some(5.2), None), row(Some(9.0), Some("schedule-lag: late")), row(None, None)];
        let mut all = Rows::default();
        assert!(all.is_good());
        rows.into_iter().for_each(|row| all.push(row));
        assert!(!all.is_good());
        insta::assert_snapshot!(all.text());
        let json: serde_json::Value = serde_json::from_str(&all.json()).unwrap();
        assert_eq!(json["figures"][1]["outcome"], "withheld");
    }
}
