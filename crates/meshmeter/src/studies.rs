//! The preset studies, embedded in the binary.

/// A study by name.
pub struct Study {
    /// What users type.
    pub name: &'static str,
    /// Its experiment file.
    pub yaml: &'static str,
}

/// Every preset study.
pub const STUDIES: [Study; 4] = [
    Study { name: "sidecar-cost", yaml: include_str!("../../../studies/sidecar-cost.yaml") },
    Study { name: "mesh-modes", yaml: include_str!("../../../studies/mesh-modes.yaml") },
    Study { name: "mesh-size", yaml: include_str!("../../../studies/mesh-size.yaml") },
    Study { name: "egress", yaml: include_str!("../../../studies/egress.yaml") },
];

/// Finds a study.
pub fn find(name: &str) -> Option<&'static Study> {
    STUDIES.iter().find(|study| study.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Experiment;

    #[test]
    fn every_study_is_an_experiment_of_its_name() {
        for study in &STUDIES {
            let experiment = Experiment::parse(study.yaml, study.name).expect(study.name);
            assert_eq!(experiment.name, study.name);
        }
    }
}
