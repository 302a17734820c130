use super::*;

fn summary(disturbed: &[Option<DisturbedTrials>]) -> Summary {
    let text = include_str!("../../tests/fixture/summary.json");
    let mut summary: Summary = serde_json::from_str(text).expect("the kept summary is good");
    for (cell, disturbed) in summary.cells.iter_mut().zip(disturbed) {
        cell.disturbed.clone_from(disturbed);
    }
    summary.trials_recorded = 4;
    summary
}

fn trials(
    reasons: &[(&str, usize)],
    cores: Option<[f64; 2]>,
    programs: &[(&str, f64)],
) -> Option<DisturbedTrials> {
    let program =
        |(name, cpu_cores): &(&str, f64)| TopProcess { name: (*name).to_owned(), cpu_cores: *cpu_cores };
    Some(DisturbedTrials {
        trials: reasons.iter().map(|(_, trials)| *trials).max().unwrap_or(0),
        reasons: reasons.iter().map(|(kind, trials)| ((*kind).to_owned(), *trials)).collect(),
        other_processes_cores: cores,
        programs: programs.iter().map(program).collect(),
        figures: DisturbedFigures::new(),
    })
}

#[test]
fn noise_names_programs_with_their_cpu_over_all_cells() {
    let one = trials(&[("other-processes", 2)], Some([0.8, 1.2]), &[("rustc", 0.7), ("cargo", 0.1)]);
    let other =
        trials(&[("other-processes", 2)], Some([1.0, 1.9]), &[("cargo", 0.2), ("ld", 0.15), ("sh", 0.01)]);
    let all = noise(&summary(&[one.clone(), other]));
    assert_eq!(all, "Other programs (rustc, cargo, ld) took 0.8–1.9 cores in all 4 trials");
    assert_eq!(noise(&summary(&[one])), "Other programs (rustc, cargo) took 0.8–1.2 cores in 2 of 4 trials");
}

#[test]
fn noise_states_each_kind_with_its_trials() {
    let mixed = trials(&[("other-processes", 1), ("schedule-lag", 2), ("steal", 1)], None, &[]);
    assert_eq!(
        noise(&summary(&[mixed])),
        "Other programs took CPU in 1 of 4 trials; the generator sent late in 2 of 4 trials; the hypervisor took CPU in 1 of 4 \
         trials"
    );
}

#[test]
fn accepted_noise_is_stated_with_its_causes() {
    let accepted = |trials: usize, reasons: &[&str]| {
        let mut summary = summary(&[]);
        let reasons = reasons.iter().map(|kind| ((*kind).to_owned(), trials)).collect();
        summary.noise_accepted = Some(AcceptedNoise { trials, of: 8, reasons });
        accepted(&summary).unwrap()
    };
    assert_eq!(
        accepted(4, &["other-processes"]),
        "Noise accepted: 4 of 8 trials were disturbed by other programs; figures include them."
    );
    assert_eq!(
        accepted(1, &["reading-lag", "schedule-lag", "steal"]),
        "Noise accepted: 1 of 8 trials was disturbed by a late generator and the hypervisor; figures include them."
    );
    assert_eq!(accepted(0, &[]), "Noise accepted: in none of 8 trials noise alone keeps a figure out.");
    assert_eq!(super::accepted(&summary(&[])), None);
}

#[test]
fn keys_of_columns_are_those_of_figures() {
    const OF_PARTS: [&str; 2] = ["requests_per_s", "proxy_cpu_cores"];
    for Shown { key, .. } in FIGURES {
        let metric = serde_json::from_value::<results::Metric>(key.into());
        assert!(metric.is_ok() || OF_PARTS.contains(&key), "{key}");
    }
}
