//! Options of raw TCP and TLS.

use clap::Args;
use results::units::parse_size;

/// Options of raw TCP and TLS.
#[derive(Debug, Args)]
#[command(next_help_heading = "Raw messages (tcp:// and tls:// URLs)")]
pub struct RawArgs {
    /// Size of the reply to each message, such as 10KB; --body-size is the size of a message [default: as
    /// large as the message]
    #[arg(long, value_name = "S", value_parser = parse_reply_size)]
    pub reply_size: Option<u64>,

    /// Accept any bytes as a reply. Otherwise byte i must be i mod 251, which `meshmeter serve` sends and
    /// echo servers return
    #[arg(long)]
    pub no_reply_check: bool,
}

fn parse_reply_size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("a reply has at least a byte: its end is the end of a request".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
