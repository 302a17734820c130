#![no_main]

#[path = "../src/service_requests.rs"]
mod service_requests;

libfuzzer_sys::fuzz_target!(|input: &[u8]| service_requests::check(input));
