//! Raw TCP and TLS in `meshmeter load`: message sizes, and options that would have no effect.

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
    let http_only = [("--method", args.method != http::Method::GET), ("--header", !args.header.is_empty())];
    if let Some((option, _)) = http_only.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{option} is for http:// and https:// URLs")));
    }
    let message_bytes = targets.servers[0].requests[0].body.constant().map_or(0, |body| body.len());
    if message_bytes == 0 {
        return Err(Failure::usage("a message over TCP has at least a byte")
            .with_hint("give its size with --body-size"));
    }
    let bytes = args.raw.reply_size.unwrap_or(message_bytes as u64);
    Ok(ExpectedReply { bytes, checked: !args.raw.no_reply_check })
}

/// Rejects options for raw messages if the URLs are of another kind.
pub fn check_unused_options(args: &LoadArgs) -> Result<(), Failure> {
    let options =
        [("--reply-size", args.raw.reply_size.is_some()), ("--no-reply-check", args.raw.no_reply_check)];
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!("{option} is for tcp:// and tls:// URLs"))),
        None => Ok(()),
    }
}
