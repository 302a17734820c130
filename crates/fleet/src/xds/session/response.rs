//! Processing of a response: whether it is accepted, which contents are kept, and which marks arrived.

use super::{Receiver, Session};
use crate::xds::contents::Contents;
use crate::xds::event::{Event, Moment, Response, Violation};
use crate::xds::holding::Update;
use crate::xds::outbox::Outbox;
use crate::xds::proxy::XdsVariant;
use crate::xds::subscription::Subscription;
use experiment::xds::ResourceType;

impl Session {
    /// Called when a complete response has arrived.
    pub(super) fn response(
        &mut self,
        contents: Contents,
        at: Moment,
        receiver: &mut Receiver<'_>,
        out: &mut Outbox,
    ) {
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
            routes: contents.routes,
            removed: u32::try_from(contents.removed.len()).unwrap_or(u32::MAX),
            accepted,
            at,
        }));
        self.note_complete(at, receiver.events);
    }

    /// Resource type of the response, if it was requested.
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

    /// Stores the contents of the response, or returns the reason for rejecting it.
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

    fn note_complete(&mut self, at: Moment, events: &mut Vec<Event>) {
        if !self.is_complete && self.is_connected && self.subscriptions.iter().all(Subscription::is_settled) {
            self.is_complete = true;
            events.push(Event::Complete { at });
        }
    }
}
