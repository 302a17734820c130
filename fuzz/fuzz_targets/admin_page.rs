#![no_main]

#[path = "../src/admin_page.rs"]
mod admin_page;

libfuzzer_sys::fuzz_target!(|input: &[u8]| admin_page::check(input));
