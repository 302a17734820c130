//! Minimal WebAssembly modules for Envoy.

use test_support::proxy_wasm::{ProxyWasm, ValType, body, succeeding};

/// Header that [`adds_a_header`] adds to every response, and its value.
pub const HEADER: (&str, &str) = ("x-meshmeter-wasm", "ran");

/// A module that adds a header to every response.
pub fn adds_a_header() -> Vec<u8> {
    let [name, value] = [(16, HEADER.0), (64, HEADER.1)];
    let length = |text: &str| i32::try_from(text.len()).expect("it is short");
    // Map 2 holds the response headers; action 0 continues the response.
    let add = body(|code| {
        code.i32_const(2).i32_const(name.0).i32_const(length(name.1));
        code.i32_const(value.0).i32_const(length(value.1)).call(0).drop().i32_const(0);
    });
    let imports: [(&str, &[ValType]); 1] = [("proxy_add_header_map_value", &[ValType::I32; 5])];
    let callback = Some(("proxy_on_response_headers", add));
    ProxyWasm { imports: &imports, texts: &[name, value], configure: succeeding(), callback }.encode()
}

/// A module that imports a function that no proxy provides.
pub fn imports_what_there_is_not() -> Vec<u8> {
    let imports: [(&str, &[ValType]); 1] = [("there_is_no_such_function", &[])];
    ProxyWasm { imports: &imports, texts: &[], configure: succeeding(), callback: None }.encode()
}
