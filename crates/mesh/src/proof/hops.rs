//! The protocol of each hop of a path, by the counters of the proxies at its ends.
//! Received load is counted by request: the counters that increased in the trial show its protocols.
//! Forwarded load is counted by connection. Connections may predate the trial, so all of them since the
//! proxy's start count. A counter that a proxy does not keep is unknown, not zero.

use super::counted::CountedProxy;
use super::counters::{Count, ProtocolCounters, SideCounters};
use super::delta::max_allowance;
use super::evidence::{Evidence, Seen};
use results::{HopProof, HopProtocol};

/// The protocols of each hop, from client to server, checked against the expected ones.
pub(super) fn check_hops(
    proxies: &[CountedProxy],
    ends: [&str; 2],
    reasons: &mut Vec<String>,
) -> Vec<HopProof> {
    let passed: Vec<&CountedProxy> =
        proxies.iter().filter(|proxy| !matches!(proxy.evidence.seen, Seen::Nothing(_))).collect();
    if passed.is_empty() {
        return Vec::new();
    }
    let hops = (0..=passed.len()).map(|index| {
        let (from, to) = (index.checked_sub(1).map(|before| passed[before]), passed.get(index).copied());
        let mut hop = HopProof {
            from: from.map_or_else(|| ends[0].to_owned(), |proxy| proxy.name.clone()),
            to: to.map_or_else(|| ends[1].to_owned(), |proxy| proxy.name.clone()),
            ..HopProof::default()
        };
        if let Some(proxy) = from {
            add_side(&proxy.evidence.protocols.forwarded, proxy, &mut hop);
        }
        if let Some(proxy) = to {
            add_side(&proxy.evidence.protocols.received, proxy, &mut hop);
        }
        keep_most_specific(&mut hop);
        check(&hop, reasons);
        hop
    });
    hops.collect()
}

/// A copy of the proxy without counters of protocols that only other edges expect: they may count those
/// edges' traffic.
pub(super) fn without_others<'a>(
    proxy: &CountedProxy,
    sharing: impl Iterator<Item = &'a Evidence>,
) -> CountedProxy {
    let mut own = proxy.clone();
    let ProtocolCounters { received, forwarded, .. } = &mut own.evidence.protocols;
    for evidence in sharing {
        let other = &evidence.protocols;
        for (side, other) in [(&mut *received, &other.received), (&mut *forwarded, &other.forwarded)] {
            let (Some(expected), Some(asked)) = (side.expected, other.expected) else { continue };
            side.counters.retain(|counter| {
                let is_others = counter.0.is_as_asked(asked) && other.counters.contains(counter);
                counter.0.is_as_asked(expected) || !is_others
            });
        }
    }
    own
}

fn add_side(side: &SideCounters, proxy: &CountedProxy, hop: &mut HopProof) {
    let Ok(after) = &proxy.after else { return };
    let is_spoken = |count: &Count| match count {
        Count::Requests(name) => proxy.rise(name) > 0,
        Count::Connections(name) => after.get(name).is_some_and(|ever| *ever > 0),
    };
    let is_all_grpc = proxy.evidence.protocols.grpc.as_ref().is_some_and(|counters| {
        let grpc = proxy.rise(&counters.requests);
        // A listener shared by several edges receives requests of all of them.
        let forwarded = proxy.evidence.forwarded.as_ref().map(|forwarded| proxy.rise(&forwarded.requests));
        let all = proxy.rise(&counters.of_http2).min(forwarded.unwrap_or(u64::MAX));
        grpc > 0 && grpc + max_allowance(all) >= all
    });
    let spoken = side.counters.iter().filter(|(_, count)| is_spoken(count));
    let spoken = spoken.map(|(protocol, _)| match protocol {
        HopProtocol::Http2 if is_all_grpc => HopProtocol::Grpc,
        protocol => *protocol,
    });
    let by_hbone = side.hbone.as_ref().is_some_and(is_spoken);
    hop.add(&HopProof { spoken: spoken.collect(), by_hbone, ..HopProof::default() });
    // A proxy that reads requests takes precedence over one that does not.
    hop.asked = hop.asked.filter(|asked| *asked != HopProtocol::Tcp).or(side.expected).or(hop.asked);
}

/// Between neighbors, one that reads requests takes precedence over one that carries them, and one that
/// detects gRPC over one that does not.
fn keep_most_specific(hop: &mut HopProof) {
    let is_read = hop.spoken.iter().any(|protocol| *protocol != HopProtocol::Tcp);
    if is_read && hop.asked != Some(HopProtocol::Tcp) {
        hop.spoken.retain(|protocol| *protocol != HopProtocol::Tcp);
    }
    if hop.spoken.contains(&HopProtocol::Grpc) {
        hop.spoken.retain(|protocol| *protocol != HopProtocol::Http2);
    }
}

fn check(hop: &HopProof, reasons: &mut Vec<String>) {
    let Some(asked) = hop.asked else { return };
    let others: Vec<&str> = hop
        .spoken
        .iter()
        .filter(|spoken| !spoken.is_as_asked(asked))
        .map(|spoken| spoken.describe())
        .collect();
    if !others.is_empty() {
        reasons.push(format!(
            "{} and {} spoke {} with each other, though the experiment requires {asked} on this hop",
            hop.from,
            hop.to,
            others.join(" and ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::counters::StreamCounters;
    use super::*;
    use crate::envoy::hop::{Hop, Layer, Peer};
    use std::collections::BTreeMap;

    fn evidence(layer: Layer) -> Evidence {
        let (connection_manager, cluster) = ("in".to_owned(), "out".to_owned());
        Hop { layer, connection_manager, cluster, peer: Peer::Nobody }.evidence(false)
    }

    fn reading(name: &str, before: &[(&str, u64)], after: &[(&str, u64)]) -> CountedProxy {
        let layer = Layer::L7 { received: HopProtocol::Http1, forwarded: HopProtocol::Http1 };
        proxy(name, Evidence { forwarded: None, ..evidence(layer) }, before, after)
    }

    fn proxy(name: &str, evidence: Evidence, before: &[(&str, u64)], after: &[(&str, u64)]) -> CountedProxy {
        let of = |counters: &[(&str, u64)]| -> BTreeMap<String, u64> {
            counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        CountedProxy { name: name.into(), side: None, evidence, before: of(before), after: Ok(of(after)) }
    }

    const RECEIVED: [&str; 2] = ["http.in.downstream_rq_http1_total", "http.in.downstream_rq_http2_total"];
    const SENT_ON: [&str; 2] = ["cluster.out.upstream_cx_http1_total", "cluster.out.upstream_cx_http2_total"];

    fn told(proxies: &[CountedProxy]) -> (Vec<String>, Vec<String>) {
        let mut reasons = Vec::new();
        let hops = check_hops(proxies, ["client", "server"], &mut reasons);
        let words = |hop: &HopProof| format!("{} > {}: {}", hop.from, hop.to, hop.describe());
        (hops.iter().map(words).collect(), reasons)
    }

    #[test]
    fn hop_combines_counters_of_both_ends() {
        let proxies = ["near", "far"].map(|name| reading(name, &[], &[(RECEIVED[0], 400), (SENT_ON[0], 4)]));
        let (hops, reasons) = told(&proxies);
        assert_eq!(hops, ["client > near: HTTP/1.1", "near > far: HTTP/1.1", "far > server: HTTP/1.1"]);
        assert!(reasons.is_empty(), "{reasons:?}");
    }

    #[test]
    fn unexpected_protocol_is_named_with_its_hop() {
        let near = reading("near", &[], &[(RECEIVED[0], 400), (SENT_ON[0], 0), (SENT_ON[1], 1)]);
        let far = reading("far", &[], &[(RECEIVED[0], 0), (RECEIVED[1], 400), (SENT_ON[0], 4)]);
        let (hops, reasons) = told(&[near, far]);
        assert_eq!(hops[1], "near > far: HTTP/2");
        assert_eq!(
            reasons,
            [
                "near and far spoke HTTP/2 with each other, though the experiment requires HTTP/1.1 on this hop"
            ]
        );
    }

    /// Connections opened before the trial carry requests in it, and no counter of connections increases.
    #[test]
    fn connections_from_before_the_trial_hide_nothing() {
        let counters = [(RECEIVED[0], 100), (SENT_ON[0], 2), (SENT_ON[1], 3)];
        let grown = [(RECEIVED[0], 500), (SENT_ON[0], 2), (SENT_ON[1], 3)];
        let (hops, reasons) = told(&[reading("near", &counters, &grown)]);
        assert_eq!(hops, ["client > near: HTTP/1.1", "near > server: HTTP/1.1 and HTTP/2"]);
        assert_eq!(reasons.len(), 1);
        // Requests before the trial do not count.
        let (hops, reasons) =
            told(&[reading("near", &[(RECEIVED[1], 7)], &[(RECEIVED[1], 7), (RECEIVED[0], 9)])]);
        assert_eq!(hops[0], "client > near: HTTP/1.1");
        assert!(reasons.is_empty(), "{reasons:?}");
    }

    #[test]
    fn protocol_without_counters_is_unknown() {
        let (hops, reasons) = told(&[reading("near", &[], &[(RECEIVED[0], 400)])]);
        assert_eq!(hops, ["client > near: HTTP/1.1", "near > server: an unknown protocol"]);
        assert!(reasons.is_empty(), "{reasons:?}");
        let mut silent = reading("near", &[], &[(RECEIVED[0], 400)]);
        silent.after = Err("no answer".to_owned());
        assert_eq!(told(&[silent]).0[0], "client > near: an unknown protocol");
        assert!(told(&[]).0.is_empty());
    }

    #[test]
    fn grpc_is_distinguished_from_other_http2() {
        let with = |grpc: u64| {
            let counters = [(RECEIVED[1], 400), (SENT_ON[1], 2), ("cluster.out.grpc.total", grpc)];
            let mut proxy = reading("near", &[], &counters);
            for side in [&mut proxy.evidence.protocols.received, &mut proxy.evidence.protocols.forwarded] {
                side.expected = Some(HopProtocol::Grpc);
            }
            told(&[proxy])
        };
        for (grpc, words) in [(400, "gRPC"), (384, "gRPC"), (383, "HTTP/2"), (0, "HTTP/2")] {
            let (hops, reasons) = with(grpc);
            assert_eq!(hops, [format!("client > near: {words}"), format!("near > server: {words}")]);
            assert!(reasons.is_empty(), "{reasons:?}");
        }
    }

    #[test]
    fn proxy_that_reads_takes_precedence_over_carrier() {
        let carried = |hbone: Option<&str>| SideCounters {
            expected: None,
            counters: vec![(HopProtocol::Tcp, Count::Connections("carried".to_owned()))],
            hbone: hbone.map(|name| Count::Connections(name.to_owned())),
        };
        let unread = |received: SideCounters, forwarded: SideCounters| Evidence {
            protocols: ProtocolCounters { received, forwarded, grpc: None },
            ..Evidence::new(Seen::Streams(StreamCounters::for_tcp_proxy("out")))
        };
        let counted = [("carried", 4), ("hbone", 1)];
        let source = proxy("source", unread(carried(None), carried(Some("hbone"))), &[], &counted);
        let target = proxy("target", unread(carried(Some("hbone")), carried(None)), &[], &counted);
        let waypoint = reading("waypoint", &[], &[(RECEIVED[0], 400), (SENT_ON[0], 4)]);
        let (hops, reasons) = told(&[source.clone(), target.clone()]);
        assert_eq!(hops[1], "source > target: opaque TCP inside HBONE");
        assert!(reasons.is_empty(), "{reasons:?}");
        let (hops, reasons) = told(&[source, waypoint, target]);
        assert_eq!(
            hops,
            [
                "client > source: opaque TCP",
                "source > waypoint: HTTP/1.1 inside HBONE",
                "waypoint > target: HTTP/1.1 inside HBONE",
                "target > server: opaque TCP",
            ]
        );
        assert!(reasons.is_empty(), "{reasons:?}");
    }

    #[test]
    fn opaque_tcp_must_not_be_read_as_http() {
        let evidence = evidence(Layer::L4);
        let carried = ("tcp.out.downstream_cx_total", 4);
        let (hops, reasons) = told(&[proxy("near", evidence.clone(), &[], &[carried, (SENT_ON[1], 0)])]);
        assert_eq!(hops, ["client > near: opaque TCP", "near > server: opaque TCP"]);
        assert!(reasons.is_empty(), "{reasons:?}");
        let (hops, reasons) = told(&[proxy("near", evidence, &[], &[carried, (SENT_ON[1], 1)])]);
        assert_eq!(hops[1], "near > server: opaque TCP and HTTP/2");
        assert_eq!(reasons.len(), 1);
    }
}
