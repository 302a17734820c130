//! Raw TCP and TLS in `meshmeter load`: message sizes.

use crate::cli::LoadArgs;
use crate::failure::Failure;
use load::{ExpectedReply, Targets};

/// Bytes per message if no size is given.
const DEFAULT_MESSAGE_BYTES: usize = 1024;

/// The message, unless the body was given as text.
pub fn message(args: &LoadArgs) -> Vec<u8> {
    let bytes = args.body_size.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(DEFAULT_MESSAGE_BYTES);
    load::pattern(bytes)
}

/// Expected size of each reply, and whether its content is checked.
pub fn expected_reply(args: &LoadArgs, targets: &Targets) -> Result<ExpectedReply, Failure> {
    let message_bytes = targets.servers[0].requests[0].body.constant().map_or(0, |body| body.len());
    if message_bytes == 0 {
        return Err(Failure::usage("a message over TCP has at least a byte")
            .with_hint("give its size with --body-size"));
    }
    let bytes = args.raw.reply_size.unwrap_or(message_bytes as u64);
    Ok(ExpectedReply { bytes, checked: !args.raw.no_reply_check })
}
