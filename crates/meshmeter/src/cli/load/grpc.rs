//! Options of `meshmeter load` for gRPC.

use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// What is called, how it is described, what is sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "gRPC (grpc://HOST:PORT/package.Service/Method, over TLS grpcs://)")]
pub struct GrpcArgs {
    /// Messages in JSON: an object; several as an array or one after the other. Calls with one message take several in
    /// turn, streams send them in order and over again [default: one empty message]
    #[arg(long, value_name = "JSON|@FILE")]
    pub message: Option<String>,

    /// Messages that a call sends where the method takes a stream [default: as many as --message has]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub stream_messages: Option<NonZeroU64>,

    /// When the messages of a call go out where both sides send streams
    #[arg(long, value_enum, default_value_t)]
    pub bidi: Bidirectional,

    /// Find the method in a .proto file instead of asking the server (gRPC reflection); may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "protoset")]
    pub proto: Vec<PathBuf>,

    /// Where its imports start from; may be given several times [default: the current folder and that of the file]
    #[arg(long, value_name = "DIR", requires = "proto")]
    pub proto_path: Vec<PathBuf>,

    /// Find the method in a compiled set of descriptors (protoc --descriptor_set_out, buf build) instead
    #[arg(long, value_name = "FILE")]
    pub protoset: Vec<PathBuf>,
}

/// When the messages of a call go out where both sides send streams.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Bidirectional {
    /// The next one when the answer to the last has come: measures each message's round trip
    #[default]
    PingPong,
    /// All at once, as far as the server has room
    AllAtOnce,
}

impl GrpcArgs {
    /// The first option that means nothing without a gRPC URL.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--message", self.message.is_some()),
            ("--stream-messages", self.stream_messages.is_some()),
            ("--bidi", self.bidi != Bidirectional::default()),
            ("--proto", !self.proto.is_empty()),
            ("--protoset", !self.protoset.is_empty()),
        ];
        options.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

fn parse_count(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "a number from 1 on".to_owned())
}
