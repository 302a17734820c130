#![no_main]

#[path = "../src/node_response.rs"]
mod node_response;

libfuzzer_sys::fuzz_target!(|input: &[u8]| node_response::check(input));
