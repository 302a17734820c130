//! Fleets receive the stub's configuration byte for byte, and acknowledge all of it.

use crate::setup::{SERVER_NAME, fleet_of, show_token};
use crate::{configuration, deadline, start, wait_until};
use fleet::xds::{ProxyKind, XdsVariant};
use fleet::{Fleet, FleetSpec, Selection};
use fleet_stub::{Authority, Configuration, Stub, StubSpec, Validity};

const MANY: usize = 300;
const FEW: usize = 20;

/// Waits until everything is acknowledged, and compares the counters of both sides.
#[track_caller]
fn settle(stub: &Stub, spec: FleetSpec) -> Fleet {
    let fleet = Fleet::start(spec).expect("a fleet");
    let waited = fleet.wait_complete(deadline());
    assert!(waited.is_complete(), "{waited:?} {:?}", stub.totals());
    assert_agreed(stub, &fleet);
    fleet
}

#[track_caller]
fn assert_agreed(stub: &Stub, fleet: &Fleet) {
    wait_until("acknowledgements", || {
        let totals = stub.totals();
        totals.acknowledgements == totals.responses
    });
    let totals = stub.totals();
    assert_eq!(totals.complaints, Vec::<String>::new());
    assert_eq!(totals.rejection_texts, Vec::<String>::new());
    assert_eq!(fleet.status().bytes, totals.body_bytes);
}

#[test]
fn hundreds_of_sidecars_settle() {
    let stub = start(StubSpec::new(Configuration::for_sidecars_of_bytes(100_000)));
    let fleet = settle(&stub, fleet_of(ProxyKind::Sidecar, MANY, &stub.address().to_string()));
    let totals = stub.totals();
    let result = fleet.finish();
    assert_eq!(result.proxies.converged, MANY as u64);
    assert_eq!(result.acknowledgements, totals.acknowledgements);
    assert_eq!(result.bytes_received, totals.body_bytes);
    assert_eq!((result.rejections, result.violations.len()), (0, 0), "{:?}", result.violations);
    assert!(
        result.verdict.reasons.iter().all(|reason| reason.starts_with("fleet-late")),
        "{:?}",
        result.verdict
    );
}

#[test]
fn every_kind_settles_in_both_variants() {
    for xds in [XdsVariant::Delta, XdsVariant::StateOfTheWorld] {
        for kind in ProxyKind::ALL {
            if (kind, xds) == (ProxyKind::Ztunnel, XdsVariant::StateOfTheWorld) {
                continue;
            }
            let stub = start(StubSpec::new(configuration()));
            let mut spec = fleet_of(kind, FEW, &stub.address().to_string());
            spec.xds = xds;
            spec.proxies.iter_mut().for_each(|(proxy, _)| proxy.dns_capture = true);
            let result = settle(&stub, spec).finish();
            assert_eq!(result.proxies.converged, FEW as u64, "{} {}", kind.name(), xds.name());
        }
    }
}

#[test]
fn proxies_settle_again_after_a_loss() {
    for xds in [XdsVariant::Delta, XdsVariant::StateOfTheWorld] {
        let stub = start(StubSpec::new(configuration()));
        let spec = fleet_of(ProxyKind::Sidecar, FEW, &stub.address().to_string());
        let fleet = settle(&stub, FleetSpec { xds, ..spec });
        let returned = fleet.expect_return("istiod-restart", Selection::All);
        stub.disconnect();
        let waited = fleet.wait(returned, deadline());
        assert!(waited.is_complete(), "{waited:?}");
        let totals = stub.totals();
        assert_eq!(totals.complaints, Vec::<String>::new());
        assert_eq!(totals.connections, 2 * FEW as u64);
        assert_eq!(fleet.finish().proxies.converged, FEW as u64);
    }
}

#[test]
fn tokens_are_sent_over_tls() {
    let authority = Authority::new("authority").expect("an authority");
    let mut spec = StubSpec::new(configuration());
    spec.token = Some("a token".to_owned());
    spec.tls = Some(authority.server(SERVER_NAME, Validity::Valid).expect("a certificate"));
    let stub = start(spec);
    let mut spec = fleet_of(ProxyKind::Sidecar, FEW, &stub.address().to_string());
    show_token(&mut spec, "a token", &authority.certificate_pem());
    let result = settle(&stub, spec).finish();
    assert_eq!(result.proxies.converged, FEW as u64);
}
