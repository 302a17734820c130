//! Requests that follow from a response: subscriptions and acks.

use super::Session;
use crate::xds::holding::{Store, Update, difference, union};
use crate::xds::names::{NameId, Names};
use crate::xds::node;
use crate::xds::outbox::Outbox;
use crate::xds::proxy::{ProxyKind, XdsVariant};
use crate::xds::request::{DeltaRequest, Request};
use crate::xds::subscription::Subscription;
use experiment::xds::ResourceType;
use std::iter;
use std::sync::Arc;

impl Session {
    /// Subscribes to a type for the first time on this stream.
    pub(super) fn request(&mut self, resource_type: ResourceType, names: &Names, out: &mut Outbox) {
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
        // Subscribing to nothing is expressed as subscribing to everything and unsubscribing from it.
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

    /// Subscribes to addresses on demand, by names such as `network/10.0.0.1` or `namespace/host.name`. A new
    /// stream subscribes to the held ones again.
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

    /// Sends the subscriptions that follow from a response.
    pub(super) fn follow(&mut self, resource_type: ResourceType, store: &mut Store, out: &mut Outbox) {
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

    /// True if every cluster has its endpoints.
    fn clusters_are_warm(&self) -> bool {
        self.subscription(ResourceType::Clusters).is_some_and(|clusters| clusters.is_answered)
            && self.subscription(ResourceType::Endpoints).is_none_or(Subscription::holds_all)
    }

    /// Sends everything that waited for warm clusters: the subscription to listeners, and acks of clusters.
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

    /// Names of a type that clusters and listeners refer to.
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

    /// Subscribes to new names, and unsubscribes from names that are no longer referred to.
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

    /// Sends the ack or NACK for the last response of a type. A response without a nonce gets none.
    pub(super) fn acknowledge(
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
}
