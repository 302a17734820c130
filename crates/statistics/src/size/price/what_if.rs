//! Change of a price if settings had other values: those of factors that the runs vary, other requests of sidecars, other waypoints.
//!
//! Repeats of a run measure all values of its factors: changes are computed repeat by repeat.

use super::entries::Entries;
use super::totals::Totals;
use super::traffic::{Kind, Unit, Waypoints, has};
use super::{Cell, FullScale, Laws, MeasuredRun, PriceQuestion, Target, laws};
use experiment::dataplane::ModeParts;
use experiment::topology::Resources;
use results::units::format_size;
use results::{Factors, Mode, SizeNote, SizeNoteKind, WhatIfPrices};

/// Other values than those that are priced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// Values of factors of the runs, whose first values are priced.
    pub factors: Factors,
    /// Requests of each sidecar, where they change.
    pub sidecar_requests: Resources,
    /// Waypoints, if they change.
    pub waypoints: Option<Waypoints>,
}

impl WhatIf {
    /// Each setting as text.
    fn settings(&self) -> Vec<String> {
        let mut settings = results::factor_texts(&self.factors);
        let Resources { cpu_request_cores, memory_request_bytes, .. } = self.sidecar_requests;
        settings.extend(cpu_request_cores.map(|cores| format!("sidecar.cpu-request {cores}")));
        settings.extend(
            memory_request_bytes.map(|bytes| format!("sidecar.memory-request {}", format_size(bytes))),
        );
        settings.extend(self.waypoints.as_ref().map(|waypoints| format!("waypoints {waypoints}")));
        settings
    }

    /// Values of the factors that are priced: the first ones of a run. Refused if a run does not have a value.
    pub(super) fn base(&self, runs: &[MeasuredRun]) -> Result<Factors, SizeNote> {
        let mut base = Factors::new();
        for (key, value) in &self.factors {
            for run in runs {
                let values = run.experiment.factor(key).map_or(&[][..], |factor| factor.values.as_slice());
                if !values.contains(value) {
                    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                    let measured =
                        if values.is_empty() { "one value of it".to_owned() } else { values.join(", ") };
                    let detail = format!(
                        "{key} {value}: {} has {measured}, and `--set` takes those of its factors",
                        run.directory
                    );
                    return Err(SizeNote::naming(SizeNoteKind::NotMeasured, detail));
                }
                base.insert(key.clone(), values[0].clone());
            }
        }
        Ok(base)
    }

    /// The mesh with these settings, as far as they are not measured.
    fn full(&self, full: &FullScale) -> FullScale {
        let mut full = full.clone();
        let members = full.topology.workloads.iter().filter(|one| one.in_mesh && !one.is_external());
        for name in members.map(|one| one.qualified_name()) {
            let own = full.sidecar_requests.entry(name).or_default();
            let Resources { cpu_request_cores, memory_request_bytes, .. } = self.sidecar_requests;
            own.cpu_request_cores = cpu_request_cores.or(own.cpu_request_cores);
            own.memory_request_bytes = memory_request_bytes.or(own.memory_request_bytes);
        }
        full
    }

    fn touches(&self, mode: Mode, parts: ModeParts, base: &[Cell<'_>], head: &[Cell<'_>]) -> bool {
        let plane = parts.data_plane.proxies();
        let is_in_base = |cell: &Cell<'_>| base.iter().any(|own| std::ptr::eq(own.trials, cell.trials));
        (self.sidecar_requests != Resources::default() && has(plane, Kind::Sidecar))
            || (self.waypoints.is_some() && has(plane, Kind::Waypoint))
            || head.iter().any(|cell| cell.mode == mode && !is_in_base(cell))
    }
}

/// A mode as it is priced.
pub(super) struct Priced {
    pub mode: Mode,
    pub parts: ModeParts,
    pub laws: Laws,
    pub units: Vec<Unit>,
}

impl Priced {
    /// Refused if the proxies of the mode have no law.
    pub fn new(
        (mode, parts): (Mode, ModeParts),
        cells: &[Cell<'_>],
        target: &Target<'_>,
    ) -> Result<Self, SizeNote> {
        let laws = laws(mode, cells)?;
        let units = target.traffic.units(&target.requests, parts.data_plane.proxies(), target.nodes);
        Ok(Self { mode, parts, laws, units })
    }

    /// All proxies together.
    pub fn totals(&self, target: &Target<'_>) -> Totals<'_> {
        Totals::new(&self.units.iter().collect::<Vec<_>>(), &self.laws, target)
    }
}

/// Changes of the priced modes; those that the settings do not touch are left out, and refused if none is left.
pub(super) fn what_if(
    question: &PriceQuestion,
    what_if: &WhatIf,
    (target, base, priced): (&Target<'_>, &[Cell<'_>], &[Priced]),
    head: &[Cell<'_>],
) -> Result<WhatIfPrices, SizeNote> {
    let full = what_if.full(target.full);
    let waypoints = what_if.waypoints.clone().unwrap_or_default();
    let head_target = Target::new(question, &full, head, waypoints)?;
    let mut changes = WhatIfPrices { settings: what_if.settings(), modes: Vec::new() };
    for one in priced.iter().filter(|one| what_if.touches(one.mode, one.parts, base, head)) {
        let changed = Priced::new((one.mode, one.parts), head, &head_target)?;
        let (before, after) = (one.totals(target), changed.totals(&head_target));
        let mut change = after.change_from(&before, one.mode, question.prices.as_ref());
        change.entries = Entries::new(base).changes(head, one.mode, &what_if.factors);
        changes.modes.push(change);
    }
    if changes.modes.is_empty() {
        let detail = format!("a mode that {} changes", changes.settings.join(", "));
        return Err(SizeNote::naming(SizeNoteKind::NotMeasured, detail));
    }
    Ok(changes)
}
