//! One simulated proxy on its stream: which requests follow from which responses.
//!
//! The order is Envoy's. A proxy subscribes to clusters, then to the endpoints that they name. Once it has
//! all endpoints, it subscribes to listeners, and to the routes, secrets and extensions that those name. A
//! response is acknowledged after the subscriptions that follow from it. Later, while a new cluster waits for
//! its endpoints, the ack of the clusters is withheld. An updated cluster uses the endpoints that are held.
//!
//! On a new stream, it resumes all earlier subscriptions at once, with the versions that are held. A
//! sidecar's agent requests the name table after the first request for listeners. A ztunnel requests
//! addresses and authorizations, and nothing follows from them.

mod response;
mod subscribe;

use super::event::{Event, Moment, StreamBroken, Violation};
use super::holding::Store;
use super::marks::{MarkId, Marks};
use super::outbox::Outbox;
use super::proxy::{ProxyKind, ProxySpec, XdsVariant};
use super::reader::{Incoming, Reading};
use super::subscription::Subscription;
use experiment::xds::ResourceType;
use std::sync::Arc;

/// Shared state of a thread's sessions, lent to the session that receives.
pub struct Receiver<'a> {
    /// Names and holdings.
    pub store: &'a mut Store,
    /// The open marks.
    pub marks: &'a Marks,
    /// Events reported by the session are appended here.
    pub events: &'a mut Vec<Event>,
    /// Maximum message size in bytes; larger messages end the stream.
    pub message_limit_bytes: u64,
}

/// A simulated proxy. It outlives its streams, and a new stream resumes with the resources it holds.
pub struct Session {
    spec: Arc<ProxySpec>,
    variant: XdsVariant,
    subscriptions: Vec<Subscription>,
    /// True once clusters were warm, so that listeners are subscribed to.
    has_warmed: bool,
    /// True if [`Event::Complete`] was reported on this stream.
    is_complete: bool,
    is_connected: bool,
    node_is_sent: bool,
    /// Expected marks, sorted.
    expected: Vec<MarkId>,
    /// Types whose next response is to be rejected.
    rejected: Vec<ResourceType>,
    incoming: Option<Box<Incoming>>,
}

impl Session {
    /// Creates a proxy that has not been connected yet. A ztunnel always uses the delta variant.
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

    /// The proxy's identity.
    #[must_use]
    pub fn spec(&self) -> &Arc<ProxySpec> {
        &self.spec
    }

    /// The method of its stream: `DeltaAggregatedResources` or `StreamAggregatedResources`.
    #[must_use]
    pub fn variant(&self) -> XdsVariant {
        self.variant
    }

    /// True if every type requested on this stream was answered, and everything named by clusters and
    /// listeners is held. Secrets and extensions count even without a response: istiod does not respond for
    /// those that it cannot find.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The first resource that an incomplete session waits for: a type and, for types with names, the first name.
    #[must_use]
    pub fn missing(&self, store: &Store) -> Option<(ResourceType, Option<String>)> {
        let missing = self.subscriptions.iter().find(|subscription| !subscription.is_settled())?;
        let name = missing.first_missing().map(|name| store.names.text(name).to_owned());
        Some((missing.resource_type, name))
    }

    /// Number of resources of a type that it holds.
    #[must_use]
    pub fn held(&self, resource_type: ResourceType) -> usize {
        self.subscription(resource_type).map_or(0, |subscription| subscription.holding.entries.len())
    }

    /// Approximate memory usage in bytes, without the store.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let subscriptions: usize = self.subscriptions.iter().map(Subscription::memory_bytes).sum();
        size_of::<Self>() + subscriptions + self.expected.capacity() * size_of::<MarkId>()
    }

    /// Starts to search for a mark.
    pub fn expect(&mut self, mark: MarkId) {
        if let Err(position) = self.expected.binary_search(&mark) {
            self.expected.insert(position, mark);
        }
    }

    /// Stops searching for a mark.
    pub fn forget(&mut self, mark: MarkId) {
        if let Ok(position) = self.expected.binary_search(&mark) {
            self.expected.remove(position);
        }
    }

    /// Makes the session reject the next response of a type.
    pub fn reject_next(&mut self, resource_type: ResourceType) {
        self.rejected.push(resource_type);
    }

    /// Called when a stream has opened.
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

    /// Called when the stream has ended.
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

    /// Called when a message of this length begins.
    ///
    /// # Errors
    /// Returns an error if it exceeds the size limit.
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

    /// Processes bytes of the message.
    ///
    /// # Errors
    /// Returns an error if there are more bytes than announced, or if they are not a valid response.
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

    /// Called when the message has ended.
    ///
    /// # Errors
    /// Returns an error if it is shorter than announced, or not a valid response.
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
        // Safe only here: now sessions refer only to names that they hold, or that a message being read contains.
        receiver.store.sweep_if_grown();
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

    fn is_on_demand(&self, resource_type: ResourceType) -> bool {
        resource_type == ResourceType::Addresses && self.spec.on_demand
    }

    /// Types to subscribe to independently of other types. A waypoint's workload discovery needs the delta variant.
    fn first_types(&self) -> impl Iterator<Item = ResourceType> + use<> {
        let types: &[ResourceType] = match (self.spec.kind, self.variant) {
            (ProxyKind::Ztunnel, _) => &[ResourceType::Addresses, ResourceType::Authorizations],
            (ProxyKind::Waypoint, XdsVariant::Delta) => &[ResourceType::Clusters, ResourceType::Workloads],
            _ => &[ResourceType::Clusters],
        };
        types.iter().copied()
    }
}

fn broken(receiver: &mut Receiver<'_>, kind: Violation) -> StreamBroken {
    receiver.events.push(Event::Violation { kind, resource_type: None });
    StreamBroken
}
