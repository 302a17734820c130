//! Opening connections.

use super::callee::Callee;
use crate::node::failure::StepFailure;
use crate::node::stream::CountedStream;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::{TcpStream, lookup_host};

/// Opens a connection. The system resolver looks up names on a separate thread.
pub(super) async fn connect(callee: &Callee) -> Result<CountedStream, StepFailure> {
    let place = &callee.spec().place;
    let failed = |error: io::Error| StepFailure(format!("connect to {}: {error}", place.authority));
    let stream = match place.host.parse::<IpAddr>() {
        Ok(address) => TcpStream::connect(SocketAddr::new(address, place.port)).await,
        Err(_) => {
            let addresses = lookup_host((place.host.as_str(), place.port)).await.map_err(failed)?;
            TcpStream::connect(&addresses.collect::<Vec<_>>()[..]).await
        }
    };
    let stream = stream.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(CountedStream::opened(stream, Arc::clone(&callee.tally), callee.index))
}
