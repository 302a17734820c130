//! Sections that only some kinds of runs have.

use super::*;

#[test]
fn mesh_size_costs_have_a_section() {
    let run = fixture::run(fixture::sized_trials());
    let sized = page(&run);
    assert!(has_section(&sized, "sizes"));
    for text in [
        "among 0 and 1000 background services",
        "sidecar, client-proxy",
        "anonymous memory, kB",
        "Requests among 1000 background services against those among 0.",
        "sidecar among 1000 background services",
        "1000/s, 1000 background services",
    ] {
        assert!(sized.contains(&shown(text)), "the page does not say {text:?}");
    }
    let section = sized.split("<section id=\"sizes\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(section.contains("90.0") || section.contains("90"), "{section}");
    assert!(!has_section(&page(&fixture::run(fixture::usual_trials())), "sizes"));
}

#[test]
fn proxies_never_reached_are_counted_and_left_out_of_times() {
    let run = fixture::fleets::fleet_run("proxies", &["100", "200"]);
    let page = page(&fixture::fleets::with_a_proxy_never_reached(run));
    let fleets = words_of(section(&page, "fleets"));
    assert!(fleets.contains("never"), "{fleets}");
    assert!(shown(&page).contains("never got a configuration or a change"));
}

#[test]
fn swept_cpu_limit_has_scaling_law_and_extrapolation() {
    let mut trials = fixture::factor_trials(&[("proxy.cpu", &["1", "2", "4", "8"])]);
    let mut chance = fixture::Chance::new(7);
    for trial in &mut trials {
        trial.load = LoadPoint { rate: None, clients: Some(20), connections: 20, ..trial.load.clone() };
        let cores = trial.factors["proxy.cpu"].quantity("proxy.cpu").unwrap();
        let throughput = 4000.0 * cores / (1.0 + 0.05 * (cores - 1.0)) * (1.0 + 0.02 * chance.normal());
        let result = trial.result.as_mut().unwrap();
        result.rate = Rates { offered: None, sent: throughput, completed: throughput };
    }
    let run = fixture::run(trials);
    let law = &run.summary.scaling.as_ref().expect("a law").main;
    assert_eq!((law.factor.as_str(), law.measured.to), ("proxy.cpu", 8.0));
    assert!((law.parameters.lambda.estimate / 4000.0 - 1.0).abs() < 0.1, "{:?}", law.parameters);
    let page = page(&run);
    let scaling = section(&page, "scaling");
    assert!(scaling.contains("curve dashed") && scaling.contains("Beyond 1 to 8 nothing was measured"));
    let text = report::terminal::render(&run.summary, Options { width: 120, colours: false });
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("by the Universal Scalability Law"), "{text}");
}

/// 1000 domains take 126 MB in this run, 126 kB each, and delay a further one by 3 s.
#[test]
fn gateway_domains_have_cost_and_propagation_time() {
    let mut trials = fixture::gateway_trials();
    for trial in &mut trials {
        let domains = if trial.factors["gateway.cpu"].to_string() == "100m" { 100_u64 } else { 1100 };
        trial.factors = Factors::from([("ingress.domains".to_owned(), FactorValue::Number(domains.into()))]);
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            let configuration = ProxyConfiguration { size_bytes: 126_000 * domains, ..Default::default() };
            usage.holdings =
                Some(ProxyFootprint { configuration: Some(configuration), ..ProxyFootprint::default() });
        }
        trial.further_domain = Some(FurtherDomain {
            gateway: "gateway".to_owned(),
            in_force_s: Some(0.2 + 0.003 * domains as f64),
            ..FurtherDomain::default()
        });
    }
    let page = page(&fixture::run(trials));
    let words = words_of(section(&page, "domains"));
    assert!(words.contains("1000 domains, gateway"), "{words}");
    assert!(words.contains("126"), "MB of configuration for each thousand: {words}");
    assert!(words.contains("Propagation of a further domain"), "{words}");
    assert!(!has_section(&render(&fixture::run(fixture::usual_trials())), "domains"));
}

#[test]
fn cluster_nodes_are_sorted_by_usage() {
    let mut trials = fixture::usual_trials();
    for (index, trial) in trials.iter_mut().enumerate() {
        let node = |number: usize| NodeUsage {
            name: format!("node-{number}"),
            cpus: Some(4),
            // Only the mean over trials counts; trials without the figure add nothing.
            busy_cores: number as f64 / 4.0 + if index % 2 == 0 { 0.125 } else { -0.125 },
            system_cores: Some(0.25),
            other_cores: (number == 10).then_some(0.5),
            other_system_cores: (number == 10).then_some(0.125),
            ..NodeUsage::default()
        };
        trial.machine = None;
        trial.nodes = (1..=10).map(node).collect();
    }
    let page = page(&fixture::run(trials));
    let machine = words_of(section(&page, "machine")).replace('\u{a0}', " ");
    let busiest = machine.find("Node node-10 during trials\n2.").expect("the busiest node");
    assert!(busiest < machine.find("Node node-9 during trials").expect("the next one"), "{machine}");
    let says = "of 4 cores busy, 0.250 cores in the kernel; 0.500 cores in no container of the experiment, 0.125 cores of it";
    assert_eq!(machine.matches(says).count(), 1, "{machine}");
    assert!(machine.contains("Less busy nodes\n2") && !machine.contains("node-2 "), "{machine}");
    assert!(!machine.contains("Other processes during trials"), "{machine}");
}

#[test]
fn many_gateways_are_folded() {
    let mut trials = fixture::gateway_trials();
    for trial in &mut trials {
        let gateway = trial.gateways[0].clone();
        let named =
            |number: usize| GatewayRecord { name: format!("tenant-{number}-gateway"), ..gateway.clone() };
        trial.gateways = (1..=12).map(named).collect();
    }
    let run = fixture::run(trials);
    let page = page(&run);
    let gateways = section(&page, "gateways");
    assert!(gateways.contains("All 12 gateways of gateway at"), "{gateways}");
    let (shown, folded) = gateways.split_once("<details>").expect("a folded list");
    let cells = run.summary.cells.len();
    assert_eq!(shown.matches("-gateway</th>").count(), 5 * cells);
    assert_eq!(folded.matches("-gateway</th>").count(), 12 * cells);
    let text = report::terminal::render(&run.summary, Options { width: 120, colours: false });
    assert!(text.contains("The 5 with most CPU of 12"), "{text}");
}

#[test]
fn several_drivers_and_services_have_own_sections() {
    let five = page(&fixture::run(fixture::tenant_trials(5)));
    for text in ["tenant-5/generator", "slowest tenant-5/generator", "tenant-1/c", "not shown", "missed"] {
        assert!(five.contains(&shown(text)), "the page does not say {text:?}");
    }
    let drivers = |page: &str| {
        page.split("<section id=\"drivers\">").nth(1).unwrap().split("</section>").next().unwrap().to_owned()
    };
    assert_eq!(drivers(&five).matches("<details open>").count(), 2);
    assert_eq!(drivers(&five).matches("<details>").count(), 0);
    let fifty = drivers(&page(&fixture::run(fixture::tenant_trials(50))));
    assert_eq!(fifty.matches("<details open>").count(), 2, "the slowest of two cells");
    assert_eq!(
        (fifty.matches("<details>").count(), fifty.matches("<tr><th scope=\"row\">").count()),
        (2, 2 * 5 + 100)
    );
    let pair = page(&fixture::run(fixture::usual_trials()));
    assert!(!has_section(&pair, "drivers") && !has_section(&pair, "services"));
}

#[test]
fn calls_between_services_have_a_section_unless_run_is_older() {
    let five = page(&fixture::run(fixture::tiered::tiered_trials(5)));
    let edges = section(&five, "edges");
    assert_eq!(edges.matches("<figure>").count(), 1, "a chart for the only load");
    assert_eq!(edges.matches(">20 edges: ").count() + edges.matches(": 20 edges: ").count(), 2, "{edges}");
    for text in
        ["All 20 edges", "slowest tiered-5/a → tiered-5/b2", "5 of 5", "medians with the range over copies"]
    {
        assert!(edges.contains(&shown(text)), "the page does not say {text:?}");
    }
    let services = section(&five, "services");
    assert!(
        services.contains("CPU of proxies") && services.contains("of the proxies in their pods"),
        "{services}"
    );
    let without = page(&fixture::run(fixture::tenant_trials(5)));
    assert!(!has_section(&without, "edges") && !has_section(&without, "graph"));
    assert!(!section(&without, "services").contains("CPU of proxies"));
}

/// Under the table of a topology are its drawing and slowest call, in a run of factors the differences between their values.
#[test]
fn answer_is_followed_by_what_explains_it_and_lists_are_folded() {
    let topology = page(&fixture::run(fixture::tiered::tiered_trials(1)));
    let glance = section(&topology, "glance");
    assert!(glance.contains("Slowest call: <b>tiered-1") && glance.contains("class=\"graph\""), "{glance}");
    for legend in ["services call each other directly: the floor", "a proxy in the pod of every service"] {
        assert!(topology.contains(legend), "{legend}");
    }
    let pair = page(&fixture::run(fixture::usual_trials()));
    assert!(
        !pair.contains("in the pod of every service") && !section(&pair, "glance").contains("Slowest call")
    );
    let logs = page(&fixture::run(fixture::factor_trials(&[("proxy.access-log", &["off", "json"])])));
    let place = |id: &str| logs.find(&format!("<section id=\"{id}\">")).expect("a section");
    assert!(place("glance") < place("differences") && place("differences") < place("percentiles"));
    for folded in ["resources", "holdings", "trials"] {
        assert!(section(&logs, folded).trim_start().starts_with("<details class=\"fold\">"), "{folded}");
    }
}
