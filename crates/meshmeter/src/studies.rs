//! The preset studies, embedded in the binary.

/// A preset study.
pub struct Study {
    /// Name that users type.
    pub name: &'static str,
    /// Its experiment file.
    pub yaml: &'static str,
}

/// Every preset study.
pub const STUDIES: [Study; 12] = [
    Study { name: "sidecar-cost", yaml: include_str!("../../../studies/sidecar-cost.yaml") },
    Study { name: "mesh-modes", yaml: include_str!("../../../studies/mesh-modes.yaml") },
    Study { name: "ai-gateway", yaml: include_str!("../../../studies/ai-gateway.yaml") },
    Study { name: "mesh-size", yaml: include_str!("../../../studies/mesh-size.yaml") },
    Study { name: "istio-upgrade", yaml: include_str!("../../../studies/istio-upgrade.yaml") },
    Study { name: "emojivoto", yaml: include_str!("../../../studies/emojivoto.yaml") },
    Study { name: "tiered-50", yaml: include_str!("../../../studies/tiered-50.yaml") },
    Study { name: "egress", yaml: include_str!("../../../studies/egress.yaml") },
    Study { name: "egress-direct", yaml: include_str!("../../../studies/egress-direct.yaml") },
    Study { name: "ingress-capacity", yaml: include_str!("../../../studies/ingress-capacity.yaml") },
    Study { name: "ingress-scenarios", yaml: include_str!("../../../studies/ingress-scenarios.yaml") },
    Study { name: "control-plane", yaml: include_str!("../../../studies/control-plane.yaml") },
];

/// Finds a study by name.
pub fn find(name: &str) -> Option<&'static Study> {
    STUDIES.iter().find(|study| study.name == name)
}

/// Names of all studies.
pub fn names() -> [&'static str; STUDIES.len()] {
    STUDIES.each_ref().map(|study| study.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory as _;
    use experiment::{Experiment, NoFiles, Override};

    #[test]
    fn the_help_of_run_names_every_study() {
        let help = Cli::command().find_subcommand_mut("run").unwrap().render_long_help().to_string();
        let listed = help.split_once("[studies: ").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
        assert_eq!(listed.split(',').map(str::trim).collect::<Vec<_>>(), names());
    }

    #[test]
    fn every_study_is_an_experiment_of_its_name() {
        for study in &STUDIES {
            let experiment = Experiment::parse(study.yaml, study.name).expect(study.name);
            assert_eq!(experiment.name, study.name);
        }
    }

    #[test]
    fn control_plane_study_can_be_scaled() {
        let study = find("control-plane").unwrap();
        let experiment =
            Experiment::parse_with(study.yaml, study.name, &[Override::scale("0.1")], &NoFiles).unwrap();
        let values: Vec<String> = experiment.factors[0].values.iter().map(ToString::to_string).collect();
        assert_eq!(values, ["13", "25", "50"]);
        assert_eq!(experiment.fleet.unwrap().services, 100);
    }
}
