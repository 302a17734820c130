//! Options of `meshmeter load` for several URLs and servers.

use crate::cli::words::{one_of, word};
use clap::Args;
use clap::builder::TypedValueParser;
use load::{Order, ServerPer};

/// Options for several URLs and servers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several URLs")]
pub struct TargetArgs {
    /// How the next request is chosen [default: random if URLs have weights or ranges and for a traffic file,
    /// otherwise turn]
    #[arg(long, value_name = "ORDER", value_parser = order_parser())]
    pub order: Option<Order>,

    /// What determines the server of a request. `request`: the schedule; response times then include waiting
    /// for a connection to a slow server. `connection`: each connection stays with one server, and so does a
    /// client with its own connection; only the path is chosen per request. With fewer connections than
    /// servers, only that many servers are used, evenly spaced
    #[arg(long, value_name = "WHAT", default_value = "request", value_parser = server_per_parser())]
    pub server_per: ServerPer,

    /// Maximum concurrent connections per server. A request for a server whose connections are all busy waits
    /// for one of them, which counts in its response time. With fewer --connections than servers, the
    /// connection idle longest is closed when another server needs one [default: unlimited; one per thread if
    /// there are fewer connections than servers]. In that case each thread has an equal part of the maximum,
    /// rounded down
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections_per_server: Option<u32>,
}

fn order_parser() -> impl TypedValueParser<Value = Order> {
    one_of([
        (word("turn", "One after the other, by weight; ranges count up"), Order::Turn),
        (word("random", "Each drawn independently, from the --seed"), Order::Random),
    ])
}

fn server_per_parser() -> impl TypedValueParser<Value = ServerPer> {
    one_of([
        (word("request", "The schedule"), ServerPer::Request),
        (word("connection", "The connection that carries it"), ServerPer::Connection),
    ])
}
