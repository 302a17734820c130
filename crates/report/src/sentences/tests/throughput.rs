use super::*;

#[test]
fn closed_loop_and_run_without_baseline_have_headlines() {
    let (_, closed) = run("{name: c, modes: [none, sidecar], load: {clients: [2, 8]}, repeats: 3}", |_| {});
    assert!(
        closed.findings[0].text.starts_with("With 8 clients a sidecar pair adds"),
        "{}",
        closed.findings[0].text
    );
    let (_, alone) = run("{name: a, modes: [gateway], load: {rate: 900}, repeats: 3}", |_| {});
    insta::assert_snapshot!(alone.findings[0].text, @"At 900/s the median response time through a gateway is 0.19 ms (0.17–0.21).");
    let (_, floor) = run("{name: a, modes: [none], load: {rate: 900}, repeats: 3}", |_| {});
    insta::assert_snapshot!(floor.findings[0].text, @"At 900/s the median response time without a mesh is 62 µs (57–68).");
}

#[test]
fn closed_loop_findings_are_about_throughput() {
    let (_, summary) = run(WAYS_OUT, closed_loop);
    insta::assert_snapshot!(reported(&summary));
    let comparison = summary
        .comparisons
        .iter()
        .find(|comparison| {
            comparison.load.clients == Some(20)
                && (comparison.mode, comparison.than) == (Mode::EgressSni, Mode::EgressGateway)
        })
        .unwrap();
    let change = comparison.throughput.unwrap();
    assert!((change.estimate + 0.375).abs() < 1e-9, "{change:?}");
    assert!(change.low.unwrap() < -0.374 && change.high.unwrap() > -0.376, "{change:?}");
    // Half of the CPU for 1.6 times as many requests per second, with two proxies in each.
    let cpu = comparison.proxy_cpu_per_request.unwrap();
    assert!((cpu.estimate - 0.6).abs() < 1e-9, "{cpu:?}");
    let total = summary.cells.last().unwrap().totals[0];
    assert_eq!((total.role, total.components), (Role::Proxy, 2));
    assert!((total.cpu_cores.estimate - 0.8).abs() < 0.01, "{total:?}");
}
