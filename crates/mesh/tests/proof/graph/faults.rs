//! Faults of services, restarts, protocols and bypassed proxies: each is charged to its own edges.

use super::*;

#[test]
fn callee_that_received_fewer_requests_than_sent_is_reported() {
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
    // Requests that failed may not have reached it, nor those in flight.
    let proof = graph.prove_after(|counted| {
        counted.services.get_mut("tiered-1/b1").unwrap().insert(CountedService::REQUESTS.to_owned(), 990);
        counted.calls[1] = CallCounters { answered: 990, failed: 8, ..counted.calls[1] };
    });
    assert!(proof.proven, "{:?}", proof.reasons);
}

#[test]
fn service_without_request_counter_is_not_checked_for_requests() {
    let graph = Graph { protocol: Protocol::Tcp, ..Graph::new(&[("driver", "a", 1000), ("a", "db", 1000)]) };
    let proof = graph.prove_after(|counted| {
        counted.services.get_mut("db").unwrap().retain(|name, _| name == CountedService::CONNECTIONS);
    });
    assert!(proof.proven, "{:?}", proof.reasons);
}

#[test]
fn restarted_or_unreadable_component_leaves_only_its_edges_unproven() {
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
        proof.reasons[0].ends_with("tiered-1/b1 did not report what it sent: it was ended by signal 9"),
        "{:?}",
        proof.reasons
    );
}

/// One caller uses HTTP/1.1 to one callee and gRPC to another: its proxy counts both at one listener.
#[test]
fn protocols_of_other_edges_are_not_faults() {
    let graph = Graph::new(&[("driver", "a", 1000), ("a", "b", 1000), ("a", "c", 500)]);
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

/// Traffic that bypasses its own proxy may arrive in another protocol at a listener that other edges share.
#[test]
fn unexpected_protocol_is_charged_to_edge_already_unproven() {
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
fn connections_older_than_trial_are_enough() {
    for protocol in [Protocol::Http1, Protocol::Tcp] {
        let graph = Graph { protocol, ..Graph::new(&[("driver", "a", 1000), ("a", "b", 1000)]) };
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
fn proof_waits_for_total_at_shared_proxy() {
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

/// Four services query a database outside the mesh through their sidecars and a gateway, which counts only
/// connections.
#[test]
fn query_that_bypasses_sidecar_is_named_despite_shared_gateway() {
    let services = ["flights", "booking", "customer", "auth"];
    let calls = services.map(|service| (service, "db", 500));
    let mut graph = Graph { protocol: Protocol::Tcp, ..Graph::new(&calls) };
    graph.calls.push(("driver".to_owned(), "flights".to_owned(), 1000));
    let gateway = Hop::outbound(Layer::L4, 8443, "outbound|27017||db".to_owned());
    let prove = |graph: &Graph| {
        let mut counted = graph.counted();
        counted.services.get_mut("db").unwrap().retain(|name, _| name == CountedService::CONNECTIONS);
        // Traffic that bypasses the sidecar bypasses the gateway too.
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

/// One ztunnel for all: it counts each pair of workloads separately, and all plaintext connections together.
#[test]
fn shared_ztunnel_names_pair_with_plaintext() {
    let calls = [("driver", "a", 1000), ("a", "b", 1000), ("a", "c", 1000), ("b", "c", 1000)];
    let counters = |side: &str, from: &str, to: &str| {
        ["request_bytes", "response_bytes", "connections"].map(|what| format!("{side}.{from}>{to}.{what}"))
    };
    let evidence = |side: &'static str, from: &str, to: &str| {
        let [bytes, response_bytes, connections] = counters(side, from, to);
        let demand = mesh::proof::Demand {
            counter: format!("{side}.plain"),
            rises: false,
            otherwise: "passed connections in plaintext, though mutual TLS is claimed",
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
    assert!(proof.reasons.iter().any(|reason| reason.contains("in plaintext")), "{:?}", proof.reasons);
}
