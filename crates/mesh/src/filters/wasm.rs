//! The WebAssembly module of a scenario, as small as a useful one can be: it counts requests, copies a header
//! of each, and rejects requests that probe it. It uses the proxy-wasm ABI, version 0.2.1.
//!
//! It is assembled before the build: the test below has its source, and after a change there fails and leaves the new module
//! as `module.wasm.new`.

/// Name of the module's counter, which Envoy prefixes with `wasmcustom`.
pub const COUNTER: &str = "meshmeter_requests";

/// The module in its binary form.
pub const MODULE: &[u8] = include_bytes!("module.wasm");

#[cfg(test)]
mod tests {
    use super::super::probe::WASM_HEADER;
    use super::*;
    use std::fs;
    use test_support::proxy_wasm::{
        BlockType, FREE, Function, HEAP, MemArg, MemArgTarget, ProxyWasm, ValType, body,
    };

    const I32: ValType = ValType::I32;
    // Functions of the host, by their numbers.
    const DEFINE_METRIC: u32 = 0;
    const INCREMENT_METRIC: u32 = 1;
    const GET_HEADER: u32 = 2;
    const ADD_HEADER: u32 = 3;
    const RESPOND: u32 = 4;
    const IMPORTS: [(&str, &[ValType]); 5] = [
        ("proxy_define_metric", &[I32; 4]),
        ("proxy_increment_metric", &[I32, ValType::I64]),
        ("proxy_get_header_map_value", &[I32; 5]),
        ("proxy_add_header_map_value", &[I32; 5]),
        ("proxy_send_local_response", &[I32; 8]),
    ];
    /// Names by their addresses.
    const TEXTS: [(i32, &str); 4] =
        [(16, COUNTER), (64, WASM_HEADER), (96, "user-agent"), (112, "x-wasm-agent")];
    // Addresses of the counter's number, and of the address and the length of a header's value.
    const METRIC: i32 = 0;
    const VALUE: i32 = 4;
    const LENGTH: i32 = 8;

    /// Address and length of a text.
    fn text(place: usize) -> [i32; 2] {
        [TEXTS[place].0, TEXTS[place].1.len().try_into().unwrap()]
    }

    fn at(address: i32) -> MemArg {
        MemArg {
            offset: address.try_into().unwrap(),
            align: 2,
            target: MemArgTarget::default(),
            ordering: None,
        }
    }

    /// Defines the counter. Metric type 0 is a counter; status 0 is success, which callbacks say by 1.
    fn configure() -> Function {
        let [name, length] = text(0);
        body(|code| {
            code.i32_const(0)
                .i32_const(name)
                .i32_const(length)
                .i32_const(METRIC)
                .call(DEFINE_METRIC)
                .i32_eqz();
        })
    }

    /// Header map 0 is the request's; action 0 goes on, 1 stops.
    fn on_request() -> Function {
        let ([probe, probe_length], [agent, agent_length], [copy, copy_length]) = (text(1), text(2), text(3));
        body(|code| {
            // Callbacks run one at a time, and what the host allocates is needed during one alone.
            code.i32_const(HEAP).global_set(FREE);
            code.i32_const(0).i32_load(at(METRIC)).i64_const(1).call(INCREMENT_METRIC).drop();
            code.i32_const(0).i32_const(probe).i32_const(probe_length).i32_const(VALUE).i32_const(LENGTH);
            code.call(GET_HEADER).i32_eqz().if_(BlockType::Empty);
            code.i32_const(403).i32_const(0).i32_const(0).i32_const(0).i32_const(0).i32_const(0).i32_const(0);
            code.i32_const(-1).call(RESPOND).drop().i32_const(1).return_().end();
            code.i32_const(0).i32_const(agent).i32_const(agent_length).i32_const(VALUE).i32_const(LENGTH);
            code.call(GET_HEADER).i32_eqz().if_(BlockType::Empty);
            code.i32_const(0).i32_const(copy).i32_const(copy_length);
            code.i32_const(0).i32_load(at(VALUE)).i32_const(0).i32_load(at(LENGTH));
            code.call(ADD_HEADER).drop().end().i32_const(0);
        })
    }

    #[test]
    fn module_is_assembled_from_its_source() {
        let callback = Some(("proxy_on_request_headers", on_request()));
        let source = ProxyWasm { imports: &IMPORTS, texts: &TEXTS, configure: configure(), callback };
        let assembled = source.encode();
        if MODULE != assembled {
            let new = concat!(env!("CARGO_MANIFEST_DIR"), "/src/filters/module.wasm.new");
            fs::write(new, &assembled).unwrap();
            panic!("module.wasm is not assembled from its source: replace it by {new}");
        }
    }
}
