//! Times of arrival against the moments at which the stub wrote: same machine, same clock.

use crate::setup::{endpoints_change, fleet_of};
use crate::{configuration, deadline, start, wait_until};
use fleet::xds::{ProxyKind, XdsVariant};
use fleet::{Fleet, FleetSpec};
use fleet_stub::{MarkWrite, StubSpec};
use std::time::{Duration, Instant};

const PROXIES: usize = 20;
const MARKS: u32 = 3;
/// Service whose endpoints change.
const SERVICE: usize = 7;
/// Precision of a histogram's values.
const RELATIVE_ERROR: f64 = 0.001;
/// Of a time of arrival: the bar that fleets are held to.
const MAX_ERROR: Duration = Duration::from_millis(1);

#[test]
fn changes_arrive_after_they_were_written_by_the_kernels_clock() {
    for xds in [XdsVariant::Delta, XdsVariant::StateOfTheWorld] {
        let mut spec = StubSpec::new(configuration());
        spec.log_writes = true;
        let stub = start(spec);
        let spec = fleet_of(ProxyKind::Sidecar, PROXIES, &stub.address().to_string());
        let fleet = Fleet::start(FleetSpec { xds, ..spec }).expect("a fleet");
        assert!(fleet.wait_complete(deadline()).is_complete());
        for number in 1..=MARKS {
            let changes: Vec<_> =
                (0..PROXIES).map(|proxy| fleet.expect(endpoints_change(number, proxy))).collect();
            let commanded = Instant::now();
            stub.mark_endpoints(SERVICE, number).expect("endpoints");
            let mut writes = Vec::new();
            wait_until("writes to all", || {
                writes.extend(stub.take_writes());
                writes.len() == PROXIES
            });
            for (proxy, change) in changes.into_iter().enumerate() {
                fleet.written(change, commanded, commanded);
                assert!(fleet.wait(change, deadline()).is_complete());
                let arrival_us = fleet.change(change)[0].convergence_us.max.expect("it arrived");
                assert_after_write(&writes, proxy, number, commanded, arrival_us);
            }
        }
        let usage = fleet.finish().fleet;
        assert_eq!(usage.clock, "kernel");
        assert!(usage.timestamp_error_p99_us.is_some(), "{usage:?}");
    }
}

#[track_caller]
fn assert_after_write(writes: &[MarkWrite], proxy: usize, number: u32, commanded: Instant, arrival_us: f64) {
    let name = format!("~proxy-{proxy:05}.");
    let write = writes.iter().find(|write| write.node.contains(&name)).expect("a write to the proxy");
    assert_eq!(write.mark, number);
    let before_us = write.before.duration_since(commanded).as_secs_f64() * 1e6;
    let latest_us = arrival_us * (1.0 + RELATIVE_ERROR) + MAX_ERROR.as_secs_f64() * 1e6;
    assert!(latest_us >= before_us, "proxy {proxy}: written at {before_us} us, arrived at {arrival_us} us");
}
