//! Options of WebSocket.

use clap::Args;
use load::Replies;
use std::num::NonZeroU64;

/// Options of WebSocket.
#[derive(Debug, Args)]
#[command(next_help_heading = "WebSocket (ws:// and wss:// URLs)")]
pub struct WebSocketArgs {
    /// Receive a stream of N messages as the answer to each message, or of all until the server closes the connection
    /// (`until-close`). Without --body nothing is sent: a stream is then what the server sends next, with
    /// --new-connection-per-request from the opening of the connection on. Otherwise the answer is one message, such as an
    /// echo
    #[arg(long, value_name = "N|until-close", value_parser = parse_pushes, conflicts_with = "streams")]
    pub pushes: Option<Replies>,
}

fn parse_pushes(text: &str) -> Result<Replies, String> {
    if text == "until-close" {
        return Ok(Replies::Pushed(None));
    }
    let number: Option<NonZeroU64> = text.parse().ok();
    number
        .map(|number| Replies::Pushed(Some(number)))
        .ok_or_else(|| "expected a number of messages from 1, or `until-close`".to_owned())
}
