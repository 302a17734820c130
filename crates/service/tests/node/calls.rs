//! Calls are made as scripts say, and counted exactly.

use crate::graph::{call, get, service, start, topology};
use experiment::protocol::Protocol;
use experiment::topology::script::Step;

const REQUESTS: u64 = 20;

#[test]
fn fan_out_is_counted_exactly_over_every_protocol() {
    let branches = Step::Parallel(vec![call(1), Step::Sequence(vec![call(2), call(3)]), call(4)]);
    let shop = topology(vec![
        service("web", Protocol::Http1, vec![branches, call(1)]),
        service("one", Protocol::Http1, vec![]),
        service("two", Protocol::Http2, vec![]),
        service("rpc", Protocol::Grpc, vec![]),
        service("raw", Protocol::Tcp, vec![]),
    ]);
    let nodes = start(&shop);
    for _ in 0..REQUESTS {
        let (status, body) = get(nodes[0].address, "/");
        assert_eq!((status, body.len()), (200, 100), "{body}");
    }
    assert_eq!(nodes[0].calls("one", "sent"), 2 * REQUESTS);
    let web = nodes[0].counters();
    assert_eq!(web["requests"], REQUESTS);
    assert_eq!(web["protocols"]["http/1.1"]["answered"], REQUESTS);
    for (node, callee, protocol, sent) in [
        (1, "one", "http/1.1", 2 * REQUESTS),
        (2, "two", "http/2", REQUESTS),
        (3, "rpc", "grpc", REQUESTS),
        (4, "raw", "tcp", REQUESTS),
    ] {
        let calls = &web["calls"][callee];
        assert_eq!((&calls["sent"], &calls["answered"]), (&sent.into(), &sent.into()), "{callee}: {calls}");
        assert_eq!((&calls["failed"], &calls["connections"]), (&0.into(), &1.into()), "{callee}: {calls}");
        let counted = nodes[node].counters();
        assert_eq!(counted["protocols"][protocol]["requests"], sent, "{callee}");
        assert_eq!(counted["bytes_received"], calls["bytes_sent"], "{callee}");
        assert_eq!(counted["bytes_sent"], calls["bytes_received"], "{callee}");
    }
    for node in nodes {
        node.end();
    }
}
