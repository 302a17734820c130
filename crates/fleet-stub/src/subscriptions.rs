//! Subscriptions of one client and what it was sent, which decide what is sent next. No I/O.

use crate::configuration::{Configuration, TypedResources};
use crate::counts::Counts;
use crate::discovery::Request;
use crate::resources::{ENDPOINTS, ROUTES};
use crate::state::AppliedChange;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Subscriptions of a stream.
pub(crate) struct Subscriptions {
    delta: bool,
    node: Option<String>,
    /// Indexed by the type's position in the configuration.
    watches: Vec<Option<Watch>>,
    last_nonce: u64,
}

/// Subscription to resources of one type.
#[derive(Default)]
struct Watch {
    wildcard: bool,
    /// Places of the resources that are subscribed to by name.
    places: BTreeSet<u32>,
    /// Subscribed names without a resource.
    absent: BTreeSet<String>,
    /// Nonces of responses that are neither acknowledged nor rejected yet.
    pending: Vec<u64>,
}

/// A response without its envelope.
pub(crate) struct Reply {
    pub type_url: &'static str,
    /// Fields that hold the resources.
    pub resources: Bytes,
    pub removed: Vec<String>,
    pub nonce: u64,
}

impl Subscriptions {
    pub fn new(delta: bool) -> Self {
        Self { delta, node: None, watches: Vec::new(), last_nonce: 0 }
    }

    /// Node id in the first request.
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Processes a request, and records a complaint about anything that a client must not send.
    pub fn receive(
        &mut self,
        configuration: &Configuration,
        request: Request,
        counts: &Counts,
    ) -> Option<Reply> {
        counts.requests.add(1);
        if self.node.is_none() {
            self.node = request.node;
            if self.node.as_deref().unwrap_or_default().is_empty() {
                counts.complain("the first request of a stream has no node");
            }
        }
        let Some((position, typed)) = configuration.find(&request.type_url) else {
            counts.unanswered(&request.type_url);
            return None;
        };
        self.watches.resize_with(configuration.types(), || None);
        let first = self.watches[position].is_none();
        let watch = self.watches[position].get_or_insert_default();
        if !request.nonce.is_empty() && !watch.settle(&request.nonce, request.rejection.as_deref(), counts) {
            return None;
        }
        if !first && !request.held.is_empty() {
            counts.complain("versions of held resources come after the first request of a type");
        }
        let (send, removed) = if self.delta {
            watch.delta(typed, first, &request.names, &request.unsubscribed, request.held, counts)
        } else {
            (watch.state_of_the_world(typed, first, &request.names), Vec::new())
        };
        let resources = watch.select(typed, self.delta, send)?;
        Some(self.reply(position, typed.type_url, resources, removed))
    }

    /// Response to a change of the configuration; `configuration` already includes it.
    pub fn changed(&mut self, configuration: &Configuration, change: &AppliedChange) -> Option<Reply> {
        let typed = configuration.at(change.position);
        let delta = self.delta;
        let watch = self.watches.get_mut(change.position)?.as_mut()?;
        if watch.absent.remove(&change.name) {
            watch.places.insert(change.place as u32);
        }
        if !watch.wildcard && !watch.places.contains(&(change.place as u32)) {
            return None;
        }
        let partial = delta || matches!(typed.type_url, ENDPOINTS | ROUTES);
        let send = if partial { Send::Places(vec![change.place]) } else { Send::Watched };
        let removed = if delta && change.removed { vec![change.name.clone()] } else { Vec::new() };
        let resources = watch.select(typed, delta, send)?;
        Some(self.reply(change.position, typed.type_url, resources, removed))
    }

    fn reply(
        &mut self,
        position: usize,
        type_url: &'static str,
        resources: Bytes,
        removed: Vec<String>,
    ) -> Reply {
        self.last_nonce += 1;
        if let Some(watch) = &mut self.watches[position] {
            watch.pending.push(self.last_nonce);
        }
        Reply { type_url, resources, removed, nonce: self.last_nonce }
    }
}

/// Resources to send.
enum Send {
    Nothing,
    /// Everything that is subscribed to.
    Watched,
    Places(Vec<usize>),
}

impl Watch {
    /// Processes an ack or a NACK. Returns true if its nonce is current.
    fn settle(&mut self, nonce: &str, rejection: Option<&str>, counts: &Counts) -> bool {
        let position =
            nonce.parse().ok().and_then(|nonce: u64| self.pending.iter().position(|sent| *sent == nonce));
        let Some(position) = position else {
            counts.complain(&format!("response nonce {nonce:?} was not sent or is settled"));
            return false;
        };
        self.pending.remove(position);
        match rejection {
            Some(text) => counts.reject(text),
            None => counts.acknowledgements.add(1),
        }
        true
    }

    fn delta(
        &mut self,
        typed: &TypedResources,
        first: bool,
        names: &[String],
        unsubscribed: &[String],
        held: Vec<String>,
        counts: &Counts,
    ) -> (Send, Vec<String>) {
        self.wildcard |= (first && names.is_empty()) || names.iter().any(|name| name == "*");
        for name in unsubscribed {
            let was = match typed.index(name) {
                _ if name == "*" => std::mem::take(&mut self.wildcard),
                Some(place) => self.places.remove(&(place as u32)),
                None => self.absent.remove(name),
            };
            if !was {
                counts.complain(&format!("{name:?} is unsubscribed from and was not subscribed to"));
            }
        }
        let places = self.subscribe(typed, names);
        let removed: Vec<String> = held.into_iter().filter(|name| typed.index(name).is_none()).collect();
        let send = match (first && self.wildcard, places.is_empty() && removed.is_empty()) {
            (true, _) => Send::Watched,
            // Like istiod, do not respond to names without a resource.
            (false, true) => Send::Nothing,
            (false, false) => Send::Places(places),
        };
        (send, removed)
    }

    fn state_of_the_world(&mut self, typed: &TypedResources, first: bool, names: &[String]) -> Send {
        let (before, absent) = (std::mem::take(&mut self.places), std::mem::take(&mut self.absent));
        self.wildcard = (first || self.wildcard) && names.is_empty();
        self.subscribe(typed, names);
        let more = self.places.difference(&before).next().is_some();
        let more_absent = self.absent.difference(&absent).next().is_some();
        if first || more || more_absent { Send::Watched } else { Send::Nothing }
    }

    /// Subscribes to names. Returns the places of those that have a resource.
    fn subscribe(&mut self, typed: &TypedResources, names: &[String]) -> Vec<usize> {
        let mut places = Vec::new();
        for name in names.iter().filter(|name| *name != "*") {
            match typed.index(name) {
                Some(place) => {
                    self.places.insert(place as u32);
                    places.push(place);
                }
                None => {
                    self.absent.insert(name.clone());
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    fn select(&self, typed: &TypedResources, delta: bool, send: Send) -> Option<Bytes> {
        match send {
            Send::Nothing => None,
            Send::Watched if self.wildcard => Some(typed.all(delta)),
            Send::Watched => {
                Some(typed.some(delta, &self.places.iter().map(|place| *place as usize).collect::<Vec<_>>()))
            }
            Send::Places(places) => Some(typed.some(delta, &places)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{CLUSTER, Collection, for_sidecars};

    fn configuration() -> Configuration {
        Configuration::new(for_sidecars(20))
    }

    fn request(type_url: &str, names: &[&str], nonce: &str) -> Request {
        Request {
            node: Some("sidecar~10.0.0.1~a.b~b.svc.cluster.local".to_owned()),
            type_url: type_url.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            unsubscribed: Vec::new(),
            held: Vec::new(),
            nonce: nonce.to_owned(),
            rejection: None,
        }
    }

    fn endpoint_names() -> Vec<String> {
        let endpoints = for_sidecars(20).into_iter().find(|collection| collection.type_url == ENDPOINTS);
        endpoints.map_or_else(Vec::new, |Collection { resources, .. }| {
            resources.into_iter().map(|resource| resource.name).collect()
        })
    }

    #[test]
    fn wildcard_gets_everything_and_names_get_their_resources() {
        let (configuration, counts) = (configuration(), Counts::default());
        for delta in [true, false] {
            let mut subscriptions = Subscriptions::new(delta);
            let mut receive = |request| subscriptions.receive(&configuration, request, &counts);
            let clusters = receive(request(CLUSTER, &[], "")).expect("clusters");
            assert_eq!(clusters.resources, configuration.find(CLUSTER).expect("clusters").1.all(delta));
            let names = endpoint_names();
            let endpoints = receive(request(ENDPOINTS, &[&names[3], &names[7]], "")).expect("endpoints");
            assert_eq!(
                endpoints.resources,
                configuration.find(ENDPOINTS).expect("endpoints").1.some(delta, &[3, 7])
            );
            // State of the world lists all names each time.
            let again: &[&str] = if delta { &[] } else { &[&names[3], &names[7]] };
            assert!(receive(request(CLUSTER, &[], &clusters.nonce.to_string())).is_none());
            assert!(receive(request(ENDPOINTS, again, &endpoints.nonce.to_string())).is_none());
        }
        let totals = counts.totals();
        assert_eq!((totals.acknowledgements, totals.rejections), (4, 0));
        assert_eq!(totals.complaints, Vec::<String>::new());
    }

    #[test]
    fn wrong_nonces_and_requests_without_node_are_complaints() {
        let (configuration, counts) = (configuration(), Counts::default());
        let mut subscriptions = Subscriptions::new(true);
        subscriptions.receive(&configuration, Request { node: None, ..request(CLUSTER, &[], "") }, &counts);
        subscriptions.receive(&configuration, request(CLUSTER, &[], "17"), &counts);
        let rejection = Some("no".to_owned());
        subscriptions.receive(&configuration, Request { rejection, ..request(CLUSTER, &[], "1") }, &counts);
        let totals = counts.totals();
        assert_eq!(totals.complaints.len(), 2, "{:?}", totals.complaints);
        assert_eq!((totals.acknowledgements, totals.rejections), (0, 1));
    }

    #[test]
    fn delta_clients_are_sent_removals() {
        let (configuration, counts) = (configuration(), Counts::default());
        let mut subscriptions = Subscriptions::new(true);
        let held = vec!["gone".to_owned(), endpoint_names()[0].clone()];
        let names = endpoint_names();
        let reply = subscriptions.receive(
            &configuration,
            Request { held, ..request(ENDPOINTS, &[&names[0], "gone"], "") },
            &counts,
        );
        assert_eq!(reply.expect("endpoints").removed, ["gone"]);
    }
}
