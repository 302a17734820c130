//! The WebAssembly module of a scenario, as small as a useful one can be: it counts requests, copies a header
//! of each, and rejects requests that probe it. It uses the proxy-wasm ABI, version 0.2.1.
//!
//! The assembled module is beside its source, so that a build of Meshmeter needs no assembler. After a change of
//! `module.wat` the test below fails and leaves the new one as `module.wasm.new`.

/// Name of the module's counter, which Envoy prefixes with `wasmcustom`.
pub const COUNTER: &str = "meshmeter_requests";

/// The module in its binary form.
pub const MODULE: &[u8] = include_bytes!("module.wasm");

#[cfg(test)]
mod tests {
    use super::super::probe::WASM_HEADER;
    use super::*;
    use std::fs;

    const SOURCE: &str = include_str!("module.wat");

    #[test]
    fn module_is_assembled_from_its_source() {
        let assembled = wat::parse_str(SOURCE).unwrap();
        if MODULE != assembled {
            let new = concat!(env!("CARGO_MANIFEST_DIR"), "/src/filters/module.wasm.new");
            fs::write(new, &assembled).unwrap();
            panic!("module.wasm is not assembled from module.wat: replace it by {new}");
        }
        for name in [COUNTER, WASM_HEADER] {
            assert!(SOURCE.contains(&format!("\"{name}\"")), "{name}");
            assert!(MODULE.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{name}");
        }
    }
}
