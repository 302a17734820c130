//! The gRPC health service (grpc/grpc, `src/proto/grpc/health/v1/health.proto`), built in so that it can be
//! called without a description.

use prost_reflect::DescriptorPool;
use protox::file::File;

pub(crate) const SERVICE: &str = "grpc.health.v1.Health";
const NAME: &str = "grpc/health/v1/health.proto";
const SOURCE: &str = r#"
syntax = "proto3";
package grpc.health.v1;

message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
  ServingStatus status = 1;
}
service Health {
  rpc Check(HealthCheckRequest) returns (HealthCheckResponse);
  rpc Watch(HealthCheckRequest) returns (stream HealthCheckResponse);
}
"#;

/// Descriptors of the service.
pub(crate) fn pool() -> DescriptorPool {
    let file = File::from_source(NAME, SOURCE).expect("the health service is written correctly");
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_proto(file.file_descriptor_proto().clone())
        .expect("the health service needs no other file");
    pool
}
