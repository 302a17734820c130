//! Invariants of a hand-over, whatever a ztunnel sends.

use super::message::{Acknowledgement, Hello, Response, VERSION};
use super::{Connection, MAX_MESSAGE_BYTES, NodePod};
use crate::running::PodIdentity;
use prost::Message;
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::os::fd::AsFd as _;

/// Maximum number of messages: more are not read.
const MAX_MESSAGES: usize = 8;

/// Hands two pods over to a ztunnel that sends these messages and closes its side, and checks that it succeeds only if the ztunnel
/// greeted and acknowledged everything. Each message is behind its length in one byte. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_messages(input: &[u8]) {
    let messages = messages(input);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let (agent, ztunnel) = pair.expect("a pair of sockets");
    for message in &messages {
        rustix::net::send(&ztunnel, message, SendFlags::NOSIGNAL).expect("there is room");
    }
    rustix::net::shutdown(&ztunnel, Shutdown::Write).expect("an open socket");
    // Any file: ztunnel does not look at it.
    let file = std::fs::File::open("/dev/null").expect("every system has it");
    let identity = PodIdentity {
        pod: "client".to_owned(),
        account: "client".to_owned(),
        namespace: "mesh-1".to_owned(),
        labels: BTreeMap::new(),
    };
    let pod = |uid: &str| NodePod { uid: uid.to_owned(), identity: &identity, network: file.as_fd() };
    let handed_over = Connection(agent).hand_over(&[pod("a"), pod("b")], &|| Ok(()));
    let greeted = messages.first().and_then(|hello| read::<Hello>(hello));
    let is_greeted = greeted.is_some_and(|hello| hello.version == VERSION);
    // Two pods, and the end of the snapshot.
    let is_acknowledged =
        messages.len() > 3 && messages[1..4].iter().all(|message| is_acknowledgement(message));
    assert_eq!(handed_over.is_ok(), is_greeted && is_acknowledged, "{messages:?}");
    if let Err(error) = handed_over {
        assert!(error.to_string().len() < MAX_MESSAGE_BYTES, "{error}");
    }
}

fn messages(mut input: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while let [length, rest @ ..] = input
        && messages.len() < MAX_MESSAGES
    {
        let (message, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        messages.push(message);
        input = rest;
    }
    messages
}

/// Absent if the message is empty, which ends a connection, or is not of this type.
fn read<M: Message + Default>(message: &[u8]) -> Option<M> {
    if message.is_empty() { None } else { M::decode(message).ok() }
}

fn is_acknowledgement(message: &[u8]) -> bool {
    let response = read::<Response>(message).and_then(|response| response.acknowledgement);
    matches!(response, Some(Acknowledgement { error }) if error.is_empty())
}
