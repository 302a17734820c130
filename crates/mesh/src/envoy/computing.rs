//! A filter that spends a known CPU time per request, which measurements have to find again.

use super::extension::extension;
use serde_json::{Value, json};
use std::time::Duration;

/// Spins until the CPU clock of Envoy's worker thread has advanced; clock 3 is `CLOCK_THREAD_CPUTIME_ID` of Linux. A wall
/// clock would count the time in which the thread is preempted.
const SCRIPT: &str = r#"local ffi = require("ffi")
ffi.cdef("typedef struct { long s; long ns; } meshmeter_time; int clock_gettime(int clock, meshmeter_time *time);")
local time = ffi.new("meshmeter_time")
local function thread_cpu_ns()
  ffi.C.clock_gettime(3, time)
  return tonumber(time.s) * 1000000000 + tonumber(time.ns)
end
function envoy_on_request(handle)
  local done = thread_cpu_ns() + CPU_TIME_NS
  while thread_cpu_ns() < done do end
end
"#;

/// The HTTP filter. `cpu_time`: per request.
pub(super) fn filter(cpu_time: Duration) -> Value {
    let script = SCRIPT.replace("CPU_TIME_NS", &format!("{} -- nanoseconds", cpu_time.as_nanos()));
    let config = json!({"default_source_code": {"inline_string": script}});
    extension("envoy.filters.http.lua", "filters.http.lua.v3.Lua", config)
}
