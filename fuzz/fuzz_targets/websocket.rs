#![no_main]

#[path = "../src/websocket.rs"]
mod websocket;

libfuzzer_sys::fuzz_target!(|input: &[u8]| websocket::check(input));
