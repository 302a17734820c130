//! Sessions against a control plane played by the tests.

mod gateway;
mod marks;
mod messages;
mod play;
mod sidecar;
mod violations;
mod ztunnel;
