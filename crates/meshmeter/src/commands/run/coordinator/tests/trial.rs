//! Records and verdicts of trials.

use super::*;

#[test]
fn valid_trial_records_all_observations() {
    let mut script = good();
    let proxy = |name: &str| ScriptedComponent {
        name: name.to_owned(),
        role: Role::Proxy,
        cpu_cores: 0.25,
        throttled_periods_per_s: 0.0,
    };
    script.components = vec![proxy("gateway")];
    let footprint = Footprint { memory_before_load_bytes: Some(7), ..Footprint::default() };
    script.evidence.footprints.insert("gateway".to_owned(), footprint);
    let ran = run_one(script);
    let trial = &ran.trials[0];
    assert!(trial.verdict.valid, "{:?}", trial.verdict);
    let [generator, gateway, kernel] = &trial.components[..] else { panic!("{:?}", trial.components) };
    assert_eq!((generator.name.as_str(), kernel.role), ("generator", Role::Kernel));
    assert!((gateway.cpu_cores() - 0.25).abs() < 1e-6 && (gateway.window_s - 5.0).abs() < 1e-6);
    assert_eq!(gateway.memory_before_load_bytes, Some(7));
    assert!(generator.scheduling.is_some(), "its own count");
    assert_eq!(trial.machine.as_ref().unwrap().cpus, 2);
    let [driver] = &trial.drivers[..] else { panic!("{:?}", trial.drivers) };
    assert_eq!((driver.name.as_str(), driver.target.as_str()), ("generator", "server"));
    assert!(
        driver.result.is_none() && driver.verdict == trial.verdict,
        "those of a single one are the trial's"
    );
    let sent = result().requests.sent + result().warmup.sent;
    assert_eq!(trial.services[0].requests, Some(sent));
    assert_eq!(ran.count(|request| *request == Request::Snapshot), 2);
}

#[test]
fn usage_of_components_that_show_late_covers_window() {
    let proxy = ScriptedComponent {
        name: "gateway".to_owned(),
        role: Role::Proxy,
        cpu_cores: 0.25,
        throttled_periods_per_s: 0.0,
    };
    let script = ScriptedTrial { components: vec![proxy], components_show_late: true, ..good() };
    let ran = run_one(script);
    let gateway = ran.trials[0].components.iter().find(|component| component.name == "gateway").unwrap();
    assert!((gateway.cpu_cores() - 0.25).abs() < 1e-6, "includes time before the window: {gateway:?}");
}

#[test]
fn gateway_figures_cover_window_and_counts_cover_trial() {
    let sent = result().requests.sent + result().warmup.sent;
    let script = |gateway_requests: u64, forwarded: u64| {
        let mut script = good();
        let (name, targets) = ("gateway".to_owned(), vec!["server".to_owned()]);
        script.gateways = vec![ScriptedGateway { name, targets, requests_per_s: 40.0 }];
        let counts = GatewayCounts { requests: gateway_requests, forwarded, ..GatewayCounts::default() };
        script.evidence.gateways.insert("gateway".to_owned(), counts);
        script.evidence.services = vec![ServiceCount {
            name: "server".to_owned(),
            requests: Some(forwarded),
            ..ServiceCount::default()
        }];
        script
    };
    let ran = run_one(script(sent, sent));
    let trial = &ran.trials[0];
    assert!(trial.verdict.valid && trial.verdict.reasons.is_empty(), "{:?}", trial.verdict);
    let [gateway] = &trial.gateways[..] else { panic!("{:?}", trial.gateways) };
    assert_eq!((gateway.requests, gateway.window_s), (200, 5.0));
    let rates = trial.rates.unwrap();
    assert_eq!((rates.generator, rates.gateway, rates.destination), (40.0, Some(40.0), Some(40.0)));
    let ran = run_one(script(sent, sent - 50));
    let reason = ran.first_reason(0);
    assert!(reason.starts_with("rates-disagree: "), "{reason}");
    assert!(reason.contains("10.0/s were answered by the gateway itself"), "{reason}");
}

#[test]
fn a_generator_is_started_with_its_load() {
    let text = "{name: t, modes: [gateway], load: {protocol: grpc, rate: 200, duration: 5s, warmup: 1s}, repeats: 1}";
    let plan = plan(text);
    let ran = run_plan(&plan, []);
    let Some(Request::Start(drivers)) = ran.requests.iter().find(|one| matches!(one, Request::Start(_)))
    else {
        panic!("{:?}", ran.requests)
    };
    let [driver] = &drivers[..] else { panic!("{drivers:?}") };
    let text = text_of(driver);
    assert!(text.starts_with("--rate 200 --arrival uniform"), "{text}");
    assert!(text.contains("--duration 5s") && text.ends_with("--proto echo.proto"), "{text}");
    assert!(text.contains(&format!("--seed {}", plan.trials[0].generator_seed)), "{text}");
    assert!(!text.contains("--start-at"), "it need not agree with anybody");
    let proto = driver.arguments.iter().find_map(|argument| match argument {
        Argument::File { content, .. } => Some(content.as_slice()),
        Argument::Text(_) => None,
    });
    assert_eq!(proto, Some(service::ECHO_PROTO.as_bytes()));
}

#[test]
fn a_generator_of_streams_posts_its_prompt() {
    let text = "{name: t, modes: [none], load: {clients: 3, stream: {prompt: 20KB, tokens: 7, pause: 80ms}}, repeats: 1}";
    let ran = run_plan(&plan(text), []);
    let driver = ran.requests.iter().find_map(|one| match one {
        Request::Start(drivers) => drivers.first(),
        _ => None,
    });
    let driver = driver.expect("a generator");
    let text = text_of(driver);
    let expected =
        "--method POST --header Content-Type: application/json --body chat.json --think-time exp:80ms";
    assert!(text.contains(expected), "{text}");
    let [_, body] =
        &driver.arguments.windows(2).find(|pair| pair[0] == Argument::Text("--body".into())).unwrap()
    else {
        panic!("a pair")
    };
    let Argument::File { prefix, content, .. } = body else { panic!("{body:?}") };
    assert_eq!((prefix.as_str(), content.len()), ("@", 20_000));
    assert_eq!(driver.verb.urls("http://server/chat"), ["http://server/chat?first=50ms&gap=20ms"]);
}

#[test]
fn a_deployment_that_does_not_come_up_is_explained() {
    let lines = LastLines { component: "gateway".into(), lines: vec!["no port".into()] };
    let error = ScriptedError {
        hint: Some("free the port".into()),
        component: Some(lines),
        ..ScriptedError::new("start gateway", "it has died")
    };
    let ran = run_one(ScriptedTrial { deploy_error: Some(error), ..good() });
    let trial = &ran.trials[0];
    assert_eq!(ran.first_reason(0), "failed: start gateway: it has died");
    assert_eq!(trial.hints, ["free the port"]);
    assert_eq!(trial.log_tails["gateway"], ["no port"]);
    assert_eq!(trial.outcome, TrialOutcome::Failed);
    assert!(ran.ended.is_err(), "no trial of the mode was measured");
}

#[test]
fn a_trial_that_does_not_begin_keeps_the_evidence() {
    for begins in [false, true] {
        let error = Some(ScriptedError::new("start the generator", "no memory"));
        let mut script = good();
        script.evidence.log_tails.insert("gateway".into(), vec!["killed".into()]);
        let script = match begins {
            false => ScriptedTrial { begin_error: error, ..script },
            true => ScriptedTrial { start_error: error, ..script },
        };
        let ran = run_one(script);
        assert_eq!(ran.first_reason(0), "failed: start the generator: no memory");
        assert_eq!(ran.trials[0].log_tails["gateway"], ["killed"]);
        assert_eq!(ran.count(|request| *request == Request::EndTrial(Vec::new())), 1);
    }
}

#[test]
fn a_driver_that_exits_early_is_quoted() {
    let ran = run_one(with_driver(driver().dies_at(3 * SECOND, Some(3), "no route")));
    assert_eq!(ran.first_reason(0), "failed: the generator ended with status 3: no route");
    assert_eq!(ran.trials[0].log_tails["generator"], ["no route"]);
    let ran = run_one(with_driver(driver().dies_at(3 * SECOND, None, "")));
    assert_eq!(ran.first_reason(0), "failed: the generator was ended by a signal");
    assert!(ran.trials[0].result.is_none());
}

#[test]
fn component_that_dies_with_its_connections_is_the_cause() {
    // Its exit becomes visible after that of the generator.
    let dies = ScriptedTrial {
        failure: Some(server_fails(3 * SECOND + Duration::from_millis(200), false)),
        ..with_driver(driver().dies_at(3 * SECOND, Some(3), "no route"))
    };
    assert_eq!(run_one(dies).first_reason(0), "failed: in the trial, server was ended by signal 9");
}

#[test]
fn component_that_dies_in_window_ends_trial_and_keeps_results() {
    let ran = run_one(ScriptedTrial { failure: Some(server_fails(3 * SECOND, false)), ..good() });
    assert_eq!(ran.first_reason(0), "failed: in the trial, server was ended by signal 9");
    let kept = ran.trials[0].result.as_ref().unwrap();
    assert!(kept.duration_s < 3.0, "{}", kept.duration_s);
    assert_eq!(ran.count(|request| *request == Request::Interrupt("generator".into())), 1);
    assert!(ran.elapsed < 5 * SECOND, "{:?}", ran.elapsed);
}

#[test]
fn unresponsive_component_is_found_if_responses_stop() {
    let silent = |driver: ScriptedDriver| ScriptedTrial {
        failure: Some(server_fails(Duration::ZERO, true)),
        ..with_driver(driver)
    };
    let ran = run_one(silent(driver().unanswered_from(SECOND)));
    assert_eq!(ran.first_reason(0), "failed: in the trial, server was ended by signal 9");
    assert!(ran.elapsed < 6 * SECOND, "before the window's end: {:?}", ran.elapsed);
    // If there were responses, it is found after the window.
    let ran = run_one(silent(driver()));
    assert_eq!(ran.first_reason(0), "failed: in the trial, server was ended by signal 9");
    assert!(ran.elapsed > 6 * SECOND, "{:?}", ran.elapsed);
}

#[test]
fn hung_driver_is_interrupted_then_killed_then_abandoned() {
    let hangs = driver().hangs_at(3 * SECOND);
    let ran = run_one(with_driver(hangs.clone()));
    assert_eq!(ran.first_reason(0), "failed: the generator did not end in time");
    assert_eq!(ran.count(|request| matches!(request, Request::Kill(_))), 0);
    assert!(ran.trials[0].result.is_some(), "it was interrupted");

    let stubborn = ScriptedDriver { ignores_interrupt: true, ..hangs };
    let ran = run_one(with_driver(stubborn.clone()));
    assert_eq!(ran.first_reason(0), "failed: the generator did not end in time");
    assert_eq!(ran.count(|request| matches!(request, Request::Kill(_))), 1);
    let failure = format!("{:?}", ran.ended.unwrap_err());
    assert!(failure.contains("wait for the generator: it had not ended after"), "{failure}");

    let ran = run_one(with_driver(ScriptedDriver { survives_kill: true, ..stubborn }));
    assert_eq!(ran.first_reason(0), "failed: the generator did not end in time");
    assert!(ran.elapsed < 60 * SECOND, "{:?}", ran.elapsed);
}

#[test]
fn unresponsive_component_is_named_rather_than_the_driver_that_waits_for_it() {
    let ran = run_one(ScriptedTrial {
        failure: Some(server_fails(Duration::ZERO, true)),
        ..with_driver(driver().hangs_at(3 * SECOND))
    });
    assert_eq!(ran.first_reason(0), "failed: in the trial, server was ended by signal 9");
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let ran = run([good(), ScriptedTrial { stop_at: Some(3 * SECOND), ..good() }]);
    assert_eq!(ran.trials.len(), 2);
    assert_eq!(ran.trials[1].outcome, TrialOutcome::Interrupted);
    assert_eq!(ran.first_reason(1), "interrupted: the run was stopped during this trial");
    assert!(ran.trials[1].result.is_some() && ran.trials[0].verdict.valid && ran.ended.is_ok());
    // A deployment that does not come up because the run was stopped is not a failure.
    let ran = run([ScriptedTrial { stop_at: Some(Duration::ZERO), ..broken() }]);
    assert_eq!(ran.trials[0].outcome, TrialOutcome::Interrupted);
    assert!(ran.ended.is_ok());
}

#[test]
fn a_snapshot_that_fails_is_named() {
    for number in [0, 1] {
        let error = ScriptedError::new("read the counters of server", "no such file");
        let ran = run_one(ScriptedTrial { snapshot_error: Some((number, error)), ..good() });
        assert_eq!(ran.first_reason(0), "failed: read the counters of server: no such file");
        assert!(ran.trials[0].components.is_empty() && ran.trials[0].result.is_some());
    }
}

#[test]
fn unproven_path_makes_trial_invalid_with_reasons() {
    let mut script = good();
    script.evidence.path.proven = false;
    script.evidence.path.reasons = vec!["gateway saw nothing".into()];
    let ran = run_one(script);
    assert_eq!(ran.first_reason(0), "path-not-proven: gateway saw nothing");
    assert_eq!(ran.trials[0].outcome, TrialOutcome::Finished);
    assert!(ran.ended.is_ok());
}

#[test]
fn generators_are_told_the_expected_statuses() {
    let expected = |load: &str| {
        let text = format!("{{name: t, modes: [gateway], repeats: 1, load: {{rate: 200, {load}}}}}");
        option(&started(&run_plan(&plan(&text), []))[0], "--expect-status")
    };
    assert_eq!(expected("expect-status: [200, 3xx]").as_deref(), Some("200,3xx"));
    assert_eq!(expected("connections: 4"), None);
}
