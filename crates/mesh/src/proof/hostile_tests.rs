//! Whatever proxies and services say that they counted, a path is judged: no number is too great.

use super::*;
use experiment::environment::SentLoad;
use experiment::schema::HopProtocol;
use proptest::prelude::*;
use std::collections::BTreeMap;

const HTTP: &str = "http.in.downstream_rq_total";

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(4), Just(800), Just(1 << 53), (u64::MAX - 2)..=u64::MAX, any::<u64>()]
}

fn of(names: &'static [&'static str]) -> impl Strategy<Value = BTreeMap<String, u64>> {
    let counters = prop::collection::vec(prop::option::weighted(0.9, number()), names.len());
    counters.prop_map(move |counts| {
        let named = names.iter().zip(counts);
        named.filter_map(|(name, count)| Some(((*name).to_owned(), count?))).collect()
    })
}

fn proxy(seen: Seen, before: BTreeMap<String, u64>, after: BTreeMap<String, u64>) -> CountedProxy {
    let evidence = Evidence {
        handshakes: Some("handshakes".to_owned()),
        tls_expected: true,
        forwarded: Some(Forwarded::through("in", "out")),
        encrypted: Some(Encrypted::Forwarded),
        protocols: ProtocolCounters::l7("in", "out", HopProtocol::Http1, HopProtocol::Http1),
        ..Evidence::new(seen)
    };
    CountedProxy { name: "proxy".to_owned(), side: None, evidence, before, after: Ok(after) }
}

fn evidence() -> [Seen; 4] {
    let name = |name: &str| name.to_owned();
    [
        Seen::Requests(RequestCounters {
            requests: name(HTTP),
            connections: name("http.in.downstream_cx_total"),
            retries: name("cluster.out.upstream_rq_retry"),
            traced: name("http.in.tracing.random_sampling"),
            given_up: ["cluster.out.upstream_rq_timeout", "given_up"].map(ToOwned::to_owned),
        }),
        Seen::RequestBytes(RequestByteCounters {
            bytes: name("bytes"),
            response_bytes: name("sent"),
            connections: name("connections"),
            added_to: false,
            multiplexed: true,
        }),
        Seen::Streams(StreamCounters {
            connections: name("connections"),
            received_bytes: name("bytes"),
            sent_bytes: name("sent"),
        }),
        Seen::Nothing(vec![name("connections")]),
    ]
}

const OF_A_PROXY: [&str; 20] = [
    "http.in.downstream_rq_http1_total",
    "http.in.downstream_rq_http2_total",
    "cluster.out.upstream_cx_http2_total",
    "cluster.out.grpc.total",
    "cluster.out.upstream_rq_timeout",
    "given_up",
    "cluster.out.upstream_rq_total",
    "cluster.out.upstream_cx_total",
    "cluster.out.upstream_cx_connect_fail",
    "http.in.downstream_rq_4xx",
    "http.in.downstream_rq_5xx",
    HTTP,
    "http.in.downstream_cx_total",
    "cluster.out.upstream_rq_retry",
    "bytes",
    "connections",
    "sent",
    "handshakes",
    "a.lua.errors",
    "b.lua.errors",
];
const OF_A_SERVICE: [&str; 4] = [
    CountedService::REQUESTS,
    CountedService::CONNECTIONS,
    CountedService::RECEIVED_BYTES,
    CountedService::SENT_BYTES,
];

proptest! {
    #[test]
    fn every_path_is_judged(
        counted in prop::collection::vec((0_usize..4, of(&OF_A_PROXY), of(&OF_A_PROXY)), 0..5),
        (before, after) in (of(&OF_A_SERVICE), of(&OF_A_SERVICE)),
        (requests, request_bytes) in (0_u64..1 << 40, prop::option::of(prop_oneof![Just(0.0), Just(1.0), Just(f64::NAN), Just(70.5)])),
    ) {
        let proxies: Vec<CountedProxy> = counted
            .into_iter()
            .map(|(kind, before, after)| proxy(evidence()[kind].clone(), before, after))
            .collect();
        let service = CountedService { before, after: Ok(after) };
        let sent = SentLoad { requests, request_bytes };
        for proxy in &proxies {
            let after = proxy.after.as_ref().expect("it was given");
            // Either answer will do.
            let _ = proxy.evidence.has_settled(&proxy.before, after, &sent, Some(&service));
        }
        let proof = prove(&proxies, &sent, Some(&service));
        prop_assert_eq!(proof.proven, proof.reasons.is_empty());
        // Whatever was spoken was asked for, where the path counts as proven.
        for hop in proof.hops.iter().filter(|_| proof.proven) {
            prop_assert!(hop.spoken.iter().all(|spoken| hop.asked.is_none_or(|asked| spoken.is_as_asked(asked))));
        }
        // What reads requests has seen some, where the path counts as proven.
        for (proxy, proof) in proxies.iter().zip(&proof.proxies).filter(|_| proof.proven && requests > 0) {
            if matches!(proxy.evidence.seen, Seen::Requests(_)) {
                prop_assert!(proof.requests_received > 0);
            }
        }
    }
}
