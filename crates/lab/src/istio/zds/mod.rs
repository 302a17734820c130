//! The part of Istio's CNI agent that tells a shared ztunnel about the pods of its node.
//!
//! ztunnel connects to a Unix socket of type `SOCK_SEQPACKET` (`INPOD_UDS`) and sends a hello. It receives a
//! message per pod, with the pod's network namespace as an open file, and responds to each before the next is
//! sent. A final message makes it ready. Without the connection ztunnel is unready and reconnects. Not
//! included: pods that come and go while it runs. A lab's ztunnel serves the pods of one trial.

mod invariants;
mod message;

pub use self::invariants::check_messages;
use self::message::{Acknowledgement, AddWorkload, Hello, Payload, Request, Response, VERSION, WorkloadInfo};
use crate::Result;
use crate::running::PodIdentity;
use crate::wait::wait_for;
use experiment::environment::{EnvironmentError, ErrorContext};
use prost::Message as _;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// ztunnel connects and responds within milliseconds. It opens listeners in the pod before it responds.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Only a message with a long error can be longer; it may be truncated.
const MAX_MESSAGE_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct NodePod<'a> {
    /// The `metadata.uid` of the pod's object.
    pub uid: String,
    pub identity: &'a PodIdentity,
    pub network: BorrowedFd<'a>,
}

/// The socket that ztunnel connects to.
#[derive(Debug)]
pub(super) struct NodeAgent(OwnedFd);

/// ztunnel's connection. While it is open, ztunnel serves the pods that were handed over.
#[derive(Debug)]
pub(crate) struct Connection(OwnedFd);

impl NodeAgent {
    /// Listens at this path, which must not exist yet.
    pub fn listen(path: &Path) -> Result<Self> {
        let listen = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            rustix::net::listen(&socket, 1)?;
            rustix::io::Result::Ok(Self(socket))
        };
        listen().context(format!("listen at {} for ztunnel", path.display()))
    }

    /// Waits for ztunnel and hands these pods over to it. An error from `check` ends the wait.
    pub fn hand_over(&self, pods: &[NodePod<'_>], check: &dyn Fn() -> Result<()>) -> Result<Connection> {
        let socket = wait_for("ztunnel requests its pods", RESPONSE_TIMEOUT, || {
            check()?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            not_yet(rustix::net::accept_with(&self.0, flags)).context("accept ztunnel's connection")
        })?;
        Connection(socket).hand_over(pods, check)
    }
}

impl Connection {
    /// Greets ztunnel and hands these pods over to it.
    fn hand_over(self, pods: &[NodePod<'_>], check: &dyn Fn() -> Result<()>) -> Result<Self> {
        let operation = "greet ztunnel";
        let Hello { version } = self.receive(operation, check)?;
        if version != VERSION {
            let spoken = format!("it speaks version {version} of the protocol, and {VERSION} is spoken here");
            return Err(
                EnvironmentError::new(operation, spoken).with_hint("another version of ztunnel is needed")
            );
        }
        for pod in pods {
            let PodIdentity { pod: name, namespace, account, .. } = pod.identity.clone();
            let operation = format!("hand the network namespace of pod {name} to ztunnel");
            let workload = WorkloadInfo { name, namespace, service_account: account };
            let add = Payload::Add(AddWorkload { uid: pod.uid.clone(), workload: Some(workload) });
            self.send_and_check(&operation, add, &[pod.network], check)?;
        }
        self.send_and_check("notify ztunnel that it has all pods", Payload::SnapshotSent(()), &[], check)?;
        Ok(self)
    }

    fn send_and_check(
        &self,
        operation: &str,
        payload: Payload,
        files: &[BorrowedFd<'_>],
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let bytes = Request { payload: Some(payload) }.encode_to_vec();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        // A packet is sent whole, and the socket's buffer has space: ztunnel has responded to all messages
        // before.
        rustix::net::sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)
            .context(operation)?;
        let response: Response = self.receive(operation, check)?;
        let reason = match response.acknowledgement {
            Some(Acknowledgement { error }) if error.is_empty() => return Ok(()),
            Some(Acknowledgement { error }) => format!("ztunnel answered: {error}"),
            None => "ztunnel's response is not an acknowledgement".to_owned(),
        };
        Err(EnvironmentError::new(operation, reason))
    }

    fn receive<M: prost::Message + Default>(
        &self,
        operation: &str,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<M> {
        let mut buffer = [0; MAX_MESSAGE_BYTES];
        let received = wait_for("ztunnel answers", RESPONSE_TIMEOUT, || {
            check()?;
            not_yet(rustix::net::recv(&self.0, &mut buffer, RecvFlags::empty())).context(operation)
        })?;
        match received {
            (0, _) => Err(EnvironmentError::new(operation, "ztunnel hung up")),
            (bytes, _) => M::decode(&buffer[..bytes]).context(operation),
        }
    }
}

/// `None` if the operation would block.
fn not_yet<T>(result: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::error_chain;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage};
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::os::fd::AsFd as _;
    use std::os::linux::fs::MetadataExt as _;
    use std::thread::JoinHandle;

    struct FakeZtunnel(OwnedFd);

    impl FakeZtunnel {
        fn connect(path: &Path) -> Self {
            let socket = rustix::net::socket_with(
                AddressFamily::UNIX,
                SocketType::SEQPACKET,
                SocketFlags::CLOEXEC,
                None,
            );
            let socket = socket.unwrap();
            rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
            Self(socket)
        }

        fn say(&self, bytes: &[u8]) {
            rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL).unwrap();
        }

        fn hear(&self) -> (Payload, Option<u64>) {
            let mut bytes = [0; 1024];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut buffers = [IoSliceMut::new(&mut bytes)];
            let received =
                rustix::net::recvmsg(&self.0, &mut buffers, &mut control, RecvFlags::empty()).unwrap();
            let file = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut files) => files.next(),
                _ => None,
            });
            let inode = file.map(|file| File::from(file).metadata().unwrap().st_ino());
            (Request::decode(&bytes[..received.bytes]).unwrap().payload.unwrap(), inode)
        }

        fn acknowledge(&self, error: &str) {
            let acknowledgement = Some(Acknowledgement { error: error.to_owned() });
            self.say(&Response { acknowledgement }.encode_to_vec());
        }
    }

    /// Hands one pod over to a ztunnel that behaves like this.
    fn hand_over<T: Send + 'static>(
        ztunnel: impl FnOnce(FakeZtunnel) -> T + Send + 'static,
    ) -> (Result<Connection>, T) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zds");
        let agent = NodeAgent::listen(&path).unwrap();
        let thread: JoinHandle<T> = std::thread::spawn(move || ztunnel(FakeZtunnel::connect(&path)));
        let network = File::open("/proc/self/ns/net").unwrap();
        let identity = PodIdentity {
            pod: "client".to_owned(),
            account: "client".to_owned(),
            namespace: "mesh-1".to_owned(),
            labels: BTreeMap::new(),
        };
        let pod = NodePod { uid: "7f3b".to_owned(), identity: &identity, network: network.as_fd() };
        let handed_over = agent.hand_over(&[pod], &|| Ok(()));
        (handed_over, thread.join().unwrap())
    }

    const HELLO: [u8; 2] = [8, 1];

    #[test]
    fn pods_are_handed_over_with_namespaces_then_snapshot_sent() {
        let (connection, (pod, inode, end)) = hand_over(|ztunnel| {
            ztunnel.say(&HELLO);
            let (pod, inode) = ztunnel.hear();
            ztunnel.acknowledge("");
            let (end, nothing) = ztunnel.hear();
            ztunnel.acknowledge("");
            assert_eq!(nothing, None);
            (pod, inode, end)
        });
        connection.unwrap();
        let workload = WorkloadInfo {
            name: "client".to_owned(),
            namespace: "mesh-1".to_owned(),
            service_account: "client".to_owned(),
        };
        assert_eq!(pod, Payload::Add(AddWorkload { uid: "7f3b".to_owned(), workload: Some(workload) }));
        assert_eq!(inode, Some(std::fs::metadata("/proc/self/ns/net").unwrap().st_ino()));
        assert_eq!(end, Payload::SnapshotSent(()));
    }

    #[test]
    fn ztunnel_that_rejects_pod_or_speaks_other_protocol_is_error_with_reason() {
        let refusing = hand_over(|ztunnel| {
            ztunnel.say(&HELLO);
            ztunnel.hear();
            ztunnel.acknowledge("no listener in the pod");
        });
        let hanging_up = hand_over(|ztunnel| ztunnel.say(&HELLO));
        let newer = hand_over(|ztunnel| ztunnel.say(&[8, 2]));
        let other = hand_over(|ztunnel| ztunnel.say(b"SSH-2.0"));
        let texts: Vec<String> = [refusing, hanging_up, newer, other]
            .iter()
            .map(|(result, ())| error_chain(result.as_ref().unwrap_err()))
            .collect();
        assert_eq!(
            texts[0],
            "hand the network namespace of pod client to ztunnel: ztunnel answered: no listener in the pod"
        );
        // It may have closed the connection before the message was sent, or after.
        assert!(
            texts[1].starts_with("hand the network namespace of pod client to ztunnel: "),
            "{}",
            texts[1]
        );
        assert_eq!(texts[2], "greet ztunnel: it speaks version 2 of the protocol, and 1 is spoken here");
        assert!(texts[3].starts_with("greet ztunnel: failed to decode Protobuf message"), "{}", texts[3]);
    }

    #[test]
    fn wait_for_dead_ztunnel_ends() {
        let folder = tempfile::tempdir().unwrap();
        let agent = NodeAgent::listen(&folder.path().join("zds")).unwrap();
        let error =
            agent.hand_over(&[], &|| Err(EnvironmentError::new("start ztunnel", "it ended"))).unwrap_err();
        assert_eq!(error_chain(&error), "start ztunnel: it ended");
    }
}
