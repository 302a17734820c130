//! Invariants of whatever a control plane sends. Included by the fuzz target and by the test that replays the corpus.

use fleet::xds::{
    Event, Mark, Marks, Outbox, Presence, ProxyKind, ProxySpec, Receiver, ResourceType, Session, Store,
    StreamBroken, XdsVariant,
};
use std::sync::Arc;
use std::time::Instant;

/// The first byte chooses proxy and variant, the second the length of pieces. The rest is messages, each behind its length in
/// two bytes.
///
/// # Panics
/// Where something does not hold.
pub fn check(input: &[u8]) {
    let [choice, piece, rest @ ..] = input else { return };
    let kind = ProxyKind::ALL[usize::from(choice & 3)];
    let variant = if choice & 4 == 0 { XdsVariant::Delta } else { XdsVariant::StateOfTheWorld };
    let at = Instant::now();
    let whole = Stream::new(kind, variant, at).run(rest, usize::MAX);
    let in_pieces = Stream::new(kind, variant, at).run(rest, usize::from(*piece) + 1);
    assert_eq!(whole, in_pieces, "pieces change nothing");
}

struct Stream {
    session: Session,
    store: Store,
    marks: Marks,
    at: Instant,
}

impl Stream {
    fn new(kind: ProxyKind, variant: XdsVariant, at: Instant) -> Self {
        let spec = ProxySpec {
            kind,
            name: "pod".to_owned(),
            namespace: "namespace".to_owned(),
            address: [10, 0, 0, 1].into(),
            service_account: "account".to_owned(),
            labels: Default::default(),
            node: "node".to_owned(),
            cluster_id: "Kubernetes".to_owned(),
            istio_version: "1.31.0".to_owned(),
            dns_capture: true,
            on_demand: false,
            demands: Vec::new(),
        };
        let mut session = Session::new(Arc::new(spec), variant);
        let mut marks = Marks::new();
        for resource_type in ResourceType::ALL {
            for presence in [Presence::Present, Presence::Gone] {
                let needle = b"needle".to_vec();
                session.expect(marks.open(Mark { resource_type, presence, resource: None, needle }));
            }
        }
        Self { session, store: Store::new(), marks, at }
    }

    /// All that the session reports and sends.
    fn run(mut self, mut input: &[u8], piece: usize) -> Vec<String> {
        let mut seen = Vec::new();
        let mut out = Outbox::new();
        self.session.connected(&self.store, &mut out);
        while let [low, high, rest @ ..] = input {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
            let (body, rest) = rest.split_at(length);
            input = rest;
            let mut events = Vec::new();
            let result = self.message(body, piece, &mut events, &mut out);
            seen.push(format!("{result:?} {} {events:?}", self.session.is_complete()));
            if result.is_err() {
                self.session.disconnected(&mut self.store);
                self.session.connected(&self.store, &mut out);
            }
            seen.extend(out.bodies().map(|body| format!("{body:?}")));
            out.clear();
            if result.is_ok() && self.session.missing(&self.store).is_none() {
                assert!(self.session.is_complete(), "a session that lacks nothing is complete");
            }
        }
        seen
    }

    fn message(
        &mut self,
        body: &[u8],
        piece: usize,
        events: &mut Vec<Event>,
        out: &mut Outbox,
    ) -> Result<(), StreamBroken> {
        let mut receiver =
            Receiver { store: &mut self.store, marks: &self.marks, events, message_limit_bytes: 60_000 };
        self.session.message_start(body.len() as u64, &mut receiver)?;
        for part in body.chunks(piece) {
            self.session.receive(part, self.at, &mut receiver)?;
        }
        self.session.message_end(self.at, &mut receiver, out)
    }
}
