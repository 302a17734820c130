//! Verdicts: which figures of a measurement may be used.

use crate::figure::{Figure, Figures};
use serde::{Deserialize, Serialize};

/// Which figures of a measurement may be used, and why others may not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// True if no reason spoils the median. Other figures may still be spoiled: see [`Self::is_usable`].
    pub valid: bool,
    /// The target (or the generator, see `reasons`) did not keep up with the offered rate.
    pub saturated: bool,
    /// Why figures are spoiled; empty if none are. Each reason starts with its kind and a colon, such as
    /// `saturated: …`.
    pub reasons: Vec<String>,
    /// Figures spoiled by each reason, in the order of `reasons`. A reason without its figures spoils all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<SpoiledFigures>,
    /// Notes on usable figures too, such as a service time that hides a stall.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Figures spoiled by one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpoiledFigures {
    /// Kind of the reason, such as `schedule-lag`.
    pub reason: String,
    /// Figures that must not be used.
    pub figures: Figures,
}

impl Verdict {
    /// A verdict without reasons: every figure is usable.
    #[must_use]
    pub fn usable() -> Self {
        Self { valid: true, ..Self::default() }
    }

    /// Adds a reason, which starts with its kind and a colon, and the figures that it spoils.
    pub fn spoil(&mut self, reason: impl Into<String>, figures: Figures) {
        let reason = reason.into();
        let kind = reason.split(':').next().unwrap_or_default().to_owned();
        self.valid &= !figures.contains(Figure::P50);
        self.spoiled.push(SpoiledFigures { reason: kind, figures });
        self.reasons.push(reason);
    }

    /// Adds that the path of the requests is not proven, which spoils all figures.
    pub fn spoil_by_path(&mut self, reason: &str) {
        self.spoil(format!("path-not-proven: {reason}"), Figures::all());
    }

    /// Adds a reason in first place, as the possible cause of all others.
    pub fn spoil_first(&mut self, reason: impl Into<String>, figures: Figures) {
        self.spoil(reason, figures);
        self.reasons.rotate_right(1);
        self.spoiled.rotate_right(1);
    }

    /// True if a figure may be used.
    #[must_use]
    pub fn is_usable(&self, figure: Figure) -> bool {
        !self.spoiled_figures().contains(figure)
    }

    /// All figures that must not be used.
    #[must_use]
    pub fn spoiled_figures(&self) -> Figures {
        if self.spoiled.len() < self.reasons.len() || (self.spoiled.is_empty() && !self.valid) {
            return Figures::all();
        }
        self.spoiled.iter().fold(Figures::none(), |all, one| all.union(one.figures))
    }

    /// Reasons with the figures that each spoils.
    pub fn reasons_with_figures(&self) -> impl Iterator<Item = (&str, Figures)> {
        let figures = |index: usize| self.spoiled.get(index).map_or_else(Figures::all, |one| one.figures);
        self.reasons.iter().enumerate().map(move |(index, reason)| (reason.as_str(), figures(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_spoils_only_its_figures() {
        let mut verdict = Verdict::usable();
        verdict.spoil("schedule-lag: late by 1.2 ms at p99", Figures::times_from(Figure::P99));
        assert!(verdict.valid && verdict.is_usable(Figure::P95) && verdict.is_usable(Figure::Cpu));
        assert!(!verdict.is_usable(Figure::P99) && !verdict.is_usable(Figure::Max));
        verdict.spoil("saturated: the target", Figures::times());
        assert!(!verdict.valid && !verdict.is_usable(Figure::P50) && verdict.is_usable(Figure::Memory));
        assert_eq!(verdict.spoiled[0].reason, "schedule-lag");
        let read: Verdict = serde_json::from_value(serde_json::to_value(&verdict).unwrap()).unwrap();
        assert_eq!(read, verdict);
    }

    #[test]
    fn reason_without_its_figures_spoils_all() {
        let read = r#"{"valid":false,"saturated":false,"reasons":["schedule-lag: late"],"notes":[]}"#;
        let verdict: Verdict = serde_json::from_str(read).unwrap();
        assert!(Figure::ALL.into_iter().all(|figure| !verdict.is_usable(figure)));
        assert_eq!(verdict.reasons_with_figures().next(), Some(("schedule-lag: late", Figures::all())));
    }
}
