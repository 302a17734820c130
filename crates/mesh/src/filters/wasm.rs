//! The WebAssembly module of a scenario, as small as a useful one can be: it counts requests, copies a header
//! of each, and rejects requests that probe it. It uses the proxy-wasm ABI, version 0.2.1.

use crate::Result;
use experiment::environment::ErrorContext as _;

/// Name of the module's counter, which Envoy prefixes with `wasmcustom`.
pub const COUNTER: &str = "meshmeter_requests";

/// Source of the module, in WebAssembly text format.
const SOURCE: &str = include_str!("module.wat");

/// Assembles the module to its binary form.
pub fn module() -> Result<Vec<u8>> {
    wat::parse_str(SOURCE).context("assemble the WebAssembly module of the gateway")
}

#[cfg(test)]
mod tests {
    use super::super::probe::WASM_HEADER;
    use super::*;

    #[test]
    fn module_assembles_and_contains_expected_names() {
        let module = module().unwrap();
        assert_eq!(&module[..8], b"\0asm\x01\0\0\0");
        for name in [COUNTER, WASM_HEADER] {
            assert!(SOURCE.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
