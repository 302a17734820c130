//! Options of `meshmeter load` for several URLs and servers.

use clap::{Args, ValueEnum};
use load::{Order, ServerPer};

/// Options for several URLs and servers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several URLs")]
pub struct TargetArgs {
    /// How the next request is chosen [default: random if URLs have weights or ranges, otherwise turn]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub order: Option<OrderName>,

    /// What determines the server of a request. `request`: the schedule; response times then include waiting
    /// for a connection to a slow server. `connection`: each connection stays with one server, and so does a
    /// client with its own connection; only the path is chosen per request. With fewer connections than
    /// servers, only that many servers are used, evenly spaced
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub server_per: ServerPerName,

    /// Maximum concurrent connections per server. A request for a server whose connections are all busy waits
    /// for one of them, which counts in its response time. With fewer --connections than servers, the
    /// connection idle longest is closed when another server needs one [default: unlimited; one per thread if
    /// there are fewer connections than servers]. In that case each thread has an equal part of the maximum,
    /// rounded down
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections_per_server: Option<u32>,
}

/// Order of requests.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OrderName {
    /// One after the other, by weight; ranges count up
    Turn,
    /// Each drawn independently, from the --seed
    Random,
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Turn => Self::Turn,
            OrderName::Random => Self::Random,
        }
    }
}

/// What determines the server of a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ServerPerName {
    /// The schedule
    #[default]
    Request,
    /// The connection that carries it
    Connection,
}

impl From<ServerPerName> for ServerPer {
    fn from(name: ServerPerName) -> Self {
        match name {
            ServerPerName::Request => Self::Request,
            ServerPerName::Connection => Self::Connection,
        }
    }
}
