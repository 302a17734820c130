//! Options of `meshmeter load` for gRPC.

use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Method, its description, and messages.
#[derive(Debug, Args)]
#[command(next_help_heading = "gRPC (grpc://HOST:PORT/package.Service/Method, over TLS grpcs://)")]
pub struct GrpcArgs {
    /// Messages in JSON: an object, or several as an array or one after the other. Calls with one message use
    /// several messages in turn; streams send them in order, repeatedly [default: one empty message]
    #[arg(long, value_name = "JSON|@FILE")]
    pub message: Option<String>,

    /// Messages per call if the method takes a stream [default: as many as --message has]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub stream_messages: Option<NonZeroU64>,

    /// When the messages of a call are sent if both sides stream
    #[arg(long, value_enum, default_value_t)]
    pub bidi: Bidirectional,

    /// Find the method in a .proto file instead of using gRPC reflection; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "protoset")]
    pub proto: Vec<PathBuf>,

    /// Directory to resolve imports from; may be given several times [default: the current directory and that
    /// of the file]
    #[arg(long, value_name = "DIR", requires = "proto")]
    pub proto_path: Vec<PathBuf>,

    /// Find the method in a compiled descriptor set (protoc --descriptor_set_out, buf build) instead
    #[arg(long, value_name = "FILE")]
    pub protoset: Vec<PathBuf>,
}

/// When the messages of a call are sent if both sides stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Bidirectional {
    /// Each one after the response to the last has arrived: measures the round trip of each message
    #[default]
    PingPong,
    /// All at once, as far as the server's window allows
    AllAtOnce,
}

fn parse_count(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "a number from 1 on".to_owned())
}
