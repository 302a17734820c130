#![no_main]

#[path = "../src/fleet_connection.rs"]
mod fleet_connection;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fleet_connection::check(input));
