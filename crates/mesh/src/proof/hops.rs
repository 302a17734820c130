//! What was spoken on each hop of a path, by the counters of the proxies at its ends.
//!
//! What a proxy receives it counts by request and version of HTTP: what rose in the trial is what the load came in, whenever its
//! connections were opened. What it sends on it counts by connection alone, and one of them may be older than the trial: there
//! whatever the proxy ever opened counts, so that no connection from before hides what went over it. A proxy does not live
//! longer than its trial, so this is seldom more. A counter that a proxy does not keep tells nothing: it is not taken for zero.

use super::requests::most_forgiven;
use super::{CountedProxy, Seen, risen};
use experiment::schema::{HopProof, HopProtocol};

/// Who stands at the ends of a path.
const ENDS: [&str; 2] = ["client", "server"];

/// Where a proxy counts what it speaks with its neighbours.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Spoken {
    /// With the one nearer to the client.
    pub received: SpokenSide,
    /// With the one nearer to the server.
    pub sent_on: SpokenSide,
    /// Where it tells gRPC from what else HTTP/2 carries; absent where it does not.
    pub grpc: Option<GrpcCounters>,
}

/// Counters by which a proxy that reads requests knows those of gRPC.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrpcCounters {
    /// Requests of gRPC.
    pub requests: String,
    /// All that came by HTTP/2.
    pub of_http2: String,
}

/// The same for one of its sides.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SpokenSide {
    /// What is to be spoken there; absent where nothing is asked.
    pub asked: Option<HopProtocol>,
    /// The counter of each protocol.
    pub counters: Vec<(HopProtocol, Count)>,
    /// The counter of connections by HBONE; absent where it speaks none, or does not count them apart.
    pub hbone: Option<Count>,
}

/// A counter of what is spoken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Count {
    /// Of requests: those of the trial count.
    Requests(String),
    /// Of connections: all that there ever were count.
    Connections(String),
}

impl Spoken {
    /// Where an Envoy counts it that reads requests.
    #[must_use]
    pub fn reading(
        connection_manager: &str,
        cluster: &str,
        received: HopProtocol,
        sent_on: HopProtocol,
    ) -> Self {
        let requests = |version: &str| format!("http.{connection_manager}.downstream_rq_{version}_total");
        Self {
            received: SpokenSide {
                asked: Some(received),
                counters: of_versions(|version| Count::Requests(requests(version))),
                hbone: None,
            },
            sent_on: SpokenSide {
                asked: Some(sent_on),
                counters: of_versions(|version| Count::Connections(connections_to(cluster, version))),
                hbone: None,
            },
            grpc: Some(GrpcCounters {
                requests: format!("cluster.{cluster}.grpc.total"),
                of_http2: requests("http2"),
            }),
        }
    }

    /// Where an Envoy counts it that carries connections to this cluster.
    #[must_use]
    pub fn carrying(cluster: &str) -> Self {
        let carried = Count::Connections(format!("tcp.{cluster}.downstream_cx_total"));
        let received = SpokenSide {
            asked: Some(HopProtocol::Tcp),
            counters: vec![(HopProtocol::Tcp, carried)],
            hbone: None,
        };
        let mut sent_on = received.clone();
        sent_on.counters.extend(of_versions(|version| Count::Connections(connections_to(cluster, version))));
        Self { received, sent_on, grpc: None }
    }

    /// All counters.
    #[cfg(test)]
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        let of_grpc = self.grpc.iter().flat_map(|grpc| [grpc.requests.as_str(), &grpc.of_http2]);
        self.received.counters().chain(self.sent_on.counters()).chain(of_grpc)
    }

    /// Adds what the proxy's counters tell of the hop at this side of it.
    fn tell(&self, side: &SpokenSide, proxy: &CountedProxy, hop: &mut HopProof) {
        let Ok(after) = &proxy.after else { return };
        let is_spoken = |count: &Count| match count {
            Count::Requests(name) => risen(&proxy.before, after, name) > 0,
            Count::Connections(name) => after.get(name).is_some_and(|ever| *ever > 0),
        };
        let is_all_grpc = self.grpc.as_ref().is_some_and(|counters| {
            let grpc = risen(&proxy.before, after, &counters.requests);
            let all = risen(&proxy.before, after, &counters.of_http2);
            grpc > 0 && grpc + most_forgiven(all) >= all
        });
        let spoken = side.counters.iter().filter(|(_, count)| is_spoken(count));
        let spoken = spoken.map(|(protocol, _)| match protocol {
            HopProtocol::Http2 if is_all_grpc => HopProtocol::Grpc,
            protocol => *protocol,
        });
        let by_hbone = side.hbone.as_ref().is_some_and(is_spoken);
        hop.add(&HopProof { spoken: spoken.collect(), by_hbone, ..HopProof::default() });
        // Whoever reads knows better than whoever carries.
        hop.asked = hop.asked.filter(|asked| *asked != HopProtocol::Tcp).or(side.asked).or(hop.asked);
    }
}

/// A counter for each version of HTTP, by Envoy's word for it.
fn of_versions(count: impl Fn(&str) -> Count) -> Vec<(HopProtocol, Count)> {
    [(HopProtocol::Http1, "http1"), (HopProtocol::Http2, "http2"), (HopProtocol::Http3, "http3")]
        .map(|(protocol, version)| (protocol, count(version)))
        .into()
}

fn connections_to(cluster: &str, version: &str) -> String {
    format!("cluster.{cluster}.upstream_cx_{version}_total")
}

impl SpokenSide {
    /// All counters.
    #[cfg(test)]
    fn counters(&self) -> impl Iterator<Item = &str> {
        let counts = self.counters.iter().map(|(_, count)| count).chain(&self.hbone);
        counts.map(|count| match count {
            Count::Requests(name) | Count::Connections(name) => name.as_str(),
        })
    }
}

/// What each hop spoke, from client to server, and whether that is what is asked.
pub(super) fn judge_hops(proxies: &[CountedProxy], reasons: &mut Vec<String>) -> Vec<HopProof> {
    let passed: Vec<&CountedProxy> =
        proxies.iter().filter(|proxy| !matches!(proxy.evidence.seen, Seen::Nothing(_))).collect();
    if passed.is_empty() {
        return Vec::new();
    }
    let hops = (0..=passed.len()).map(|index| {
        let (from, to) = (index.checked_sub(1).map(|before| passed[before]), passed.get(index).copied());
        let mut hop = HopProof {
            from: from.map_or_else(|| ENDS[0].to_owned(), |proxy| proxy.name.clone()),
            to: to.map_or_else(|| ENDS[1].to_owned(), |proxy| proxy.name.clone()),
            ..HopProof::default()
        };
        if let Some(proxy) = from {
            let spoken = &proxy.evidence.spoken;
            spoken.tell(&spoken.sent_on, proxy, &mut hop);
        }
        if let Some(proxy) = to {
            let spoken = &proxy.evidence.spoken;
            spoken.tell(&spoken.received, proxy, &mut hop);
        }
        leave_to_who_knows(&mut hop);
        judge(&hop, reasons);
        hop
    });
    hops.collect()
}

/// Of two neighbours, one that reads knows more than one that carries, and one that knows gRPC more than one that does not.
fn leave_to_who_knows(hop: &mut HopProof) {
    let is_read = hop.spoken.iter().any(|protocol| *protocol != HopProtocol::Tcp);
    if is_read && hop.asked != Some(HopProtocol::Tcp) {
        hop.spoken.retain(|protocol| *protocol != HopProtocol::Tcp);
    }
    if hop.spoken.contains(&HopProtocol::Grpc) {
        hop.spoken.retain(|protocol| *protocol != HopProtocol::Http2);
    }
}

fn judge(hop: &HopProof, reasons: &mut Vec<String>) {
    let Some(asked) = hop.asked else { return };
    let others: Vec<&str> =
        hop.spoken.iter().filter(|spoken| !spoken.is_as_asked(asked)).map(|spoken| spoken.words()).collect();
    if !others.is_empty() {
        reasons.push(format!(
            "{} and {} spoke {} with each other, though the experiment asks for {asked} on this hop",
            hop.from,
            hop.to,
            others.join(" and ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Evidence, RequestCounters};
    use super::*;
    use std::collections::BTreeMap;

    fn reading(name: &str, before: &[(&str, u64)], after: &[(&str, u64)]) -> CountedProxy {
        let counters = RequestCounters {
            requests: String::new(),
            connections: String::new(),
            retries: String::new(),
            traced: String::new(),
            given_up: Default::default(),
        };
        let spoken = Spoken::reading("in", "out", HopProtocol::Http1, HopProtocol::Http1);
        proxy(name, Evidence { spoken, ..Evidence::of(Seen::Requests(counters)) }, before, after)
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
        let hops = judge_hops(proxies, &mut reasons);
        let words = |hop: &HopProof| format!("{} > {}: {}", hop.from, hop.to, hop.words());
        (hops.iter().map(words).collect(), reasons)
    }

    #[test]
    fn each_hop_has_what_both_of_its_ends_counted() {
        let proxies = ["near", "far"].map(|name| reading(name, &[], &[(RECEIVED[0], 400), (SENT_ON[0], 4)]));
        let (hops, reasons) = told(&proxies);
        assert_eq!(hops, ["client > near: HTTP/1.1", "near > far: HTTP/1.1", "far > server: HTTP/1.1"]);
        assert!(reasons.is_empty(), "{reasons:?}");
    }

    #[test]
    fn another_protocol_than_is_asked_is_named_with_its_hop() {
        let near = reading("near", &[], &[(RECEIVED[0], 400), (SENT_ON[0], 0), (SENT_ON[1], 1)]);
        let far = reading("far", &[], &[(RECEIVED[0], 0), (RECEIVED[1], 400), (SENT_ON[0], 4)]);
        let (hops, reasons) = told(&[near, far]);
        assert_eq!(hops[1], "near > far: HTTP/2");
        assert_eq!(
            reasons,
            [
                "near and far spoke HTTP/2 with each other, though the experiment asks for HTTP/1.1 on this hop"
            ]
        );
    }

    /// Connections that were opened before the trial carry requests in it, and no counter of connections rises.
    #[test]
    fn connections_from_before_the_trial_hide_nothing() {
        let counters = [(RECEIVED[0], 100), (SENT_ON[0], 2), (SENT_ON[1], 3)];
        let grown = [(RECEIVED[0], 500), (SENT_ON[0], 2), (SENT_ON[1], 3)];
        let (hops, reasons) = told(&[reading("near", &counters, &grown)]);
        assert_eq!(hops, ["client > near: HTTP/1.1", "near > server: HTTP/1.1 and HTTP/2"]);
        assert_eq!(reasons.len(), 1);
        // Requests of before are none of the trial.
        let (hops, reasons) =
            told(&[reading("near", &[(RECEIVED[1], 7)], &[(RECEIVED[1], 7), (RECEIVED[0], 9)])]);
        assert_eq!(hops[0], "client > near: HTTP/1.1");
        assert!(reasons.is_empty(), "{reasons:?}");
    }

    #[test]
    fn what_no_counter_tells_is_not_guessed() {
        let (hops, reasons) = told(&[reading("near", &[], &[(RECEIVED[0], 400)])]);
        assert_eq!(hops, ["client > near: HTTP/1.1", "near > server: a protocol that no counter tells"]);
        assert!(reasons.is_empty(), "{reasons:?}");
        let mut silent = reading("near", &[], &[(RECEIVED[0], 400)]);
        silent.after = Err("no answer".to_owned());
        assert_eq!(told(&[silent]).0[0], "client > near: a protocol that no counter tells");
        assert!(told(&[]).0.is_empty());
    }

    #[test]
    fn grpc_is_told_from_what_else_http2_carries() {
        let with = |grpc: u64| {
            let counters = [(RECEIVED[1], 400), (SENT_ON[1], 2), ("cluster.out.grpc.total", grpc)];
            let mut proxy = reading("near", &[], &counters);
            for side in [&mut proxy.evidence.spoken.received, &mut proxy.evidence.spoken.sent_on] {
                side.asked = Some(HopProtocol::Grpc);
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
    fn whoever_reads_knows_better_than_whoever_carries() {
        let carried = |hbone: Option<&str>| SpokenSide {
            asked: None,
            counters: vec![(HopProtocol::Tcp, Count::Connections("carried".to_owned()))],
            hbone: hbone.map(|name| Count::Connections(name.to_owned())),
        };
        let unread = |received: SpokenSide, sent_on: SpokenSide| Evidence {
            spoken: Spoken { received, sent_on, grpc: None },
            ..Evidence::of(Seen::Streams(super::super::StreamCounters::of_tcp_proxy("out")))
        };
        let counted = [("carried", 4), ("hbone", 1)];
        let source = proxy("source", unread(carried(None), carried(Some("hbone"))), &[], &counted);
        let target = proxy("target", unread(carried(Some("hbone")), carried(None)), &[], &counted);
        let waypoint = reading("waypoint", &[], &[(RECEIVED[0], 400), (SENT_ON[0], 4)]);
        let (hops, reasons) = told(&[source.clone(), target.clone()]);
        assert_eq!(hops[1], "source > target: unread bytes inside HBONE");
        assert!(reasons.is_empty(), "{reasons:?}");
        let (hops, reasons) = told(&[source, waypoint, target]);
        assert_eq!(
            hops,
            [
                "client > source: unread bytes",
                "source > waypoint: HTTP/1.1 inside HBONE",
                "waypoint > target: HTTP/1.1 inside HBONE",
                "target > server: unread bytes",
            ]
        );
        assert!(reasons.is_empty(), "{reasons:?}");
    }

    #[test]
    fn what_is_to_be_carried_must_not_be_read() {
        let evidence = Evidence {
            spoken: Spoken::carrying("out"),
            ..Evidence::of(Seen::Streams(super::super::StreamCounters::of_tcp_proxy("out")))
        };
        let carried = ("tcp.out.downstream_cx_total", 4);
        let (hops, reasons) = told(&[proxy("near", evidence.clone(), &[], &[carried, (SENT_ON[1], 0)])]);
        assert_eq!(hops, ["client > near: unread bytes", "near > server: unread bytes"]);
        assert!(reasons.is_empty(), "{reasons:?}");
        let (hops, reasons) = told(&[proxy("near", evidence, &[], &[carried, (SENT_ON[1], 1)])]);
        assert_eq!(hops[1], "near > server: unread bytes and HTTP/2");
        assert_eq!(reasons.len(), 1);
    }
}
