//! Options for several URLs and servers.

use clap::{Args, ValueEnum};
use load::{Order, ServerPer};

/// See the command's help.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several URLs")]
pub struct TargetArgs {
    /// How the next request is chosen [default: random where URLs have weights or ranges, else turn]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub order: Option<OrderName>,

    /// What decides on the server of a request. `request`: the schedule, which also says how long requests wait for a
    /// connection to a slow server. `connection`: each connection keeps to its server, and so does a client with a connection
    /// of its own; a path is drawn for each request. With fewer connections than servers, one server in so many is used
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub server_per: ServerPerName,

    /// Most connections to one server at a time. A request for a server whose connections are all busy waits for one of
    /// them, which counts in its response time. With fewer --connections than servers, the connection idle longest is closed
    /// for a server that wants one [default: no bound; one for each thread where connections are fewer than servers].
    /// Where they roam, each thread has an equal part of it, rounded down
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections_per_server: Option<u32>,
}

/// How requests are chosen.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OrderName {
    /// One after the other, by weight; numbers count up
    Turn,
    /// Each drawn by itself, from the --seed
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

/// What decides on the server of a request.
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
