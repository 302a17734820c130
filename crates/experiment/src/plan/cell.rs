//! Cells of an experiment: mode × factors × load.

use crate::definition::{Arrival, Experiment, LoadLevels};
use results::{BACKGROUND_SERVICES, LoadPoint, Mode, OwnedCellKey};

/// Every cell: by combination of factors, then load level, then mode, each in the order of the file.
#[must_use]
pub fn cells(experiment: &Experiment) -> Vec<OwnedCellKey> {
    let mut cells = Vec::new();
    for (factors, one) in experiment.each_combination() {
        for load in level_points(one, experiment) {
            let of_mode =
                |mode: &Mode| OwnedCellKey { mode: *mode, factors: factors.clone(), load: load.clone() };
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
