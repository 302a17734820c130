//! Each protocol violation is reported by its kind, and does not affect proxies of a correct control plane.

use crate::setup::{SERVER_NAME, fleet_of, plaintext, show_token};
use crate::{configuration, start, wait_until};
use fleet::xds::ProxyKind;
use fleet::{Fleet, FleetSpec, Spread};
use fleet_stub::{Authority, Behaviour, Flood, Stub, StubSpec, Validity};
use results::FleetResult;
use std::time::Duration;

/// Proxies per control plane.
const PROXIES: u64 = 4;
/// Types that a sidecar without a name table subscribes to, each answered once.
const TYPES: u64 = 4;
const AGE: Duration = Duration::from_millis(50);

/// One fleet on two control planes, of which one has a violation and the other is correct.
struct Pair {
    bad: Stub,
    good: Stub,
    fleet: Fleet,
    /// True if proxies have a shorter timeout than usual.
    is_impatient: bool,
}

impl Pair {
    fn start(behaviour: Behaviour, change: impl FnOnce(&mut FleetSpec)) -> Self {
        Self::with_bad(start(StubSpec::new(configuration()).with_behaviours(vec![behaviour])), change)
    }

    fn with_bad(bad: Stub, change: impl FnOnce(&mut FleetSpec)) -> Self {
        let good = start(StubSpec::new(configuration()));
        let mut spec = fleet_of(ProxyKind::Sidecar, PROXIES as usize, &bad.address().to_string());
        spec.targets.push(plaintext(&good.address().to_string()));
        spec.spread = Spread::Each;
        let usual = spec.connect_timeout;
        change(&mut spec);
        let is_impatient = spec.connect_timeout < usual;
        Self { bad, good, fleet: Fleet::start(spec).expect("a fleet"), is_impatient }
    }

    /// Ends the fleet once the correct control plane has sent everything, and the other one enough.
    #[track_caller]
    fn finish_when(self, what: &str, enough: impl Fn(&Self) -> bool) -> FleetResult {
        wait_until("the correct control plane's proxies", || {
            self.good.totals().acknowledgements >= PROXIES * TYPES
        });
        wait_until(what, || enough(&self));
        let good = self.good.totals();
        assert_eq!(good.complaints, Vec::<String>::new());
        // On a busy machine a correct control plane may be slow to respond too, and proxies reconnect.
        assert!(self.is_impatient || good.connections == PROXIES, "{good:?}");
        let result = self.fleet.finish();
        let of_good = &result.by_istiod[1];
        assert_eq!(of_good.proxies.converged, PROXIES, "{result:#?}");
        result
    }

    /// Ends the fleet once every proxy of the bad control plane has reconnected.
    #[track_caller]
    fn finish_when_returned(self) -> FleetResult {
        self.finish_when("proxies that return", |pair| pair.bad.totals().connections >= 2 * PROXIES)
    }

    /// Ends the fleet once every proxy of the bad control plane has received a response.
    #[track_caller]
    fn finish_when_answered(self) -> FleetResult {
        self.finish_when("responses to all", |pair| {
            pair.fleet.status().pushes >= pair.good.totals().responses + PROXIES
        })
    }
}

#[track_caller]
fn assert_reported(result: &FleetResult, kind: &str) {
    assert_eq!(result.violations.keys().collect::<Vec<_>>(), [kind], "{:?}", result.events);
    assert!(result.events.iter().any(|event| event.kind == kind), "{:?}", result.events);
}

/// The violation ends connections, and proxies reconnect.
#[track_caller]
fn ends_connections(behaviour: Behaviour, kind: &str) {
    let result = Pair::start(behaviour, |_| {}).finish_when_returned();
    assert_reported(&result, kind);
    assert!(result.violations[kind] >= PROXIES, "{:?}", result.violations);
}

/// Connections survive the violation.
#[track_caller]
fn is_outlived(behaviour: Behaviour, kind: &str) -> FleetResult {
    let result = Pair::start(behaviour, |_| {}).finish_when_answered();
    assert_reported(&result, kind);
    result
}

#[test]
fn empty_nonces_are_reported() {
    is_outlived(Behaviour::EmptyNonce, "empty-nonce");
}

#[test]
fn repeated_nonces_are_reported() {
    let pair = Pair::start(Behaviour::RepeatedNonce, |_| {});
    wait_until("complete proxies", || pair.fleet.status().complete == 2 * PROXIES);
    // The second response of a type.
    pair.bad.mark_endpoints(0, 1).expect("endpoints");
    let result = pair.finish_when("endpoints that change", |pair| {
        pair.fleet.status().pushes >= pair.good.totals().responses + PROXIES * (TYPES + 1)
    });
    assert_reported(&result, "repeated-nonce");
}

#[test]
fn unknown_types_are_reported() {
    let result = is_outlived(Behaviour::UnknownType, "unknown-type");
    assert_eq!(result.proxies.connected, 2 * PROXIES);
}

#[test]
fn undecodable_messages_are_reported() {
    ends_connections(Behaviour::UndecodableBody, "undecodable-message");
}

#[test]
fn undecodable_resources_are_reported_and_rejected() {
    let pair = Pair::start(Behaviour::UndecodableResource, |_| {});
    let result = pair.finish_when("rejections", |pair| pair.bad.totals().rejections >= PROXIES);
    assert_reported(&result, "undecodable-resource");
    assert!(result.rejections >= PROXIES, "{}", result.rejections);
    assert_eq!(result.by_istiod[0].proxies.never, PROXIES);
}

#[test]
fn unrequested_resources_are_reported() {
    let pair = Pair::start(Behaviour::UnrequestedResource, |_| {});
    let result = pair.finish_when("complete proxies", |pair| pair.fleet.status().complete == 2 * PROXIES);
    assert_reported(&result, "unsubscribed-resource");
}

#[test]
fn compressed_messages_are_reported() {
    ends_connections(Behaviour::CompressedFlag, "grpc-violation");
}

#[test]
fn huge_messages_are_reported() {
    ends_connections(Behaviour::HugeMessage((64 << 20) + 1), "message-too-large");
}

#[test]
fn statuses_are_reported_by_name() {
    ends_connections(Behaviour::Status(14, "no endpoints"), "grpc-unavailable");
    ends_connections(Behaviour::Status(16, "who are you"), "grpc-unauthenticated");
    ends_connections(Behaviour::Status(8, "too many"), "grpc-resource-exhausted");
}

#[test]
fn http_error_pages_are_reported() {
    ends_connections(Behaviour::HttpStatus(503), "http-status");
}

#[test]
fn reset_streams_are_reported() {
    ends_connections(Behaviour::StreamReset(AGE), "stream-reset");
}

#[test]
fn ended_streams_are_reported() {
    ends_connections(Behaviour::StreamEnd(AGE), "stream-ended");
}

#[test]
fn goaways_are_reported() {
    ends_connections(Behaviour::GoAway(AGE), "goaway");
}

#[test]
fn connections_closed_within_message_are_reported() {
    ends_connections(Behaviour::CloseAfterBytes(10_000), "connection-lost");
}

#[test]
fn connections_closed_at_once_are_reported() {
    ends_connections(Behaviour::CloseAtOnce, "connection-lost");
}

#[test]
fn http1_servers_are_reported() {
    ends_connections(Behaviour::Http1, "http2-violation");
}

/// The flood ends connections with this kind and detail, and proxies reconnect.
#[track_caller]
fn flood_ends_connections(flood: Flood, kind: &str, detail: &str) {
    let result = Pair::start(Behaviour::Flood(flood), |_| {}).finish_when_returned();
    assert!(result.violations.get(kind).is_some_and(|count| *count >= PROXIES), "{:?}", result.violations);
    assert!(result.events.iter().any(|event| event.detail.contains(detail)), "{:?}", result.events);
}

#[test]
fn floods_of_pings_are_reported() {
    flood_ends_connections(Flood::Pings, "http2-flood", "than its responses account for");
}

#[test]
fn floods_of_settings_are_reported() {
    flood_ends_connections(Flood::Settings, "http2-flood", "than its responses account for");
}

#[test]
fn endless_header_blocks_are_reported() {
    flood_ends_connections(Flood::Continuations, "http2-violation", "header block is too large");
}

#[test]
fn servers_that_do_not_read_are_reported() {
    flood_ends_connections(Flood::PingsBetweenMessages, "http2-flood", "does not read");
}

#[test]
fn silent_servers_are_reported() {
    let short = |spec: &mut FleetSpec| spec.connect_timeout = Duration::from_millis(500);
    let result = Pair::start(Behaviour::SilentConnection, short).finish_when_returned();
    assert!(result.violations["connect-timeout"] >= PROXIES, "{:?}", result.violations);
}

#[test]
fn proxies_without_response_are_named() {
    let pair = Pair::start(Behaviour::SilentStream, |_| {});
    let result = pair.finish_when("requests", |pair| pair.bad.totals().requests >= PROXIES);
    assert_eq!(result.by_istiod[0].proxies.never, PROXIES);
    assert_eq!(result.proxies.never_names.len() as u64, PROXIES, "{:?}", result.proxies.never_names);
    assert!(!result.verdict.valid);
}

#[test]
fn proxies_with_missing_resource_are_named() {
    let pair = Pair::start(Behaviour::WithheldResource, |_| {});
    // Acks of endpoints: everything after them waits for all endpoints.
    let result = pair.finish_when("acknowledgements", |pair| pair.bad.totals().acknowledgements >= PROXIES);
    assert_eq!(result.by_istiod[0].proxies.never, PROXIES);
    assert!(result.violations.is_empty(), "{:?}", result.violations);
}

/// Proxies trust `trusted`, and `issuer` signs the bad control plane's certificate.
#[track_caller]
fn refuses_certificate(validity: Validity, trusted: &Authority, issuer: &Authority, kind: &str) {
    let mut spec = StubSpec::new(configuration());
    spec.tls = Some(issuer.server(SERVER_NAME, validity).expect("a certificate"));
    let pair = Pair::with_bad(start(spec), |spec| show_token(spec, "token", &trusted.certificate_pem()));
    let result = pair.finish_when_returned();
    assert_reported(&result, kind);
    assert_eq!(result.by_istiod[0].proxies.never, PROXIES);
}

#[test]
fn expired_certificates_are_reported() {
    let authority = Authority::new("authority").expect("an authority");
    refuses_certificate(Validity::Expired, &authority, &authority, "certificate-expired");
}

#[test]
fn certificates_of_untrusted_authorities_are_reported() {
    let [ours, theirs] = ["ours", "theirs"].map(|name| Authority::new(name).expect("an authority"));
    refuses_certificate(Validity::Valid, &ours, &theirs, "tls-failed");
}

/// Every violation in turn, for any connection: nothing hangs, and other proxies are not affected.
#[test]
fn alternating_violations_do_not_stop_fleet() {
    let behaviours = vec![
        Behaviour::EmptyNonce,
        Behaviour::StreamReset(AGE),
        Behaviour::UndecodableBody,
        Behaviour::CompressedFlag,
        Behaviour::Status(14, "no endpoints"),
        Behaviour::CloseAfterBytes(1000),
        Behaviour::HugeMessage((64 << 20) + 1),
        Behaviour::GoAway(AGE),
        Behaviour::HttpStatus(503),
        Behaviour::CloseAtOnce,
        Behaviour::Http1,
        Behaviour::SilentConnection,
    ];
    let turns = behaviours.len() as u64;
    let bad = start(StubSpec::new(configuration()).with_behaviours(behaviours));
    let pair = Pair::with_bad(bad, |spec| spec.connect_timeout = Duration::from_millis(500));
    let result = pair.finish_when("many turns", |pair| pair.bad.totals().connections >= 3 * turns);
    assert!(result.violations.len() >= 6, "{:?}", result.violations);
}
