//! Service graphs: the nodes' counters of their calls against the proxies' counters, with replicas, fan-out,
//! probability.

mod faults;

use experiment::Protocol;
use experiment::environment::SentLoad;
use mesh::envoy::hop::{Hop, Layer};
use mesh::proof::edge::{Edge, EdgeProxy, Replica, Sent, have_settled, prove_edges};
use mesh::proof::{CallCounters, CountedService, Evidence, RequestByteCounters, Seen};
use results::{HopProtocol, PathProof};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const REQUEST_BYTES: u64 = 80;
const RESPONSE_BYTES: u64 = 620;
/// Connections from a caller's replica to a callee.
const CONNECTIONS: u64 = 2;

type Counters = BTreeMap<String, u64>;

/// Calls of a graph: caller, callee, requests. The caller `driver` is not one of its services.
struct Graph {
    protocol: Protocol,
    calls: Vec<(String, String, u64)>,
    replicas: BTreeMap<String, usize>,
    /// Edges whose requests bypass the caller's proxy and the callee's proxy.
    bypassed: Vec<(String, String)>,
}

impl Graph {
    fn new(calls: &[(&str, &str, u64)]) -> Self {
        let owned =
            |(from, to, requests): &(&str, &str, u64)| ((*from).to_owned(), (*to).to_owned(), *requests);
        Self {
            protocol: Protocol::Http1,
            calls: calls.iter().map(owned).collect(),
            replicas: BTreeMap::new(),
            bypassed: Vec::new(),
        }
    }

    /// In each of these namespaces: driver → a → b1, b2 → c.
    fn tiers(namespaces: usize, requests: u64) -> Self {
        let mut graph = Self::new(&[]);
        for number in 1..=namespaces {
            let name = |service: &str| format!("tiered-{number}/{service}");
            for (from, to) in [("driver", "a"), ("a", "b1"), ("a", "b2"), ("b1", "c"), ("b2", "c")] {
                graph.calls.push((name(from), name(to), requests));
            }
        }
        graph
    }

    fn bypassing(mut self, from: &str, to: &str) -> Self {
        self.bypassed.push((from.to_owned(), to.to_owned()));
        self
    }

    fn replicas(&self, name: &str) -> usize {
        self.replicas.get(name).copied().unwrap_or(1)
    }

    fn is_bypassed(&self, from: &str, to: &str) -> bool {
        self.bypassed.iter().any(|(one, other)| (one.as_str(), other.as_str()) == (from, to))
    }

    fn counted(&self) -> Counted {
        let mut proxies: BTreeMap<String, Vec<Counters>> = BTreeMap::new();
        let mut services: BTreeMap<String, Counters> = BTreeMap::new();
        let mut calls = Vec::new();
        for (from, to, requests) in &self.calls {
            for name in [from, to] {
                let replicas = vec![Counters::new(); self.replicas(name)];
                proxies.entry(name.clone()).or_insert(replicas);
            }
            let service = services.entry(to.clone()).or_default();
            let connections = CONNECTIONS * self.replicas(from) as u64;
            for (name, by) in [
                (CountedService::REQUESTS, *requests),
                (CountedService::CONNECTIONS, connections),
                (CountedService::RECEIVED_BYTES, requests * REQUEST_BYTES),
                (CountedService::SENT_BYTES, requests * RESPONSE_BYTES),
            ] {
                *service.entry(name.to_owned()).or_default() += by;
            }
            calls.push(CallCounters {
                sent: *requests,
                answered: *requests,
                connections,
                bytes_sent: requests * REQUEST_BYTES,
                bytes_received: requests * RESPONSE_BYTES,
                ..CallCounters::default()
            });
            if self.is_bypassed(from, to) || *requests == 0 {
                continue;
            }
            self.count(proxies.get_mut(from).expect("it is known"), &outbound(self.protocol, to), *requests);
            self.count(proxies.get_mut(to).expect("it is known"), &inbound(self.protocol), *requests);
        }
        Counted { proxies, services, calls }
    }

    /// Distributes requests over replicas.
    fn count(&self, replicas: &mut [Counters], hop: &Hop, requests: u64) {
        let share = requests / replicas.len() as u64;
        let rest = requests % replicas.len() as u64;
        for (index, counters) in replicas.iter_mut().enumerate() {
            let requests = if index == 0 { share + rest } else { share };
            let (manager, cluster) = (&hop.connection_manager, &hop.cluster);
            let handshakes = hop.evidence(true).handshakes.expect("it has a peer");
            for (name, by) in [
                (format!("http.{manager}.downstream_rq_total"), requests),
                (format!("http.{manager}.downstream_rq_http1_total"), requests),
                (format!("http.{manager}.downstream_cx_total"), CONNECTIONS),
                (format!("cluster.{cluster}.upstream_rq_total"), requests),
                (format!("cluster.{cluster}.upstream_cx_total"), CONNECTIONS),
                (format!("tcp.{cluster}.downstream_cx_total"), CONNECTIONS),
                (format!("tcp.{cluster}.downstream_cx_rx_bytes_total"), requests * REQUEST_BYTES),
                (format!("tcp.{cluster}.downstream_cx_tx_bytes_total"), requests * RESPONSE_BYTES),
                (handshakes, CONNECTIONS),
            ] {
                *counters.entry(name).or_default() += by;
            }
        }
    }

    fn prove(&self) -> PathProof {
        self.prove_after(|_| ())
    }

    /// The proof after `change` modified the counters.
    fn prove_after(&self, change: impl FnOnce(&mut Counted)) -> PathProof {
        let mut counted = self.counted();
        change(&mut counted);
        self.with_edges(&counted.replicas(), &counted, prove_edges)
    }

    fn with_edges<T>(
        &self,
        replicas: &BTreeMap<String, Vec<Replica>>,
        counted: &Counted,
        use_edges: impl FnOnce(&[Edge<'_>]) -> T,
    ) -> T {
        let evidence: Vec<[Evidence; 2]> = self
            .calls
            .iter()
            .map(|(_, to, _)| {
                [outbound(self.protocol, to).evidence(true), inbound(self.protocol).evidence(true)]
            })
            .collect();
        let services: BTreeMap<&String, CountedService> =
            counted.services.iter().map(|(name, counters)| (name, service(counters))).collect();
        let calls = self.calls.iter().zip(&counted.calls).zip(&evidence);
        let edges: Vec<Edge<'_>> = calls
            .map(|(((from, to, requests), calls), [near, far])| {
                let request_bytes = Some(REQUEST_BYTES as f64);
                let is_driven = from.ends_with("driver");
                let place = |name: &'_ str, evidence| EdgeProxy {
                    name: replicas.get_key_value(name).expect("it has a proxy").0.as_str(),
                    side: None,
                    evidence,
                    spans: None,
                    replicas: replicas[name].iter().collect(),
                };
                Edge {
                    from,
                    to,
                    sent: match is_driven {
                        true => Sent::Load(SentLoad { requests: *requests, request_bytes }),
                        false => Sent::Calls { counted: Ok(*calls), expected: *requests as f64 },
                    },
                    service: vec![&services[to]],
                    proxies: vec![place(from, near), place(to, far)],
                }
            })
            .collect();
        use_edges(&edges)
    }
}

struct Counted {
    /// Counters of each replica's proxy.
    proxies: BTreeMap<String, Vec<Counters>>,
    services: BTreeMap<String, Counters>,
    /// Counters of each call of the graph.
    calls: Vec<CallCounters>,
}

impl Counted {
    fn replicas(&self) -> BTreeMap<String, Vec<Replica>> {
        let replica = |name: &str, index: usize, counters: &Counters| Replica {
            name: format!("{name}-{index}"),
            before: counters.keys().map(|name| (name.clone(), 7)).collect(),
            after: Ok(counters.iter().map(|(name, rise)| (name.clone(), 7 + rise)).collect()),
        };
        let of = |(name, replicas): (&String, &Vec<Counters>)| {
            let replicas = replicas.iter().enumerate();
            (name.clone(), replicas.map(|(index, counters)| replica(name, index, counters)).collect())
        };
        self.proxies.iter().map(of).collect()
    }
}

fn service(counters: &Counters) -> CountedService {
    CountedService { before: Counters::new(), after: Ok(counters.clone()) }
}

fn outbound(protocol: Protocol, callee: &str) -> Hop {
    Hop::outbound(Layer::for_protocol(protocol), 8080, format!("outbound|8080||{callee}"))
}

fn inbound(protocol: Protocol) -> Hop {
    Hop::inbound(Layer::for_protocol(protocol), 8080)
}

fn unproven(proof: &PathProof) -> Vec<String> {
    let edges = proof.edges.iter().filter(|edge| !edge.proven);
    edges.map(|edge| format!("{} → {}", edge.from, edge.to)).collect()
}

#[test]
fn only_bypassed_edge_of_450_is_named() {
    for protocol in [Protocol::Http1, Protocol::Tcp] {
        let mut whole = Graph::tiers(90, 1000);
        whole.protocol = protocol;
        let proof = whole.prove();
        assert!(proof.proven, "{protocol}: {:?}", proof.reasons);
        assert_eq!(proof.edges.len(), 450);
        for (from, to) in [("a", "b2"), ("b1", "c"), ("b2", "c"), ("driver", "a")] {
            let (from, to) = (format!("tiered-17/{from}"), format!("tiered-17/{to}"));
            let mut bypassed = Graph::tiers(90, 1000).bypassing(&from, &to);
            bypassed.protocol = protocol;
            let proof = bypassed.prove();
            assert_eq!(unproven(&proof), [format!("{from} → {to}")], "{protocol}: {:#?}", proof.reasons);
            assert!(proof.reasons.iter().all(|reason| reason.starts_with(&format!("edge {from} → {to}: "))));
        }
    }
}

/// In a debug build, including generating the counters.
#[test]
fn proof_of_450_edges_takes_less_than_seconds() {
    let graph = Graph::tiers(90, 1000);
    let began = Instant::now();
    assert!(graph.prove().proven);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn number_of_reasons_is_limited_for_many_edges() {
    let mut graph = Graph::tiers(50, 1000);
    graph.bypassed = graph.calls.iter().map(|(from, to, _)| (from.clone(), to.clone())).collect();
    let proof = graph.prove();
    assert_eq!(unproven(&proof).len(), 250);
    assert!(proof.reasons.len() <= 13, "{}", proof.reasons.len());
    let last = proof.reasons.last().expect("there are reasons");
    assert!(last.ends_with(" more reasons; 250 edges are not proven"), "{last}");
}

/// A bot that calls one of two services at random, replicas, and several calls per request.
#[test]
fn replicas_fan_out_and_probability_are_exact() {
    let mut graph = Graph::new(&[
        ("driver", "web", 1000),
        ("web", "emoji", 2000),
        ("web", "voting", 143),
        ("emoji", "store", 6000),
        ("voting", "store", 0),
    ]);
    graph.replicas = [("web".to_owned(), 3), ("emoji".to_owned(), 2)].into();
    let proof = graph.prove();
    assert!(proof.proven, "{:?}", proof.reasons);
    let received = proof.proxies.iter().map(|proxy| (proxy.name.as_str(), proxy.requests_received));
    assert_eq!(received.collect::<Vec<_>>()[2..4], [("web", 2143), ("emoji", 2000)]);
    let proof = Graph { bypassed: vec![("web".to_owned(), "voting".to_owned())], ..graph }.prove();
    assert_eq!(unproven(&proof), ["web → voting"]);
}

#[test]
fn edge_without_requests_is_proven_unless_graph_expects_some() {
    let graph = Graph::new(&[("driver", "a", 1000), ("a", "b", 1000), ("a", "c", 0)]);
    for (expected, is_proven) in [(19.0, true), (20.0, false)] {
        let counted = graph.counted();
        let proof = graph.with_edges(&counted.replicas(), &counted, |edges| {
            let mut edges = edges.to_vec();
            edges[2].sent = Sent::Calls { counted: Ok(CallCounters::default()), expected };
            prove_edges(&edges)
        });
        assert_eq!((proof.proven, proof.edges[2].proven), (is_proven, is_proven), "{:?}", proof.reasons);
    }
    // Another caller uses it.
    let proof = graph.prove_after(|counted| {
        counted.services.get_mut("c").unwrap().insert(CountedService::REQUESTS.to_owned(), 3);
    });
    assert_eq!(
        proof.reasons,
        ["edge a → c: c received 3 requests; its callers sent 0: something else uses it"]
    );
}
