//! Sessions against a control plane simulated by the tests.

mod gateway;
mod marks;
mod memory;
mod messages;
mod pieces;
mod play;
mod sidecar;
mod violations;
mod ztunnel;
