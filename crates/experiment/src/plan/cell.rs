//! Cells of an experiment: mode × factors × load.
//!
//! A cell has the values of the factors that can touch its mode. Combinations that differ in other factors alone share it:
//! it is measured in the first of them that can run, so that a control plane beside it is the same in every repeat.

use crate::definition::{Arrival, Experiment, LoadLevels};
use results::{BACKGROUND_SERVICES, Factors, LoadPoint, Mode, OwnedCellKey};
use std::collections::HashSet;

/// Every cell: by combination of factors, then load level, then mode, each in the order of the file.
#[must_use]
pub fn cells(experiment: &Experiment) -> Vec<OwnedCellKey> {
    let measured = MeasuredCells::new(experiment);
    let mut cells = Vec::new();
    for (combination, (_, one)) in experiment.each_combination().enumerate() {
        for load in level_points(one, experiment) {
            let of_mode = |(index, mode): (usize, &Mode)| {
                let factors = measured.factors(index, combination)?.clone();
                let load = load_in(&factors, load.clone());
                Some(OwnedCellKey { mode: *mode, factors, load })
            };
            cells.extend(experiment.modes.iter().enumerate().filter_map(of_mode));
        }
    }
    cells
}

/// The combination in which each cell is measured.
pub(super) struct MeasuredCells {
    /// By mode and combination: factors of the cells that are measured there.
    factors: Vec<Vec<Option<Factors>>>,
}

impl MeasuredCells {
    pub(super) fn new(experiment: &Experiment) -> Self {
        let of_mode = |mode: &Mode| {
            let mut known = HashSet::new();
            let combinations = experiment.each_combination().map(|(all, _)| {
                let own = experiment.touching(*mode, &all);
                (experiment.has_cell(*mode, &all) && known.insert(own.clone())).then_some(own)
            });
            combinations.collect()
        };
        Self { factors: experiment.modes.iter().map(of_mode).collect() }
    }

    /// Factors of the cells of a mode that are measured in a combination; absent if it has none.
    pub(super) fn factors(&self, mode: usize, combination: usize) -> Option<&Factors> {
        self.factors[mode][combination].as_ref()
    }
}

/// Load of a cell with these factors.
pub(super) fn load_in(factors: &Factors, load: LoadPoint) -> LoadPoint {
    let is_touched = factors.contains_key(BACKGROUND_SERVICES);
    LoadPoint { surrounding_services: load.surrounding_services.filter(|_| is_touched), ..load }
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
        payload_bytes: if settings.stream.declared { 0 } else { combination.server.payload_bytes },
        stream: settings.stream.load(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, PlannedTrial, topology_of};
    use results::{CellKey, UnavailableMode};

    fn counted(text: &str) -> Vec<(&'static str, usize)> {
        let experiment =
            Experiment::parse(text, "t").unwrap_or_else(|error| panic!("{}", error.render(false)));
        let cells = cells(&experiment);
        let plan = Plan::new(&experiment, 3);
        assert_eq!(plan.trials.len(), cells.len() * experiment.repeats);
        let known: HashSet<CellKey<'_>> = cells.iter().map(OwnedCellKey::key).collect();
        assert!(plan.trials.iter().all(|trial| known.contains(&trial.cell())));
        assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
        for repeat in plan.repeats() {
            let measured: HashSet<CellKey<'_>> = repeat.iter().map(PlannedTrial::cell).collect();
            assert_eq!(measured, known, "each cell once");
        }
        assert!(cells.iter().all(|cell| topology_of(&experiment, cell).is_some()));
        let of_mode = |mode: &Mode| (mode.name(), cells.iter().filter(|cell| cell.mode == *mode).count());
        experiment.modes.iter().map(of_mode).collect()
    }

    #[test]
    fn cells_that_a_factor_cannot_touch_are_measured_once() {
        let proxies = "{name: t, modes: [none, gateway, sidecar], load: {rate: [100, 300]}, repeats: 3, \
                       proxy: {mtls: [off, strict], access-log: [off, json]}}";
        assert_eq!(counted(proxies), [("none", 2), ("gateway", 4), ("sidecar", 8)]);
        let services = "{name: t, modes: [none, sidecar], load: {rate: 100, payload: [1KiB, 4KiB]}, repeats: 3, \
                        server: {delay: [0s, 1ms]}, proxy: {workers: [1, 2, 4]}}";
        assert_eq!(counted(services), [("none", 4), ("sidecar", 12)]);
        let istio = "{name: t, mesh: istio, modes: [none, sidecar, ambient, ingress], load: {rate: 100}, repeats: 3, \
                     istio: {ztunnel: [shared, per-pod], background-services: {services: [0, 100]}}, \
                     gateway: {cpu: [500m, 1]}}";
        assert_eq!(counted(istio), [("none", 1), ("sidecar", 2), ("ambient", 4), ("ingress", 4)]);
        let direct = "{name: t, mesh: istio, modes: [ingress], load: {rate: 100}, repeats: 3, \
                      ingress: {scenario: [direct, no-filters]}, gateway: {cpu: [500m, 1]}, \
                      istio: {background-services: {services: [0, 100]}}}";
        assert_eq!(counted(direct), [("ingress", 1 + 4)]);
        let of_envoy = "{name: t, modes: [gateway], load: {clients: [1, 2]}, repeats: 3, \
                        ingress: {scenario: [no-filters, jwt, direct]}, gateway: {cpu: [500m, 1, 2]}}";
        assert_eq!(counted(of_envoy), [("gateway", 2 * (1 + 6))]);
        let plain = "{name: t, modes: [none, sidecar], load: {clients: [1, 2]}, repeats: 3}";
        assert_eq!(counted(plain), [("none", 2), ("sidecar", 2)]);
    }

    #[test]
    fn shared_cell_is_measured_with_the_first_values_that_can_run() {
        let text = "{name: t, mesh: istio, modes: [none, sidecar], load: {rate: 100}, repeats: 4, \
                    components: {istio: [1.28.0, 1.29.4]}, proxy: {access-log: [off, json]}}";
        let mut experiment = Experiment::parse(text, "t").unwrap();
        let versions = |experiment: &Experiment| -> HashSet<Option<String>> {
            let plan = Plan::new(experiment, 1);
            let none = plan.trials.iter().filter(|trial| trial.mode() == Mode::None);
            none.map(|trial| trial.spec.components.istio.clone()).collect()
        };
        assert_eq!(versions(&experiment), HashSet::from([Some("1.28.0".to_owned())]));
        let first = experiment.combinations[0].factors.iter().filter(|(key, _)| *key == "components.istio");
        let factors: Factors = first.map(|(key, value)| (key.clone(), value.clone())).collect();
        let left_out = [Mode::None, Mode::Sidecar].map(|mode| UnavailableMode {
            mode,
            factors: factors.clone(),
            reason: "there is none".to_owned(),
            hint: None,
        });
        experiment.leave_out(&left_out);
        assert_eq!(versions(&experiment), HashSet::from([Some("1.29.4".to_owned())]));
        assert_eq!(cells(&experiment).len(), 1 + 2);
    }
}
