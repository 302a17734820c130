//! Graphs of services: what nodes counted of their calls against what proxies counted, with replicas, fan-out, probability.

use experiment::Protocol;
use experiment::environment::SentLoad;
use experiment::schema::{HopProtocol, PathProof};
use mesh::envoy::hop::{Hop, Layer};
use mesh::proof::edge::{Edge, EdgeProxy, Replica, Sent, have_settled, prove_edges};
use mesh::proof::{CallCounters, CountedService, Evidence, RequestByteCounters, Seen};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const REQUEST_BYTES: u64 = 80;
const RESPONSE_BYTES: u64 = 620;
/// Connections of a caller's replica to a callee.
const CONNECTIONS: u64 = 2;

type Counters = BTreeMap<String, u64>;

/// Calls of a graph: caller, callee, requests. The caller `driver` is none of its services.
struct Graph {
    protocol: Protocol,
    calls: Vec<(String, String, u64)>,
    replicas: BTreeMap<String, usize>,
    /// Edges whose requests leave the caller past its proxy, and go past the callee's too.
    bypassed: Vec<(String, String)>,
}

impl Graph {
    fn of(calls: &[(&str, &str, u64)]) -> Self {
        let owned =
            |(from, to, requests): &(&str, &str, u64)| ((*from).to_owned(), (*to).to_owned(), *requests);
        Self {
            protocol: Protocol::Http1,
            calls: calls.iter().map(owned).collect(),
            replicas: BTreeMap::new(),
            bypassed: Vec::new(),
        }
    }

    /// A driver → a → b1, b2 → c in each of these namespaces.
    fn tiers(namespaces: usize, requests: u64) -> Self {
        let mut graph = Self::of(&[]);
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

    /// Spreads requests over replicas.
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

    /// The proof after a change of what was counted.
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
    /// Of each replica's proxy.
    proxies: BTreeMap<String, Vec<Counters>>,
    services: BTreeMap<String, Counters>,
    /// Of each call of the graph.
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
fn one_bypassed_edge_of_450_is_named_alone_and_quickly() {
    for protocol in [Protocol::Http1, Protocol::Tcp] {
        let mut whole = Graph::tiers(90, 1000);
        whole.protocol = protocol;
        let began = Instant::now();
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
        // Five proofs of a debug build, with the making of what they prove.
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn reasons_of_many_edges_stay_few() {
    let mut graph = Graph::tiers(50, 1000);
    graph.bypassed = graph.calls.iter().map(|(from, to, _)| (from.clone(), to.clone())).collect();
    let proof = graph.prove();
    assert_eq!(unproven(&proof).len(), 250);
    assert!(proof.reasons.len() <= 13, "{}", proof.reasons.len());
    let last = proof.reasons.last().expect("there are reasons");
    assert!(last.ends_with(" more reasons; 250 edges are not proven"), "{last}");
}

/// A bot that calls one of two services by chance, replicas, and several calls per request.
#[test]
fn replicas_fan_out_and_probability_are_exact() {
    let mut graph = Graph::of(&[
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
fn edge_without_requests_is_proven_unless_the_graph_expects_some() {
    let graph = Graph::of(&[("driver", "a", 1000), ("a", "b", 1000), ("a", "c", 0)]);
    for (expected, is_proven) in [(19.0, true), (20.0, false)] {
        let counted = graph.counted();
        let proof = graph.with_edges(&counted.replicas(), &counted, |edges| {
            let mut edges = edges.to_vec();
            edges[2].sent = Sent::Calls { counted: Ok(CallCounters::default()), expected };
            prove_edges(&edges)
        });
        assert_eq!((proof.proven, proof.edges[2].proven), (is_proven, is_proven), "{:?}", proof.reasons);
    }
    // Somebody else calls it.
    let proof = graph.prove_after(|counted| {
        counted.services.get_mut("c").unwrap().insert(CountedService::REQUESTS.to_owned(), 3);
    });
    assert_eq!(
        proof.reasons,
        ["edge a → c: c received 3 requests; its callers sent 0: something else uses it"]
    );
}

#[test]
fn callee_must_have_received_what_its_callers_sent() {
    let graph = Graph::tiers(1, 1000);
    let with = |requests: u64| {
        graph.prove_after(|counted| {
            let b1 = counted.services.get_mut("tiered-1/b1").unwrap();
            b1.insert(CountedService::REQUESTS.to_owned(), requests);
        })
    };
    let edge = "edge tiered-1/a → tiered-1/b1: tiered-1/b1 received";
    assert_eq!(with(990).reasons, [format!("{edge} 990 requests; its callers sent 1000")]);
    assert_eq!(
        with(1010).reasons,
        [format!("{edge} 1010 requests; its callers sent 1000: something else uses it")]
    );
    // Those that failed may not have reached it, those under way neither.
    let proof = graph.prove_after(|counted| {
        counted.services.get_mut("tiered-1/b1").unwrap().insert(CountedService::REQUESTS.to_owned(), 990);
        counted.calls[1] = CallCounters { answered: 990, failed: 8, ..counted.calls[1] };
    });
    assert!(proof.proven, "{:?}", proof.reasons);
}

#[test]
fn service_that_does_not_count_requests_is_not_asked_for_them() {
    let graph = Graph { protocol: Protocol::Tcp, ..Graph::of(&[("driver", "a", 1000), ("a", "db", 1000)]) };
    let proof = graph.prove_after(|counted| {
        counted.services.get_mut("db").unwrap().retain(|name, _| name == CountedService::CONNECTIONS);
    });
    assert!(proof.proven, "{:?}", proof.reasons);
}

#[test]
fn restarted_and_silent_components_leave_their_own_edges_unproven() {
    let mut graph = Graph::tiers(2, 1000);
    graph.replicas.insert("tiered-1/b1".to_owned(), 3);
    let counted = graph.counted();
    let with = |change: &dyn Fn(&mut Replica)| {
        let mut replicas = counted.replicas();
        change(&mut replicas.get_mut("tiered-1/b1").unwrap()[1]);
        let proof = graph.with_edges(&replicas, &counted, prove_edges);
        assert_eq!(unproven(&proof), ["tiered-1/a → tiered-1/b1", "tiered-1/b1 → tiered-1/c"]);
        proof.reasons[0].clone()
    };
    let restarted = with(&|replica| {
        replica.before.insert("server.uptime".to_owned(), 60);
        replica.after.as_mut().unwrap().insert("server.uptime".to_owned(), 1);
    });
    assert!(restarted.contains("tiered-1/b1-1: it started anew during the trial"), "{restarted}");
    let silent = with(&|replica| replica.after = Err("no answer within 5000 ms".to_owned()));
    assert!(silent.ends_with("counters: tiered-1/b1-1: no answer within 5000 ms"), "{silent}");

    let proof = graph.with_edges(&counted.replicas(), &counted, |edges| {
        let mut edges = edges.to_vec();
        edges[3].sent = Sent::Calls { counted: Err("it was ended by signal 9".to_owned()), expected: 1000.0 };
        prove_edges(&edges)
    });
    assert_eq!(unproven(&proof), ["tiered-1/b1 → tiered-1/c"]);
    assert!(
        proof.reasons[0].ends_with("tiered-1/b1 could not be asked what it sent: it was ended by signal 9"),
        "{:?}",
        proof.reasons
    );
}

/// One caller speaks HTTP/1.1 to one callee and gRPC to another: its proxy counts both at one listener.
#[test]
fn protocols_of_other_edges_are_not_taken_for_a_fault() {
    let graph = Graph::of(&[("driver", "a", 1000), ("a", "b", 1000), ("a", "c", 500)]);
    let mut counted = graph.counted();
    let of_a = &mut counted.proxies.get_mut("a").unwrap()[0];
    of_a.insert("http.outbound_0.0.0.0_8080.downstream_rq_http1_total".to_owned(), 1000);
    of_a.insert("http.outbound_0.0.0.0_8080.downstream_rq_http2_total".to_owned(), 500);
    of_a.insert("cluster.outbound|8080||c.grpc.total".to_owned(), 500);
    let of_c = &mut counted.proxies.get_mut("c").unwrap()[0];
    of_c.remove("http.inbound_0.0.0.0_8080.downstream_rq_http1_total");
    of_c.insert("http.inbound_0.0.0.0_8080.downstream_rq_http2_total".to_owned(), 500);
    let near = outbound(Protocol::Grpc, "c").evidence(true);
    let far = inbound(Protocol::Grpc).evidence(true);
    let prove = |is_grpc: bool| {
        graph.with_edges(&counted.replicas(), &counted, |edges| {
            let mut edges = edges.to_vec();
            if is_grpc {
                edges[2].proxies[0].evidence = &near;
                edges[2].proxies[1].evidence = &far;
            }
            prove_edges(&edges)
        })
    };
    let proof = prove(true);
    assert!(proof.proven, "{:?}", proof.reasons);
    assert!(proof.hops.iter().any(|hop| hop.spoken.contains(&HopProtocol::Grpc)), "{:?}", proof.hops);
    assert!(!prove(false).proven);
}

/// What goes past its own proxy may arrive in another protocol at the listener that others use too.
#[test]
fn another_protocol_is_charged_to_the_edge_that_is_unproven_anyway() {
    let graph = Graph::tiers(1, 1000).bypassing("tiered-1/b2", "tiered-1/c");
    let proof = graph.prove_after(|counted| {
        let of_c = &mut counted.proxies.get_mut("tiered-1/c").unwrap()[0];
        of_c.insert("http.inbound_0.0.0.0_8080.downstream_rq_http2_total".to_owned(), 1000);
    });
    assert_eq!(unproven(&proof), ["tiered-1/b2 → tiered-1/c"]);
    assert!(proof.reasons.iter().any(|reason| reason.contains("spoke HTTP/")), "{:?}", proof.reasons);
}

/// Connections of nodes outlive a trial: the next one opens none, and completes no handshake.
#[test]
fn connections_from_before_the_trial_are_enough() {
    for protocol in [Protocol::Http1, Protocol::Tcp] {
        let graph = Graph { protocol, ..Graph::of(&[("driver", "a", 1000), ("a", "b", 1000)]) };
        let proof = graph.prove_after(|counted| {
            let of_connections = |name: &String| name.contains("_cx_total") || name.ends_with("handshake");
            let rises = counted.proxies.values_mut().flatten().flat_map(BTreeMap::iter_mut);
            rises.filter(|(name, _)| of_connections(name)).for_each(|(_, rise)| *rise = 0);
            for counters in counted.services.values_mut() {
                counters.insert(CountedService::CONNECTIONS.to_owned(), 0);
            }
            counted.calls.iter_mut().for_each(|calls| calls.connections = 0);
        });
        assert!(proof.proven, "{protocol}: {:?}", proof.reasons);
    }
}

#[test]
fn proof_waits_for_the_sum_of_what_a_shared_proxy_is_to_count() {
    let graph = Graph::tiers(1, 1000);
    let mut counted = graph.counted();
    let settled = |counted: &Counted| graph.with_edges(&counted.replicas(), counted, have_settled);
    assert!(settled(&counted));
    let of_c = &mut counted.proxies.get_mut("tiered-1/c").unwrap()[0];
    of_c.insert("http.inbound_0.0.0.0_8080.downstream_rq_total".to_owned(), 1999);
    assert!(!settled(&counted));
    counted.calls[3].answered -= 1;
    assert!(settled(&counted));
}

/// Four services query a database outside the mesh through their sidecars and a gateway; it counts connections alone.
#[test]
fn query_past_its_sidecar_is_named_though_the_gateway_is_shared() {
    let services = ["flights", "booking", "customer", "auth"];
    let calls = services.map(|service| (service, "db", 500));
    let mut graph = Graph { protocol: Protocol::Tcp, ..Graph::of(&calls) };
    graph.calls.push(("driver".to_owned(), "flights".to_owned(), 1000));
    let gateway = Hop::outbound(Layer::L4, 8443, "outbound|27017||db".to_owned());
    let prove = |graph: &Graph| {
        let mut counted = graph.counted();
        counted.services.get_mut("db").unwrap().retain(|name, _| name == CountedService::CONNECTIONS);
        // What goes past the sidecar goes past the gateway too.
        let through = 500 * (services.len() - graph.bypassed.len()) as u64;
        let mut counters = vec![Counters::new()];
        graph.count(&mut counters, &gateway, through);
        let connections = CONNECTIONS * through / 500;
        counters[0].insert("tcp.outbound|27017||db.downstream_cx_total".to_owned(), connections);
        let gateway_replica = Replica {
            name: "egress-gateway".to_owned(),
            before: Counters::new(),
            after: Ok(counters.remove(0)),
        };
        let evidence = gateway.evidence(false);
        let evidence = Evidence { handshakes: None, encrypted: None, ..evidence };
        graph.with_edges(&counted.replicas(), &counted, |edges| {
            let mut edges = edges.to_vec();
            for edge in edges.iter_mut().filter(|edge| edge.to == "db") {
                edge.proxies[1] = EdgeProxy {
                    name: "egress-gateway",
                    side: None,
                    evidence: &evidence,
                    spans: None,
                    replicas: vec![&gateway_replica],
                };
            }
            prove_edges(&edges)
        })
    };
    let proof = prove(&graph);
    assert!(proof.proven, "{:?}", proof.reasons);
    let proof = prove(&graph.bypassing("booking", "db"));
    assert_eq!(unproven(&proof), ["booking → db"], "{:#?}", proof.reasons);
    let gateway =
        "edge booking → db: egress-gateway carried 6 of 8 connections: part of the traffic did not pass it";
    assert!(proof.reasons.iter().any(|reason| reason == gateway), "{:#?}", proof.reasons);
}

/// One ztunnel for all: it counts each pair of workloads apart, and connections in plain text all together.
#[test]
fn shared_ztunnel_names_the_pair_that_passes_it_in_plain_text() {
    let calls = [("driver", "a", 1000), ("a", "b", 1000), ("a", "c", 1000), ("b", "c", 1000)];
    let counters = |side: &str, from: &str, to: &str| {
        ["request_bytes", "response_bytes", "connections"].map(|what| format!("{side}.{from}>{to}.{what}"))
    };
    let evidence = |side: &'static str, from: &str, to: &str| {
        let [bytes, response_bytes, connections] = counters(side, from, to);
        let demand = mesh::proof::Demand {
            counter: format!("{side}.plain"),
            rises: false,
            otherwise: "passed connections in plain text, though mutual TLS is claimed",
        };
        let handshakes = Some(connections.clone());
        let seen =
            RequestByteCounters { bytes, response_bytes, connections, added_to: false, multiplexed: false };
        Evidence {
            handshakes,
            tls_expected: true,
            demands: vec![demand],
            ..Evidence::new(Seen::RequestBytes(seen))
        }
    };
    let prove = |bypassed: Option<(&str, &str)>| {
        let mut after = Counters::new();
        for (from, to, requests) in calls {
            for side in ["source", "destination"] {
                if bypassed == Some((from, to)) {
                    after.insert("destination.plain".to_owned(), 2);
                } else {
                    let [bytes, response_bytes, connections] = counters(side, from, to);
                    after.insert(bytes, requests * REQUEST_BYTES);
                    after.insert(response_bytes, requests * RESPONSE_BYTES);
                    after.insert(connections, 2);
                }
            }
        }
        let ztunnel = Replica { name: "ztunnel".to_owned(), before: Counters::new(), after: Ok(after) };
        let evidence =
            calls.map(|(from, to, _)| ["source", "destination"].map(|side| evidence(side, from, to)));
        let edges = calls.iter().zip(&evidence).map(|((from, to, requests), sides)| {
            let place = |(evidence, side)| EdgeProxy {
                name: "ztunnel",
                side: Some(side),
                evidence,
                spans: None,
                replicas: vec![&ztunnel],
            };
            let counted = CallCounters {
                sent: *requests,
                answered: *requests,
                bytes_sent: requests * REQUEST_BYTES,
                ..CallCounters::default()
            };
            let load = SentLoad { requests: *requests, request_bytes: Some(REQUEST_BYTES as f64) };
            Edge {
                from,
                to,
                sent: match *from {
                    "driver" => Sent::Load(load),
                    _ => Sent::Calls { counted: Ok(counted), expected: *requests as f64 },
                },
                service: Vec::new(),
                proxies: sides.iter().zip(["client", "server"]).map(place).collect(),
            }
        });
        prove_edges(&edges.collect::<Vec<_>>())
    };
    assert!(prove(None).proven, "{:?}", prove(None).reasons);
    let proof = prove(Some(("a", "c")));
    assert_eq!(unproven(&proof), ["a → c"]);
    assert!(proof.reasons.iter().any(|reason| reason.contains("in plain text")), "{:?}", proof.reasons);
}
