#![no_main]

#[path = "../../crates/meshmeter/src/commands/collect_spans/message.rs"]
mod message;
#[path = "../src/spans.rs"]
mod spans;

use message::senders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| spans::check(input));
