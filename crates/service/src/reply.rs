//! Selects the reply to an HTTP request, whatever its HTTP version.

use crate::chat::{self, ChatRequest};
use crate::events::Frames;
use crate::settings::Answer;
use rand::RngExt as _;
use rand::rngs::SmallRng;

/// Path at which the server's counters are read.
pub const COUNTERS_PATH: &str = "/meshmeter/counters";

/// Message of an error that the error rate selects.
const INJECTED: &str = "injected error";

/// Kinds of replies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// A body of filler, as requested.
    Filler(Answer),
    /// A stream of events, of which these are the frames.
    Events(Answer, Box<Frames>),
    /// A chat completion, once its request is complete.
    Chat(Box<ChatRequest>),
    /// A whole chat completion, or an error instead of one.
    Json { answer: Answer, json: String },
    /// The server's counters.
    Counters,
    /// The request is well-formed but invalid, for this reason.
    Refused { status: u16, reason: String },
}

impl Reply {
    /// The reply to a request without an expectation. The target is `*`, a path or a whole URL.
    pub(crate) fn to(method: &str, target: &str, defaults: &Answer) -> Self {
        if method == "CONNECT" {
            return Self::Refused {
                status: 405,
                reason: "this is a service, not a proxy: no CONNECT".into(),
            };
        }
        let target = target.split_once('#').map_or(target, |(target, _fragment)| target);
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        if path.ends_with(COUNTERS_PATH) && path_of(path) == COUNTERS_PATH {
            return Self::Counters;
        }
        match query.map_or(Ok(*defaults), |query| defaults.with_query(query)) {
            Ok(answer) if method == "POST" && path_of(path) == chat::PATH => {
                Self::Chat(Box::new(ChatRequest::new(answer)))
            }
            Ok(answer) if answer.events.count > 0 => {
                Self::Events(answer, Box::new(Frames::filler(answer.events.event_bytes)))
            }
            Ok(answer) => Self::Filler(answer),
            Err(error) if method == "POST" && path_of(path) == chat::PATH => {
                chat::refused(400, &error.to_string())
            }
            Err(error) => Self::Refused { status: 400, reason: error.to_string() },
        }
    }

    /// Settings of the reply, unless it has none.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Filler(answer) | Self::Events(answer, _) | Self::Json { answer, .. } => Some(answer),
            Self::Chat(_) | Self::Counters | Self::Refused { .. } => None,
        }
    }

    /// Draws whether an injected error replaces this reply.
    pub(crate) fn fails(&self, random: &mut SmallRng) -> bool {
        self.answer().is_some_and(|answer| answer.fails(random))
    }

    /// The reply with an injected error: that of the API instead of a chat completion. Others have no content of their own then.
    pub(crate) fn failed(self) -> Self {
        match self {
            Self::Json { answer, .. } => chat::error(Answer { status: 500, ..answer }, INJECTED),
            // Only a completion has a frame before its events.
            Self::Events(answer, frames) if !frames.opening.is_empty() => {
                chat::error(Answer { status: 500, ..answer }, INJECTED)
            }
            other => other,
        }
    }

    /// The delay before the reply.
    pub(crate) fn delay_ns(&self) -> u64 {
        self.answer().map_or(0, Answer::delay_ns)
    }

    /// Takes a piece of the request's body; discards it unless the reply depends on it.
    pub(crate) fn take_content(&mut self, content: &[u8]) {
        if let Self::Chat(request) = self {
            request.take_content(content);
        }
    }

    /// Bytes of memory held: of the request's body, or of the content of the reply.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Chat(request) => request.held_bytes(),
            Self::Events(_, frames) => frames.bytes(),
            Self::Json { json, .. } => json.len(),
            Self::Filler(_) | Self::Counters | Self::Refused { .. } => 0,
        }
    }

    /// The reply to the complete request.
    pub(crate) fn completed(self, random: &mut SmallRng) -> Self {
        match self {
            Self::Chat(request) => request.reply(random),
            other => other,
        }
    }
}

impl Answer {
    /// From the end of the request to the start of the response.
    pub(crate) fn delay_ns(&self) -> u64 {
        u64::try_from(self.delay.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Draws whether this response is an injected error.
    pub(crate) fn fails(&self, random: &mut SmallRng) -> bool {
        self.error_fraction > 0.0 && random.random_bool(self.error_fraction)
    }
}

/// The path of a target without its query; proxies may send an absolute URL (RFC 9112, 3.2.2).
pub(crate) fn path_of(target: &str) -> &str {
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("", |at| &rest[at..]),
        _ => target,
    }
}
