//! Requirements of a load that several generators share.

use crate::cli::{Clients, LoadArgs};
use crate::failure::Failure;

/// Rejects a load that cannot be divided: every generator needs a connection and, in a closed loop, a client
/// and a request. The numbers are totals over all generators.
pub fn check(args: &LoadArgs, connections: usize) -> Result<(), Failure> {
    let generators = args.schedule.share.unwrap_or_default().of();
    let clients = args.schedule.clients.as_ref().map(Clients::most);
    let requests = args.schedule.requests.filter(|_| clients.is_some());
    let requests = requests.map(|requests| usize::try_from(requests).unwrap_or(usize::MAX));
    let divided = [(Some(connections), "connections"), (clients, "clients"), (requests, "requests")];
    for (number, what) in divided {
        if let Some(number) = number.filter(|number| *number < generators) {
            return Err(Failure::usage(format!(
                "--share: {number} {what} cannot be divided among {generators} generators"
            ))
            .with_hint("--connections, --clients and --requests are those of all generators together"));
        }
    }
    Ok(())
}
