;; A filter for proxies (proxy-wasm 0.2.1): counts requests, copies user-agent to x-wasm-agent, refuses requests with
;; x-wasm-probe. Callbacks run one at a time, and what the host allocates is needed during one alone.
(module
  (import "env" "proxy_define_metric" (func $define_metric (param i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_increment_metric" (func $increment_metric (param i32 i64) (result i32)))
  (import "env" "proxy_get_header_map_value" (func $get_header (param i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_add_header_map_value" (func $add_header (param i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_send_local_response"
    (func $respond (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))

  ;; Headers of a request have at most 60 KiB.
  (memory (export "memory") 3)
  ;; 0: number of the counter; 4 and 8: address and length of a header's value; names from 16; the host's from 1024.
  (data (i32.const 16) "meshmeter_requests")
  (data (i32.const 64) "x-wasm-probe")
  (data (i32.const 96) "user-agent")
  (data (i32.const 112) "x-wasm-agent")
  (global $free (mut i32) (i32.const 1024))

  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
    (local $place i32)
    (local.set $place (global.get $free))
    (global.set $free (i32.add (local.get $place) (local.get $size)))
    (local.get $place))
  (func (export "proxy_on_context_create") (param i32 i32))
  (func (export "proxy_on_vm_start") (param i32 i32) (result i32) (i32.const 1))
  ;; Metric type 0 is a counter; status 0 is success, which callbacks say by 1.
  (func (export "proxy_on_configure") (param i32 i32) (result i32)
    (i32.eqz (call $define_metric (i32.const 0) (i32.const 16) (i32.const 18) (i32.const 0))))

  ;; Header map 0 is the request's; action 0 goes on, 1 stops.
  (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
    (global.set $free (i32.const 1024))
    (drop (call $increment_metric (i32.load (i32.const 0)) (i64.const 1)))
    (if (i32.eqz
          (call $get_header (i32.const 0) (i32.const 64) (i32.const 12) (i32.const 4) (i32.const 8)))
      (then
        (drop (call $respond (i32.const 403) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 0) (i32.const 0) (i32.const -1)))
        (return (i32.const 1))))
    (if (i32.eqz
          (call $get_header (i32.const 0) (i32.const 96) (i32.const 10) (i32.const 4) (i32.const 8)))
      (then
        (drop (call $add_header (i32.const 0) (i32.const 112) (i32.const 12)
          (i32.load (i32.const 4)) (i32.load (i32.const 8))))))
    (i32.const 0)))
