//! Messages in pieces: the split must not change the outcome.

use super::messages::{FilterChain, Listener};
use super::play::{
    Item, Play, cluster, delta, endpoints, http_chain, listener, named, routes, static_cluster, world,
};
use crate::xds::{Event, Mark, Presence, ProxyKind, ResourceType, XdsVariant};
use proptest::collection::vec;
use proptest::prelude::*;

fn any_type() -> impl Strategy<Value = ResourceType> {
    proptest::sample::select(&ResourceType::ALL[..])
}

fn any_item() -> impl Strategy<Value = Item> {
    let name = "[a-c]{0,2}";
    prop_oneof![
        (name, name).prop_map(|(name, service)| cluster(&name, &service)),
        name.prop_map(|name| static_cluster(&name)),
        name.prop_map(|name| endpoints(&name)),
        name.prop_map(|name| routes(&name)),
        (name, vec(name, 0..3)).prop_map(|(name, routes)| {
            let chains: Vec<FilterChain> =
                routes.iter().map(|routes| http_chain(routes, Vec::new())).collect();
            let default_filter_chain = chains.first().cloned();
            listener(&Listener { name, filter_chains: chains, api_listener: None, default_filter_chain })
        }),
        (any_type(), name, "[a-z]{0,40}").prop_map(|(resource_type, name, content)| named(
            resource_type,
            &name,
            &content
        )),
    ]
}

/// A response, of one type or mixed, either valid or with bytes changed.
fn any_body(variant: XdsVariant) -> impl Strategy<Value = Vec<u8>> {
    let items = vec(any_item(), 0..5);
    let change = proptest::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    (any_type(), any::<bool>(), items, "[a-c]{0,2}", "[0-9]{0,2}", change).prop_map(
        move |(resource_type, is_mixed, items, removed, nonce, change)| {
            let of_type = items.into_iter().filter(|item| is_mixed || item.resource_type == resource_type);
            let items: Vec<_> = of_type.collect();
            let mut body = match variant {
                XdsVariant::Delta if removed.is_empty() => delta(resource_type, &nonce, &items, &[]),
                XdsVariant::Delta => delta(resource_type, &nonce, &items, &[&removed]),
                XdsVariant::StateOfTheWorld => world(resource_type, &nonce, &items),
            };
            if let Some((index, byte)) = change
                && !body.is_empty()
            {
                let position = index.index(body.len());
                body[position] = byte;
            }
            body
        },
    )
}

fn any_exchange() -> impl Strategy<Value = (ProxyKind, XdsVariant, Vec<Vec<u8>>)> {
    let kind = proptest::sample::select(&ProxyKind::ALL[..]);
    let variant = proptest::sample::select(&[XdsVariant::Delta, XdsVariant::StateOfTheWorld][..]);
    (kind, variant).prop_flat_map(|(kind, variant)| {
        let on_stream = if kind == ProxyKind::Ztunnel { XdsVariant::Delta } else { variant };
        (Just(kind), Just(variant), vec(any_body(on_stream), 1..8))
    })
}

/// Everything observable of a session: results, requests, and events without their times.
fn observe(kind: ProxyKind, variant: XdsVariant, bodies: &[Vec<u8>], piece: usize) -> Vec<String> {
    let mut play = Play::new(kind, variant);
    play.piece = piece;
    let mut seen = play.connect();
    for resource_type in ResourceType::ALL {
        for needle in ["a", "abc", ""] {
            for presence in [Presence::Present, Presence::Gone] {
                let needle = needle.into();
                play.expect(Mark { resource_type, presence, resource: None, needle });
            }
        }
    }
    for body in bodies {
        let result = play.bytes(body);
        seen.push(format!("{result:?}"));
        seen.extend(play.sent());
        seen.extend(play.events.drain(..).map(|event| match event {
            Event::Response(response) => format!("{:?} {}", response.resource_type, response.accepted),
            Event::Arrived { mark, .. } => format!("{mark:?}"),
            Event::Complete { .. } => "complete".to_owned(),
            Event::Violation { kind, resource_type } => format!("{kind:?} {resource_type:?}"),
        }));
        if result.is_err() {
            play.disconnect();
            seen.extend(play.connect());
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pieces_change_nothing((kind, variant, bodies) in any_exchange(), piece in 1_usize..40) {
        let whole = observe(kind, variant, &bodies, usize::MAX);
        prop_assert_eq!(whole, observe(kind, variant, &bodies, piece));
    }
}
