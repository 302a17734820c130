//! Times of arrival compared with the stub's write times: same machine, same clock.

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
/// Maximum error of a time of arrival that fleets may have.
const MAX_ERROR: Duration = Duration::from_millis(1);

#[test]
fn changes_arrive_after_their_writes_by_kernel_clock() {
    for xds in [XdsVariant::Delta, XdsVariant::StateOfTheWorld] {
        let mut spec = StubSpec::new(configuration());
        spec.log_writes = true;
        let stub = start(spec);
        let spec = fleet_of(ProxyKind::Sidecar, PROXIES, &stub.address().to_string());
        let fleet = Fleet::start(FleetSpec { xds, ..spec }).expect("a fleet");
        assert!(fleet.wait_complete(deadline()).is_complete());
        let mut errors_us = Vec::new();
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
                errors_us.push(error_us(&writes, proxy, number, commanded, arrival_us));
            }
        }
        let usage = fleet.finish().fleet;
        assert_eq!(usage.clock, "kernel");
        let stated_us = usage.timestamp_error_p99_us.expect("the kernel stamps");
        assert!(stated_us >= usage.timestamp_check_p99_us.expect("there is a loopback"), "{usage:?}");
        // One error in a hundred may be greater, which is one of these.
        let greater = errors_us.iter().filter(|error_us| **error_us > stated_us).count();
        assert!(greater <= 2, "{greater} errors are above the stated {stated_us} us: {errors_us:?}");
    }
}

/// Distance of an arrival from the interval of its write, in microseconds, beyond the precision of the
/// histogram that it was read from.
#[track_caller]
fn error_us(writes: &[MarkWrite], proxy: usize, number: u32, commanded: Instant, arrival_us: f64) -> f64 {
    let name = format!("~proxy-{proxy:05}.");
    let write = writes.iter().find(|write| write.node.contains(&name)).expect("a write to the proxy");
    assert_eq!(write.mark, number);
    let since_commanded = |moment: Instant| moment.duration_since(commanded).as_secs_f64() * 1e6;
    let (before_us, after_us) = (since_commanded(write.before), since_commanded(write.after));
    let rounded_us = arrival_us * RELATIVE_ERROR;
    let latest_us = arrival_us + rounded_us + MAX_ERROR.as_secs_f64() * 1e6;
    assert!(latest_us >= before_us, "proxy {proxy}: written at {before_us} us, arrived at {arrival_us} us");
    ((before_us - arrival_us).max(arrival_us - after_us) - rounded_us).max(0.0)
}
