//! Forwards connections to a server, and can stall them like a dead link.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};

/// A forwarding listener. Dropping it ends its connections.
pub struct Forward {
    pub address: SocketAddr,
    stalled: watch::Sender<bool>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Forward {
    pub fn start(to: SocketAddr) -> Self {
        Self::listen(Self::reserve(), to)
    }

    /// Reserves a port that refuses connections until it is listened on, and that no other process can take.
    pub fn reserve() -> TcpSocket {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket
    }

    pub fn listen(socket: TcpSocket, to: SocketAddr) -> Self {
        let address = socket.local_addr().unwrap();
        let stalled = watch::Sender::new(false);
        let (end, ended) = oneshot::channel();
        let (sender, listening) = mpsc::channel();
        let stall = stalled.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.spawn(async move {
                let listener = socket.listen(1024).unwrap();
                sender.send(()).unwrap();
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    tokio::spawn(lead(socket, to, stall.clone()));
                }
            });
            // An error means that the sender was dropped.
            let _ = runtime.block_on(ended);
        });
        listening.recv().unwrap();
        Self { address, stalled, end: Some(end), thread: Some(thread) }
    }

    /// Stops or resumes forwarding.
    pub fn stall(&self, stalled: bool) {
        self.stalled.send_replace(stalled);
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn lead(client: TcpStream, to: SocketAddr, stalled: watch::Sender<bool>) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::spawn(copy(from_client, to_server, stalled.subscribe()));
    copy(from_server, to_client, stalled.subscribe()).await;
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut stalled: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 16_384];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if stalled.wait_for(|stalled| !stalled).await.is_err()
            || to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}
