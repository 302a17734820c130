//! The WebAssembly module of a scenario, as small as a useful one can be: it counts requests, copies a header of each, and
//! refuses those that probe it. The ABI is that of proxy-wasm, version 0.2.1.

use crate::Result;
use experiment::environment::ErrorContext as _;

/// Name of its counter, which Envoy shows below `wasmcustom`.
pub const COUNTER: &str = "meshmeter_requests";
/// Prefix of the counters of modules.
pub const COUNTERS_PREFIX: &str = "wasmcustom";

/// Its source, in the text format of WebAssembly.
const SOURCE: &str = include_str!("module.wat");

/// The module in binary form.
pub fn module() -> Result<Vec<u8>> {
    wat::parse_str(SOURCE).context("assemble the WebAssembly module of the gateway")
}

#[cfg(test)]
mod tests {
    use super::super::probe::WASM_HEADER;
    use super::*;

    #[test]
    fn module_is_assembled_and_has_the_names_that_others_use() {
        let module = module().unwrap();
        assert_eq!(&module[..8], b"\0asm\x01\0\0\0");
        for name in [COUNTER, WASM_HEADER] {
            assert!(SOURCE.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
