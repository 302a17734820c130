#![no_main]

#[path = "../src/database_response.rs"]
mod database_response;

libfuzzer_sys::fuzz_target!(|input: &[u8]| database_response::check(input));
