//! The standard health service: everything offered here is serving as long as the server responds.

use super::call::{Call, Failure};
use super::reflection;
use super::status::{Code, Status};

pub(super) const SERVICE: &str = "grpc.health.v1.Health";

/// `HealthCheckResponse.ServingStatus`.
const SERVING: i32 = 1;
const SERVICE_UNKNOWN: i32 = 3;

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

/// `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// Reports that a service, or the whole server, is serving.
pub(super) async fn check(call: &mut Call) -> Result<(), Failure> {
    let HealthCheckRequest { service } = call.receive_only().await?;
    if !is_served(&service) {
        return Err(Failure::Status(Status::new(Code::NotFound, "there is no such service")));
    }
    call.send(&HealthCheckResponse { status: SERVING }).await
}

/// Reports the status once, and no changes until the client ends the call.
pub(super) async fn watch(call: &mut Call) -> Result<(), Failure> {
    let HealthCheckRequest { service } = call.receive_only().await?;
    let status = if is_served(&service) { SERVING } else { SERVICE_UNKNOWN };
    call.send(&HealthCheckResponse { status }).await?;
    Err(call.wait_for_reset().await)
}

/// The empty name means the whole server.
fn is_served(service: &str) -> bool {
    service.is_empty() || reflection::services().any(|known| known == service)
}
