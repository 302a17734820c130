//! One simulated proxy on its stream: which requests follow from which responses.
//!
//! The order is Envoy's. It subscribes to clusters, then to the endpoints that they name; when all endpoints are there it
//! subscribes to listeners, and to the routes, secrets and extensions that those name. A response is acknowledged after the
//! subscriptions that follow from it. Later, while a new cluster waits for its endpoints, the clusters' acknowledgement is
//! withheld. An updated cluster uses the endpoints that are held. On a new stream all that was subscribed to before is
//! subscribed to at once, with the versions that are held. A sidecar's agent asks for the name table behind the first request for
//! listeners. A ztunnel asks for addresses and authorizations and nothing follows from them.

use super::contents::Contents;
use super::event::{Event, Moment, Response, StreamBroken, Violation};
use super::holding::{Store, Update, difference, union};
use super::marks::{MarkId, Marks};
use super::names::{NameId, Names};
use super::node;
use super::outbox::Outbox;
use super::proxy::{ProxyKind, ProxySpec, XdsVariant};
use super::reader::{Incoming, Reading};
use super::request::{DeltaRequest, Request};
use super::resource_type::ResourceType;
use super::subscription::Subscription;
use std::iter;
use std::sync::Arc;

/// What the sessions of a thread share while one of them receives.
pub struct Receiver<'a> {
    /// Names and holdings.
    pub store: &'a mut Store,
    /// The open marks.
    pub marks: &'a Marks,
    /// Reports of the session are appended.
    pub events: &'a mut Vec<Event>,
    /// Messages above end the stream.
    pub message_limit_bytes: u64,
}

/// A simulated proxy. It survives its streams, and what it holds is resumed.
pub struct Session {
    spec: Arc<ProxySpec>,
    variant: XdsVariant,
    subscriptions: Vec<Subscription>,
    /// Clusters were warm once, so listeners are subscribed to.
    has_warmed: bool,
    /// [`Event::Complete`] was reported on this stream.
    is_complete: bool,
    is_connected: bool,
    node_is_sent: bool,
    /// Sorted.
    expected: Vec<MarkId>,
    /// Types whose next response is rejected.
    rejected: Vec<ResourceType>,
    incoming: Option<Box<Incoming>>,
}

impl Session {
    /// A proxy that has not been connected yet. A ztunnel speaks the delta variant alone.
    #[must_use]
    pub fn new(spec: Arc<ProxySpec>, variant: XdsVariant) -> Self {
        let variant = if spec.kind == ProxyKind::Ztunnel { XdsVariant::Delta } else { variant };
        Self {
            spec,
            variant,
            subscriptions: Vec::new(),
            has_warmed: false,
            is_complete: false,
            is_connected: false,
            node_is_sent: false,
            expected: Vec::new(),
            rejected: Vec::new(),
            incoming: None,
        }
    }

    /// Who it is.
    #[must_use]
    pub fn spec(&self) -> &Arc<ProxySpec> {
        &self.spec
    }

    /// The method that its stream calls: `DeltaAggregatedResources` or `StreamAggregatedResources`.
    #[must_use]
    pub fn variant(&self) -> XdsVariant {
        self.variant
    }

    /// Every type that it asked for on this stream was answered, and all that clusters and listeners name is held. Secrets and
    /// extensions count when they are answered or not: istiod answers nothing for those that it does not find.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// What a session that is not complete waits for: a type and, of types with names, the first name.
    #[must_use]
    pub fn missing(&self, store: &Store) -> Option<(ResourceType, Option<String>)> {
        let missing = self.subscriptions.iter().find(|subscription| !is_settled(subscription))?;
        let name = missing.first_missing().map(|name| store.names.text(name).to_owned());
        Some((missing.resource_type, name))
    }

    /// Number of resources of a type that it holds.
    #[must_use]
    pub fn held(&self, resource_type: ResourceType) -> usize {
        self.subscription(resource_type).map_or(0, |subscription| subscription.holding.entries.len())
    }

    /// Looks for a mark from now on.
    pub fn expect(&mut self, mark: MarkId) {
        if let Err(position) = self.expected.binary_search(&mark) {
            self.expected.insert(position, mark);
        }
    }

    /// Looks for a mark no longer.
    pub fn forget(&mut self, mark: MarkId) {
        if let Ok(position) = self.expected.binary_search(&mark) {
            self.expected.remove(position);
        }
    }

    /// Rejects the next response of a type.
    pub fn reject_next(&mut self, resource_type: ResourceType) {
        self.rejected.push(resource_type);
    }

    /// A stream is open.
    pub fn connected(&mut self, store: &Store, out: &mut Outbox) {
        self.is_connected = true;
        self.is_complete = false;
        self.node_is_sent = false;
        for resource_type in self.first_types() {
            if self.subscription(resource_type).is_none() {
                self.subscriptions.push(Subscription::new(resource_type));
            }
        }
        let types: Vec<_> =
            self.subscriptions.iter().map(|subscription| subscription.resource_type).collect();
        for resource_type in types {
            let is_unnamed = resource_type.is_named()
                && self.subscription(resource_type).is_none_or(|subscription| subscription.names.is_empty());
            if !is_unnamed {
                self.request(resource_type, &store.names, out);
            }
        }
    }

    /// The stream is over.
    pub fn disconnected(&mut self, store: &mut Store) {
        self.is_connected = false;
        self.is_complete = false;
        if let Some(incoming) = self.incoming.take() {
            store.names.leave_reader(incoming.contents.epoch);
        }
        for subscription in &mut self.subscriptions {
            subscription.disconnected();
        }
    }

    /// A message of a length begins.
    ///
    /// # Errors
    /// It is longer than the limit.
    pub fn message_start(&mut self, length: u64, receiver: &mut Receiver<'_>) -> Result<(), StreamBroken> {
        if length > receiver.message_limit_bytes {
            return Err(broken(receiver, Violation::MessageTooLarge));
        }
        let incoming = Box::new(Incoming::new(self.variant, length, &mut receiver.store.names));
        if let Some(unfinished) = self.incoming.replace(incoming) {
            receiver.store.names.leave_reader(unfinished.contents.epoch);
        }
        Ok(())
    }

    /// Bytes of the message.
    ///
    /// # Errors
    /// They are more than were announced, or not those of a response.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        at: Moment,
        receiver: &mut Receiver<'_>,
    ) -> Result<(), StreamBroken> {
        let Some(incoming) = &mut self.incoming else { return Err(broken(receiver, Violation::WrongLength)) };
        if bytes.len() as u64 > incoming.remaining() {
            return Err(broken(receiver, Violation::WrongLength));
        }
        let (expected, marks) = (&self.expected[..], receiver.marks);
        let reading =
            Reading { variant: self.variant, names: &mut receiver.store.names, marks, expected, at };
        incoming.feed(bytes, reading).map_err(|_| broken(receiver, Violation::UndecodableMessage))
    }

    /// The message is over.
    ///
    /// # Errors
    /// It is shorter than was announced, or not a response.
    pub fn message_end(
        &mut self,
        at: Moment,
        receiver: &mut Receiver<'_>,
        out: &mut Outbox,
    ) -> Result<(), StreamBroken> {
        let Some(incoming) = self.incoming.take() else {
            return Err(broken(receiver, Violation::WrongLength));
        };
        let epoch = incoming.contents.epoch;
        let result = if incoming.remaining() > 0 {
            Err(broken(receiver, Violation::WrongLength))
        } else if incoming.finish().is_err() {
            Err(broken(receiver, Violation::UndecodableMessage))
        } else {
            self.response(incoming.contents, at, receiver, out);
            Ok(())
        };
        receiver.store.names.leave_reader(epoch);
        result
    }

    fn subscription(&self, resource_type: ResourceType) -> Option<&Subscription> {
        self.subscriptions.iter().find(|subscription| subscription.resource_type == resource_type)
    }

    fn subscription_mut(&mut self, resource_type: ResourceType) -> &mut Subscription {
        let found =
            self.subscriptions.iter().position(|subscription| subscription.resource_type == resource_type);
        let position = found.unwrap_or_else(|| {
            self.subscriptions.push(Subscription::new(resource_type));
            self.subscriptions.len() - 1
        });
        &mut self.subscriptions[position]
    }

    /// Types that are subscribed to without having seen another. A waypoint's workload discovery needs the delta variant.
    fn first_types(&self) -> impl Iterator<Item = ResourceType> + use<> {
        let types: &[ResourceType] = match (self.spec.kind, self.variant) {
            (ProxyKind::Ztunnel, _) => &[ResourceType::Addresses, ResourceType::Authorizations],
            (ProxyKind::Waypoint, XdsVariant::Delta) => &[ResourceType::Clusters, ResourceType::Workloads],
            _ => &[ResourceType::Clusters],
        };
        types.iter().copied()
    }

    fn is_on_demand(&self, resource_type: ResourceType) -> bool {
        resource_type == ResourceType::Addresses && self.spec.on_demand
    }

    /// Subscribes to a type for the first time on this stream.
    fn request(&mut self, resource_type: ResourceType, names: &Names, out: &mut Outbox) {
        // A ztunnel sends its node with the first request of each type.
        let node_is_due = !self.node_is_sent || self.spec.kind == ProxyKind::Ztunnel;
        self.node_is_sent = true;
        let node = node_is_due.then(|| node::encode(&self.spec, self.variant));
        let variant = self.variant;
        let is_on_demand = self.is_on_demand(resource_type);
        let subscription = self.subscription_mut(resource_type);
        subscription.is_requested = true;
        // An agent does not resume the name table.
        let is_resumed = resource_type.has_names();
        let subscribed = subscription.names.iter().map(|name| names.text(*name));
        if variant == XdsVariant::StateOfTheWorld {
            return Request {
                resource_type,
                node: node.as_deref(),
                version: if is_resumed { &subscription.version } else { "" },
                names: &mut subscribed.into_iter(),
                nonce: "",
                rejection: None,
            }
            .send(out);
        }
        let held = subscription.holding.entries.iter().filter(|_| is_resumed);
        let is_first = subscription.holding.entries.is_empty();
        // To subscribe to nothing is to subscribe to everything and to unsubscribe from it.
        let nothing = is_on_demand.then_some("*").into_iter();
        DeltaRequest {
            resource_type,
            node: node.as_deref(),
            subscribe: &mut subscribed.chain(nothing.clone()),
            unsubscribe: &mut nothing.into_iter(),
            held: &mut held.map(|entry| (names.text(entry.name), names.text(entry.version))),
            nonce: "",
            rejection: None,
        }
        .send(out);
        if is_on_demand && is_first {
            let spec = Arc::clone(&self.spec);
            self.demand(spec.demands.iter().map(String::as_str), out);
        }
    }

    /// On demand: subscribes to addresses by name, such as `network/10.0.0.1` or `namespace/host.name`. On a new stream those
    /// that are held are subscribed to again.
    pub fn demand<'a>(&mut self, names: impl Iterator<Item = &'a str>, out: &mut Outbox) {
        if !self.is_connected || !self.is_on_demand(ResourceType::Addresses) {
            return;
        }
        for name in names {
            self.subscription_mut(ResourceType::Addresses).unanswered_demands += 1;
            DeltaRequest {
                resource_type: ResourceType::Addresses,
                node: None,
                subscribe: &mut iter::once(name),
                unsubscribe: &mut iter::empty(),
                held: &mut iter::empty(),
                nonce: "",
                rejection: None,
            }
            .send(out);
        }
    }

    /// A whole response is there.
    fn response(&mut self, contents: Contents, at: Moment, receiver: &mut Receiver<'_>, out: &mut Outbox) {
        let mut contents = contents;
        let resource_type = self.type_of(&mut contents);
        let mut accepted = false;
        if let Some(resource_type) = resource_type {
            self.note_nonce(resource_type, &mut contents);
            let rejection = self.accept(resource_type, &mut contents, at, receiver);
            accepted = rejection.is_none();
            if accepted {
                self.follow(resource_type, receiver.store, out);
            }
            self.acknowledge(resource_type, rejection, &receiver.store.names, out);
        }
        for kind in &contents.violations {
            receiver.events.push(Event::Violation { kind: *kind, resource_type });
        }
        receiver.events.push(Event::Response(Response {
            resource_type: resource_type.or(contents.resource_type),
            bytes: contents.bytes,
            resources: contents.resources,
            removed: u32::try_from(contents.removed.len()).unwrap_or(u32::MAX),
            accepted,
            at,
        }));
        self.note_complete(at, receiver.events);
    }

    /// The type, if it was asked for.
    fn type_of(&self, contents: &mut Contents) -> Option<ResourceType> {
        let url = contents.type_url.as_deref().unwrap_or_default();
        let Some(resource_type) = ResourceType::from_url(url.as_bytes()) else {
            contents.violate(Violation::UnknownType);
            return None;
        };
        if !self.subscription(resource_type).is_some_and(|subscription| subscription.is_requested) {
            contents.violate(Violation::UnrequestedType);
            return None;
        }
        if contents.resource_type.is_some_and(|of_resources| of_resources != resource_type) {
            contents.violate(Violation::MixedTypes);
        }
        Some(resource_type)
    }

    fn note_nonce(&mut self, resource_type: ResourceType, contents: &mut Contents) {
        let subscription = self.subscription_mut(resource_type);
        if contents.nonce.is_empty() {
            contents.violate(Violation::EmptyNonce);
        } else if contents.nonce == subscription.nonce {
            contents.violate(Violation::RepeatedNonce);
        }
        subscription.nonce = contents.nonce.clone();
    }

    /// Takes what the response brings, or says why it is rejected.
    fn accept(
        &mut self,
        resource_type: ResourceType,
        contents: &mut Contents,
        at: Moment,
        receiver: &mut Receiver<'_>,
    ) -> Option<&'static str> {
        let whole =
            self.variant == XdsVariant::StateOfTheWorld && resource_type.is_whole_in_state_of_the_world();
        contents.settle();
        let rejection = contents.rejection().or_else(|| self.rejection_by_policy(resource_type));
        let subscription = self.subscription_mut(resource_type);
        if subscription.is_answered {
            subscription.unanswered_demands = subscription.unanswered_demands.saturating_sub(1);
        }
        if rejection.is_some() {
            return rejection;
        }
        subscription.is_answered = true;
        if resource_type.is_named() {
            contents.keep_subscribed(subscription, &receiver.store.names);
        }
        let update = Update {
            entries: &contents.entries,
            references: &contents.references,
            removed: &contents.removed,
            is_whole: whole,
        };
        subscription.holding = receiver.store.update(&subscription.holding, &update);
        subscription.version = contents.version.clone();
        self.note_marks(resource_type, contents, whole, at, receiver);
        None
    }

    fn rejection_by_policy(&mut self, resource_type: ResourceType) -> Option<&'static str> {
        let position = self.rejected.iter().position(|rejected| *rejected == resource_type)?;
        self.rejected.remove(position);
        Some("rejected by the fleet's policy")
    }

    /// Reports the marks that arrived with an accepted response.
    fn note_marks(
        &mut self,
        resource_type: ResourceType,
        contents: &mut Contents,
        whole: bool,
        at: Moment,
        receiver: &mut Receiver<'_>,
    ) {
        if self.expected.is_empty() {
            return;
        }
        let Some(mut scan) = contents.scan_of(resource_type, &self.expected, receiver.marks) else { return };
        for name in &contents.removed {
            scan.removed(receiver.store.names.text(*name), at);
        }
        if whole {
            scan.end_of_whole_response(at);
        }
        for (mark, at) in scan.arrived {
            self.forget(mark);
            receiver.events.push(Event::Arrived { mark, at });
        }
    }

    /// Sends the subscriptions that follow from a response.
    fn follow(&mut self, resource_type: ResourceType, store: &mut Store, out: &mut Outbox) {
        match resource_type {
            ResourceType::Clusters => {
                self.subscribe_named(ResourceType::Endpoints, store, out);
                self.subscribe_named(ResourceType::Secrets, store, out);
                self.warm(store, out);
            }
            ResourceType::Endpoints => self.warm(store, out),
            ResourceType::Listeners => {
                self.subscribe_named(ResourceType::Routes, store, out);
                self.subscribe_named(ResourceType::Secrets, store, out);
                self.subscribe_named(ResourceType::ExtensionConfigs, store, out);
            }
            _ => {}
        }
    }

    /// Every cluster has its endpoints.
    fn clusters_are_warm(&self) -> bool {
        self.subscription(ResourceType::Clusters).is_some_and(|clusters| clusters.is_answered)
            && self.subscription(ResourceType::Endpoints).is_none_or(Subscription::holds_all)
    }

    /// What waited for warm clusters: the subscription to listeners, and acknowledgements of clusters.
    fn warm(&mut self, store: &Store, out: &mut Outbox) {
        if !self.clusters_are_warm() {
            return;
        }
        for nonce in std::mem::take(&mut self.subscription_mut(ResourceType::Clusters).withheld) {
            self.send_acknowledgement(ResourceType::Clusters, &nonce, None, &store.names, out);
        }
        if self.subscription_mut(ResourceType::Listeners).is_requested {
            return;
        }
        self.has_warmed = true;
        self.request(ResourceType::Listeners, &store.names, out);
        if self.spec.dns_capture && self.spec.kind == ProxyKind::Sidecar {
            self.request(ResourceType::NameTables, &store.names, out);
        }
    }

    /// Names of a type that clusters and listeners name.
    fn wanted(&self, resource_type: ResourceType) -> Arc<[NameId]> {
        let of = |owner| match self.subscription(owner) {
            Some(subscription) => subscription.holding.targets(resource_type),
            None => Arc::new([]),
        };
        match resource_type {
            ResourceType::Endpoints => of(ResourceType::Clusters),
            ResourceType::Routes | ResourceType::ExtensionConfigs => of(ResourceType::Listeners),
            _ => union(&of(ResourceType::Clusters), &of(ResourceType::Listeners)),
        }
    }

    /// Subscribes to names that are new, unsubscribes from those that nothing names any longer.
    fn subscribe_named(&mut self, resource_type: ResourceType, store: &mut Store, out: &mut Outbox) {
        let wanted = self.wanted(resource_type);
        let current = self.subscription(resource_type).map(|subscription| Arc::clone(&subscription.names));
        let current = current.unwrap_or_else(|| Arc::new([]));
        if current == wanted {
            return;
        }
        let removed = difference(&current, &wanted);
        let subscription = self.subscription_mut(resource_type);
        subscription.names = Arc::clone(&wanted);
        subscription.absent.retain(|name| wanted.binary_search(name).is_ok());
        let update = Update { entries: &[], references: &[], removed: &removed, is_whole: false };
        subscription.holding = store.update(&subscription.holding, &update);
        if !subscription.is_requested {
            return self.request(resource_type, &store.names, out);
        }
        let names = &store.names;
        subscription.drop_names(removed.iter().map(|name| names.text(*name)));
        if self.variant == XdsVariant::StateOfTheWorld {
            let nonce = self.subscription_mut(resource_type).nonce.clone();
            return self.send_acknowledgement(resource_type, &nonce, None, names, out);
        }
        DeltaRequest {
            resource_type,
            node: None,
            subscribe: &mut difference(&wanted, &current).iter().map(|name| names.text(*name)),
            unsubscribe: &mut removed.iter().map(|name| names.text(*name)),
            held: &mut iter::empty(),
            nonce: "",
            rejection: None,
        }
        .send(out);
    }

    /// Acknowledges or rejects the last response of a type. A response without a nonce cannot be.
    fn acknowledge(
        &mut self,
        resource_type: ResourceType,
        rejection: Option<&str>,
        names: &Names,
        out: &mut Outbox,
    ) {
        let nonce = self.subscription_mut(resource_type).nonce.clone();
        if nonce.is_empty() {
            return;
        }
        let waits = resource_type == ResourceType::Clusters && self.has_warmed && rejection.is_none();
        if waits && !self.clusters_are_warm() {
            return self.subscription_mut(resource_type).withhold(nonce);
        }
        self.send_acknowledgement(resource_type, &nonce, rejection, names, out);
    }

    fn send_acknowledgement(
        &mut self,
        resource_type: ResourceType,
        nonce: &str,
        rejection: Option<&str>,
        names: &Names,
        out: &mut Outbox,
    ) {
        let variant = self.variant;
        let subscription = self.subscription_mut(resource_type);
        match variant {
            XdsVariant::Delta => DeltaRequest {
                resource_type,
                node: None,
                subscribe: &mut iter::empty(),
                unsubscribe: &mut iter::empty(),
                held: &mut iter::empty(),
                nonce,
                rejection,
            }
            .send(out),
            XdsVariant::StateOfTheWorld => Request {
                resource_type,
                node: None,
                version: &subscription.version,
                names: &mut subscription.names.iter().map(|name| names.text(*name)),
                nonce,
                rejection,
            }
            .send(out),
        }
    }

    fn note_complete(&mut self, at: Moment, events: &mut Vec<Event>) {
        if !self.is_complete && self.is_connected && self.subscriptions.iter().all(is_settled) {
            self.is_complete = true;
            events.push(Event::Complete { at });
        }
    }
}

/// The subscription has what it asked for.
fn is_settled(subscription: &Subscription) -> bool {
    let is_optional = !subscription.resource_type.is_always_answered()
        || (subscription.resource_type.is_named() && subscription.names.is_empty());
    let is_answered = subscription.is_answered && subscription.unanswered_demands == 0;
    is_optional || (is_answered && subscription.holds_all())
}

fn broken(receiver: &mut Receiver<'_>, kind: Violation) -> StreamBroken {
    receiver.events.push(Event::Violation { kind, resource_type: None });
    StreamBroken
}
