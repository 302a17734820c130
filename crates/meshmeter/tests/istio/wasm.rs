//! Minimal WebAssembly modules for Envoy, with the ABI of proxy-wasm 0.2.1.

/// Header that [`adds_a_header`] adds to every response, and its value.
pub const HEADER: (&str, &str) = ("x-meshmeter-wasm", "ran");

/// A module that adds a header to every response.
pub fn adds_a_header() -> Vec<u8> {
    // Map 2 holds the response headers; action 0 continues the response.
    let (name, value) = HEADER;
    let (length_of_name, length_of_value) = (name.len(), value.len());
    let add =
        r#"(import "env" "proxy_add_header_map_value" (func $add (param i32 i32 i32 i32 i32) (result i32)))"#;
    let body = format!(
        r#"(data (i32.const 16) "{name}")
        (data (i32.const 64) "{value}")
        (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32)
            (drop (call $add (i32.const 2)
                (i32.const 16) (i32.const {length_of_name}) (i32.const 64) (i32.const {length_of_value})))
            (i32.const 0))"#
    );
    module(add, &body)
}

/// A module that imports a function that no proxy provides.
pub fn imports_what_there_is_not() -> Vec<u8> {
    module(r#"(import "env" "there_is_no_such_function" (func))"#, "")
}

/// Common parts of every module: its memory, an allocator for the host, and its ABI version.
fn module(imports: &str, body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
        {imports}
        (memory (export "memory") 1)
        (global $free (mut i32) (i32.const 1024))
        (func (export "proxy_abi_version_0_2_1"))
        (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
            (local $place i32)
            (local.set $place (global.get $free))
            (global.set $free (i32.add (local.get $place) (local.get $size)))
            (local.get $place))
        (func (export "proxy_on_context_create") (param i32 i32))
        (func (export "proxy_on_vm_start") (param i32 i32) (result i32) (i32.const 1))
        (func (export "proxy_on_configure") (param i32 i32) (result i32) (i32.const 1))
        {body})"#
    );
    wat::parse_str(text).expect("it is WAT")
}
