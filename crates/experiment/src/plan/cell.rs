//! Cells of an experiment: mode × factors × load.

use crate::definition::{Arrival, Experiment, LoadLevels};
use results::{BACKGROUND_SERVICES, CellKey, Conditions, Factors, LoadPoint, Mode};

/// Cell of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// The mode.
    pub mode: Mode,
    /// Values of the factors.
    pub factors: Factors,
    /// The load.
    pub load: LoadPoint,
}

impl PlannedCell {
    /// Key that identifies the cell.
    #[must_use]
    pub fn key(&self) -> CellKey<'_> {
        self.conditions().cell(self.mode)
    }

    /// Factors and load of the cell.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }
}

/// Every cell: by combination of factors, then load level, then mode, each in the order of the file.
#[must_use]
pub fn cells(experiment: &Experiment) -> Vec<PlannedCell> {
    let mut cells = Vec::new();
    for (factors, one) in experiment.each_combination() {
        for load in level_points(one, experiment) {
            let of_mode =
                |mode: &Mode| PlannedCell { mode: *mode, factors: factors.clone(), load: load.clone() };
            let modes = experiment.modes.iter().filter(|mode| experiment.has_cell(**mode, &factors));
            cells.extend(modes.map(of_mode));
        }
    }
    cells
}

/// Load levels of one combination of an experiment.
pub(super) fn level_points(combination: &Experiment, whole: &Experiment) -> Vec<LoadPoint> {
    let settings = &combination.load;
    let compares_sizes = whole.factor(BACKGROUND_SERVICES).is_some();
    let point = |rate, clients: Option<usize>, arrival: Arrival| LoadPoint {
        protocol: settings.protocol.to_string(),
        rate,
        clients,
        connections: settings.connections.or(clients).unwrap_or(1),
        requests_per_connection: settings.requests_per_connection,
        payload_bytes: combination.server.payload_bytes,
        arrival: arrival.name().to_owned(),
        surrounding_services: compares_sizes.then_some(combination.istio.background_services.services),
    };
    match &settings.levels {
        LoadLevels::Open { rates, arrival } => {
            rates.iter().map(|rate| point(Some(*rate), None, *arrival)).collect()
        }
        LoadLevels::Closed { clients } => {
            clients.iter().map(|clients| point(None, Some(*clients), Arrival::Uniform)).collect()
        }
        LoadLevels::Fleet => vec![LoadPoint::of_fleet()],
    }
}
