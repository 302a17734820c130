//! Terminal, Markdown, HTML and JSON hold the same disturbed figures, and say first if noise was accepted.

mod fixture;

use fixture::Chance;
use report::terminal::{Options, render};
use report::{RunData, cells_csv, html, junit, markdown};
use results::finding::StatedFinding;
use results::{
    Cell, DisturbedFigures, Figures, MachineUsage, Mode, Retake, Summary, TopProcess, TrialRecord,
};

const NOISE: &str = "other-processes: others took 1.70 cores (rustc 1.20, cargo 0.50)";

/// Disturbs a share of the trials, their drivers included, by other programs or by a late generator.
fn disturb(trials: &mut [TrialRecord], share: f64, chance: &mut Chance) {
    for trial in trials {
        let is_disturbed = chance.even() < share;
        let reason = if chance.even() < 0.7 { NOISE } else { "schedule-lag: the generator itself was late" };
        let process = |name: &str, cpu_cores| TopProcess { name: name.to_owned(), cpu_cores };
        trial.machine = Some(MachineUsage {
            cpus: 4,
            busy_cores: 2.0,
            other_processes_cores: 0.8 + chance.even(),
            top_other_processes: vec![process("rustc", 1.2), process("cargo", 0.5)],
            ..MachineUsage::default()
        });
        if is_disturbed {
            let verdicts = trial.drivers.iter_mut().map(|driver| &mut driver.verdict);
            verdicts.chain([&mut trial.verdict]).for_each(|verdict| verdict.spoil(reason, Figures::all()));
        }
    }
}

/// Runs of a pair, of a topology and of fleets, of which some or all trials are disturbed.
fn runs() -> impl Iterator<Item = RunData> {
    (0..9).map(|seed| {
        let mut chance = Chance::new(seed);
        let run = match seed % 3 {
            0 => fixture::run(fixture::trials(&[Mode::None, Mode::Sidecar], &[500.0, 1000.0], 4)),
            1 => fixture::run(fixture::tiered::tiered_trials(1)),
            _ => fixture::fleets::fleet_run("proxies", &["100", "200"]),
        };
        let RunData { experiment_yaml, experiment, host, mut trials, summary, notes, .. } = run;
        let is_fleet = seed % 3 == 2;
        disturb(&mut trials, if seed < 6 && !is_fleet { 0.6 } else { 1.0 }, &mut chance);
        RunData::new(experiment_yaml, experiment, 42, summary.trials_planned, host, trials, notes)
    })
}

/// Disturbed figures of a summary with more than one value, except those of an only driver or service,
/// which are the cell's.
fn with_range(summary: &Summary) -> usize {
    let of_cell = |cell: &Cell| {
        let own = cell.disturbed.iter().map(|disturbed| &disturbed.figures);
        let drivers = cell.drivers.iter().filter(|_| cell.drivers.len() > 1).map(|driver| &driver.disturbed);
        let services =
            cell.services.iter().filter(|_| cell.services.len() > 1).map(|service| &service.disturbed);
        let edges = cell.edges.iter().map(|edge| &edge.disturbed);
        let all = own.chain(drivers).chain(services).chain(edges).flat_map(DisturbedFigures::values);
        all.filter(|figure| figure.least < figure.greatest).count()
    };
    summary.cells.iter().map(of_cell).sum()
}

fn outputs(run: &RunData) -> [(&'static str, String); 3] {
    let terminal = render(&run.summary, Options { width: 400, colours: false });
    [("terminal", terminal), ("Markdown", markdown::render(run)), ("HTML", html::render(run))]
}

/// Figures with their ranges in the tables below this heading.
fn in_tables(output: &str, heading: &str) -> Vec<String> {
    let start = output.find(heading).unwrap_or_else(|| panic!("no {heading} in {output}"));
    let is_end = |line: &&str| {
        line.starts_with("· ")
            || line.contains(" recorded of ")
            || *line == "```"
            || line.contains("id=\"left-out\"")
    };
    let lines = output[start..].lines().take_while(|line| !is_end(line));
    let is_figure = |word: &&str| word.contains(" (") && word.contains('–') && word.ends_with(')');
    let words = lines.flat_map(|line| line.split(['<', '>'])).flat_map(|part| part.split("  "));
    words.map(str::trim).filter(is_figure).map(str::to_owned).collect()
}

#[test]
fn every_disturbed_figure_is_in_all_outputs() {
    for (number, run) in runs().enumerate() {
        let json = serde_json::to_value(&run.summary).unwrap();
        let summary: Summary = serde_json::from_value(json).unwrap();
        let expected = with_range(&summary);
        assert!(expected > 3, "run {number}: {expected}");
        let [terminal, markdown, html] = outputs(&run).map(|(name, output)| {
            in_tables(
                &output,
                if name == "HTML" { "<section id=\"disturbed\">" } else { "Disturbed figures" },
            )
        });
        assert_eq!(terminal.len(), expected, "run {number}: {terminal:?}");
        assert_eq!(terminal, markdown, "run {number}");
        assert_eq!(terminal, html, "run {number}");
    }
}

#[test]
fn run_without_disturbed_trials_has_no_such_part() {
    let run = fixture::run(fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 3));
    assert!(!serde_json::to_string(&run.summary).unwrap().contains("disturbed"));
    for (name, output) in outputs(&run) {
        assert!(!output.to_lowercase().contains("disturbed figures"), "{name}");
        assert!(!output.contains("oise accepted"), "{name}");
    }
}

#[test]
fn sentence_names_noise_and_the_figures_of_each_mode() {
    let mut trials = fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 2);
    for trial in &mut trials {
        trial.verdict.spoil(NOISE, Figures::all());
        let others = if trial.repeat == 0 { 0.8 } else { 1.9 };
        let process = |name: &str, cpu_cores| TopProcess { name: name.to_owned(), cpu_cores };
        trial.machine = Some(MachineUsage {
            other_processes_cores: others,
            top_other_processes: vec![process("rustc", others - 0.2), process("cargo", 0.2)],
            ..MachineUsage::default()
        });
        let times = &mut trial.result.as_mut().unwrap().response_time_us;
        times.p50 = Some(if trial.mode == Mode::None { 480.0 } else { 2950.0 });
    }
    let run = fixture::run(trials);
    let line = "Other programs (rustc, cargo) took 0.8–1.9 cores in all 4 trials.";
    let detail = "Disturbed: none 0.48 ms, sidecar 2.95 ms.";
    let is_it = |stated: &StatedFinding| stated.text == line && stated.detail == detail;
    assert!(run.summary.findings.iter().any(is_it), "{:?}", run.summary.findings);
    for (name, output) in outputs(&run) {
        // Numbers are not separated from their units.
        let flat = output.replace(['\u{a0}', '\n'], " ").replace('\u{2060}', "").replace("  ", " ");
        assert!(flat.contains(line) && flat.contains(detail), "{name}: {flat}");
    }
}

/// Trials of which each take was disturbed: a rerun is a take of its trial.
#[test]
fn run_without_a_valid_trial_says_why_and_what_helps_in_its_first_line() {
    let mut trials = fixture::trials(&[Mode::None, Mode::Sidecar], &[1000.0], 2);
    let mut rerun = trials[0].clone();
    rerun.index = trials.len();
    rerun.retake = Some(Retake { take: 2, of: 0, because: vec![NOISE.to_owned()] });
    trials.push(rerun);
    trials.iter_mut().for_each(|trial| trial.verdict.spoil(NOISE, Figures::times()));
    let run = fixture::run(trials);
    let line = "No trial is valid: noise of the machine disturbed all 4 trials.";
    assert_eq!(run.summary.findings[0].text, line);
    assert!(
        run.summary.findings[0].detail.starts_with("`--accept-noise` draws estimates from these trials.")
    );
    for (name, output) in outputs(&run) {
        let flat = output.replace('\u{a0}', " ").replace("\\`", "`");
        assert!(flat.contains(line) && flat.contains("`--accept-noise` draws"), "{name}: {flat}");
        assert!(flat.contains(" in all 4 trials; disturbed: none"), "{name}: {flat}");
    }
    let accepted = run.accepting_noise();
    assert!(
        accepted.summary.findings[0].text.starts_with("At 1000/s a sidecar pair "),
        "{:?}",
        accepted.summary.findings[0]
    );
}

#[test]
fn accepted_noise_is_said_before_anything_else_in_every_output() {
    for run in runs() {
        let disturbed =
            run.summary.cells.iter().filter_map(|cell| Some(cell.disturbed.as_ref()?.trials)).sum::<usize>();
        let recorded = run.summary.trials_recorded;
        let valid: usize = run.summary.cells.iter().map(|cell| cell.valid).sum();
        let run = run.accepting_noise();
        let said = format!("Noise accepted: {disturbed} of {recorded} trials ");
        let noise = run.summary.noise_accepted.as_ref().expect("it is in the summary");
        assert_eq!((noise.trials, noise.of), (disturbed, recorded));
        assert_eq!(run.summary.cells.iter().map(|cell| cell.valid).sum::<usize>(), valid + disturbed);
        let [(_, terminal), (_, markdown), (_, html)] = outputs(&run);
        assert!(terminal.starts_with(&said), "{terminal}");
        let first = markdown.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).take(2);
        assert!(first.collect::<Vec<_>>().iter().any(|line| line.starts_with(&said)), "{markdown}");
        assert!(html.find(&said).expect("it is said") < html.find("<main>").unwrap());
        assert!(junit::render(&run).contains(&said));
        let csv = cells_csv::table(&run.summary);
        assert!(csv.lines().next().unwrap().contains(",noise_accepted"), "{csv}");
        assert!(run.summary.cells.iter().all(|cell| cell.disturbed.is_none()));
    }
}
