//! Servers that send frames without end, written by hand, since no library would.

use crate::behaviour::Flood;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Length of a client's connection preface.
const PREFACE_BYTES: usize = 24;
const FRAME_HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const STREAM: u8 = 1;
/// Frames per write.
const BATCH: usize = 1000;
/// As many as clients excuse.
const PINGS_PER_MESSAGE: usize = 10;
/// `:status: 200` of the static table.
const STATUS_200: &[u8] = &[0x88];
/// An empty gRPC message.
const EMPTY_MESSAGE: &[u8] = &[0; 5];

/// Sends frames until the client closes the connection, and reads nothing after the client's request.
pub(crate) async fn serve(flood: Flood, mut socket: TcpStream) -> io::Result<()> {
    socket.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    read_request_head(&mut socket).await?;
    let (begin, batch) = match flood {
        Flood::Pings => (Vec::new(), frame(PING, 0, 0, &[0; 8]).repeat(BATCH)),
        Flood::Settings => (Vec::new(), frame(SETTINGS, 0, 0, &[]).repeat(BATCH)),
        Flood::Continuations => {
            (frame(HEADERS, 0, STREAM, STATUS_200), frame(CONTINUATION, 0, STREAM, &[]).repeat(BATCH))
        }
        Flood::PingsBetweenMessages => {
            let message = frame(DATA, 0, STREAM, EMPTY_MESSAGE);
            let batch =
                [frame(PING, 0, 0, &[0; 8]).repeat(PINGS_PER_MESSAGE), message].concat().repeat(BATCH);
            (frame(HEADERS, END_HEADERS, STREAM, STATUS_200), batch)
        }
    };
    socket.write_all(&begin).await?;
    loop {
        socket.write_all(&batch).await?;
    }
}

/// Reads up to the head of the client's request: its stream is open from then on.
async fn read_request_head(socket: &mut TcpStream) -> io::Result<()> {
    socket.read_exact(&mut [0; PREFACE_BYTES]).await?;
    loop {
        let mut header = [0; FRAME_HEADER_BYTES];
        socket.read_exact(&mut header).await?;
        let [a, b, c, kind, ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        socket.read_exact(&mut payload).await?;
        if kind == HEADERS {
            return Ok(());
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags, 0, 0, 0, stream], payload].concat()
}
