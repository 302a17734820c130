//! Which figures of a measurement may be used.

use super::figure::{Figure, Figures};
use serde::{Deserialize, Serialize};

/// Which figures of a measurement may be used, and if not, why not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// No reason spoils the median. Other figures may still be spoiled: see [`Self::is_usable`].
    pub valid: bool,
    /// The target (or the generator, see `reasons`) did not keep up with the offered rate.
    pub saturated: bool,
    /// Why figures are spoiled; empty if none is. Each reason opens with its kind and a colon, such as `saturated: …`.
    pub reasons: Vec<String>,
    /// The figures that each reason spoils, in the order of `reasons`. Files of earlier versions lack them: there any
    /// reason spoils all figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoiled: Vec<SpoiledFigures>,
    /// What a reader should know of usable figures too, such as a service time that hides a stall.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The figures that one reason spoils.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpoiledFigures {
    /// The reason's kind, such as `schedule-lag`.
    pub reason: String,
    /// The figures that must not be used.
    pub figures: Figures,
}

impl Verdict {
    /// A verdict without reasons: every figure is usable.
    #[must_use]
    pub fn usable() -> Self {
        Self { valid: true, ..Self::default() }
    }

    /// Adds a reason, which opens with its kind and a colon, and the figures that it spoils.
    pub fn spoil(&mut self, reason: impl Into<String>, figures: Figures) {
        let reason = reason.into();
        let kind = reason.split(':').next().unwrap_or_default().to_owned();
        self.valid &= !figures.contains(Figure::P50);
        self.spoiled.push(SpoiledFigures { reason: kind, figures });
        self.reasons.push(reason);
    }

    /// The same as the first reason, from which all others may follow.
    pub fn spoil_first(&mut self, reason: impl Into<String>, figures: Figures) {
        self.spoil(reason, figures);
        self.reasons.rotate_right(1);
        self.spoiled.rotate_right(1);
    }

    /// Whether a figure may be used.
    #[must_use]
    pub fn is_usable(&self, figure: Figure) -> bool {
        !self.spoiled_figures().contains(figure)
    }

    /// All figures that must not be used.
    #[must_use]
    pub fn spoiled_figures(&self) -> Figures {
        // As in files of earlier versions: without a list, a reason spoils all figures.
        if self.spoiled.len() < self.reasons.len() || (self.spoiled.is_empty() && !self.valid) {
            return Figures::all();
        }
        self.spoiled.iter().fold(Figures::none(), |all, one| all.union(one.figures))
    }

    /// The reasons with the figures that each spoils: all figures in files of earlier versions.
    pub fn reasons_with_figures(&self) -> impl Iterator<Item = (&str, Figures)> {
        let figures = |index: usize| self.spoiled.get(index).map_or_else(Figures::all, |one| one.figures);
        self.reasons.iter().enumerate().map(move |(index, reason)| (reason.as_str(), figures(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_spoils_its_figures_alone() {
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
    fn a_reason_of_an_earlier_version_spoils_all() {
        let old = r#"{"valid":false,"saturated":false,"reasons":["schedule-lag: late"],"notes":[]}"#;
        let verdict: Verdict = serde_json::from_str(old).unwrap();
        assert!(Figure::ALL.into_iter().all(|figure| !verdict.is_usable(figure)));
        assert_eq!(verdict.reasons_with_figures().next(), Some(("schedule-lag: late", Figures::all())));
        let good: Verdict = serde_json::from_str(r#"{"valid":true,"saturated":false,"reasons":[]}"#).unwrap();
        assert!(Figure::ALL.into_iter().all(|figure| good.is_usable(figure)));
    }
}
