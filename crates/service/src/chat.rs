//! Chat completions as OpenAI's API has them: a request's JSON says whether the tokens are streamed, and how many there are. The
//! query says when they come. No I/O.

use crate::events::{Frames, event, filler};
use crate::reply::Reply;
use crate::settings::Answer;
use experiment::settings::stream::MAX_TOKENS;
use jiff::Timestamp;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

/// Path of the endpoint.
pub(crate) use experiment::settings::stream::CHAT_PATH as PATH;
/// Tokens of an answer whose request names no number.
const USUAL_TOKENS: u64 = 16;
/// Maximum size of the text of an answer that is not streamed.
const MAX_TEXT_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum size of a request's body.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// A request whose body is being received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChatRequest {
    answer: Answer,
    body: Vec<u8>,
    is_too_long: bool,
}

impl ChatRequest {
    pub(crate) fn new(answer: Answer) -> Self {
        Self { answer, body: Vec::new(), is_too_long: false }
    }

    /// Takes a piece of the body.
    pub(crate) fn take_content(&mut self, content: &[u8]) {
        self.is_too_long |= self.body.len() + content.len() > MAX_BODY_BYTES;
        if self.is_too_long {
            self.body = Vec::new();
        } else {
            self.body.extend_from_slice(content);
        }
    }

    /// Bytes of memory held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.body.capacity()
    }

    /// The reply to the complete request.
    pub(crate) fn reply(self, random: &mut SmallRng) -> Reply {
        if self.is_too_long {
            return refused(413, "expected a body of at most 4 MiB");
        }
        Completion::new(self.answer, &self.body)
            .and_then(|completion| completion.reply(random))
            .unwrap_or_else(|reason| refused(400, &reason))
    }
}

/// A reply without a completion, as OpenAI's API has it.
pub(crate) fn refused(status: u16, message: &str) -> Reply {
    error(Answer { status, ..Answer::default() }, message)
}

/// An error instead of a completion, with the status and the delay of the answer.
pub(crate) fn error(answer: Answer, message: &str) -> Reply {
    let kind = if answer.status < 500 { "invalid_request_error" } else { "server_error" };
    let error = json!({"message": message, "type": kind, "param": null, "code": null});
    Reply::Json { answer, json: json!({ "error": error }).to_string() }
}

/// A completion as a request asks for it.
struct Completion {
    answer: Answer,
    model: Value,
    is_streamed: bool,
    reports_usage: bool,
    /// A token per four characters of the prompt, roughly as in English.
    prompt_tokens: u64,
    created_s: i64,
}

impl Completion {
    fn new(mut answer: Answer, body: &[u8]) -> Result<Self, String> {
        let request: Value = serde_json::from_slice(body).map_err(|error| format!("body: {error}"))?;
        let Some(messages) = request["messages"].as_array() else {
            return Err("body: expected a list of `messages`".to_owned());
        };
        let limit = [&request["max_completion_tokens"], &request["max_tokens"]];
        answer.events.count = match limit.into_iter().find(|limit| !limit.is_null()) {
            Some(limit) => limit
                .as_u64()
                .filter(|tokens| (1..=MAX_TOKENS).contains(tokens))
                .ok_or_else(|| format!("body: expected `max_tokens` from 1 to {MAX_TOKENS}"))?,
            None if answer.events.count == 0 => USUAL_TOKENS,
            None => answer.events.count.min(MAX_TOKENS),
        };
        let is_streamed = match &request["stream"] {
            Value::Bool(is_streamed) => *is_streamed,
            Value::Null => false,
            _ => return Err("body: expected `stream` to be true or false".to_owned()),
        };
        let characters: usize = messages.iter().map(|message| message["content"].to_string().len()).sum();
        Ok(Self {
            answer,
            model: request["model"].clone(),
            is_streamed,
            reports_usage: request["stream_options"]["include_usage"] == true,
            prompt_tokens: (characters as u64).div_ceil(4),
            created_s: Timestamp::now().as_second(),
        })
    }

    fn reply(self, random: &mut SmallRng) -> Result<Reply, String> {
        let events = self.answer.events;
        if self.is_streamed {
            return Ok(Reply::Events(self.answer, Box::new(self.frames())));
        }
        if events.count * events.event_bytes > MAX_TEXT_BYTES {
            return Err("expected an answer of at most 64 MiB".to_owned());
        }
        let text = self.token().repeat(usize::try_from(events.count).unwrap_or(0));
        let message = json!({"role": "assistant", "content": text});
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "length"});
        let json = self.object("chat.completion", &json!([choice]), &self.usage()).to_string();
        let delay = self.answer.delay.saturating_add(events.duration(random));
        Ok(Reply::Json { answer: Answer { delay, ..self.answer }, json })
    }

    /// The role comes with the head, without a token; after the tokens come why they ended, usage if asked for, and `[DONE]`.
    fn frames(&self) -> Frames {
        let delta = |delta: Value, finish_reason: Value| {
            let choice =
                json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
            self.chunk(&json!([choice]), &Value::Null)
        };
        let mut closing = delta(json!({}), json!("length"));
        if self.reports_usage {
            closing.extend(self.chunk(&json!([]), &self.usage()));
        }
        closing.extend(event(b"[DONE]"));
        Frames {
            opening: delta(json!({"role": "assistant", "content": ""}), Value::Null),
            event: delta(json!({"content": self.token()}), Value::Null),
            closing,
        }
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> Vec<u8> {
        event(self.object("chat.completion.chunk", choices, usage).to_string().as_bytes())
    }

    fn object(&self, kind: &str, choices: &Value, usage: &Value) -> Value {
        let mut object = json!({
            "id": "chatcmpl-meshmeter",
            "object": kind,
            "created": self.created_s,
            "model": self.model,
            "choices": choices,
        });
        if self.reports_usage || !self.is_streamed {
            object["usage"] = usage.clone();
        }
        object
    }

    fn usage(&self) -> Value {
        let (prompt, tokens) = (self.prompt_tokens, self.answer.events.count);
        json!({"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens})
    }

    fn token(&self) -> String {
        String::from_utf8_lossy(&filler(self.answer.events.event_bytes)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::topology::distribution::Distribution;
    use rand::SeedableRng as _;
    use std::time::Duration;

    fn reply(body: &str, query: &str) -> Reply {
        let mut request = ChatRequest::new(Answer::default().with_query(query).unwrap());
        body.as_bytes().chunks(7).for_each(|content| request.take_content(content));
        request.reply(&mut SmallRng::seed_from_u64(1))
    }

    /// The data of events, those of JSON parsed.
    fn data(events: &[u8]) -> Vec<Value> {
        let text = std::str::from_utf8(events).unwrap();
        let data = text.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
    }

    #[test]
    fn stream_has_role_tokens_finish_usage_and_end() {
        let body = r#"{"model": "m", "messages": [{"role": "user", "content": "say \"hi\""}], "stream": true,
            "max_tokens": 20, "stream_options": {"include_usage": true}}"#;
        let Reply::Events(answer, frames) = reply(body, "first=50ms&gap=exp:10ms&event-bytes=4") else {
            panic!("no stream")
        };
        let events = answer.events;
        assert_eq!((events.count, events.first), (20, Distribution::Fixed(0.05)));
        let [role] = &data(&frames.opening)[..] else { panic!("one event") };
        assert_eq!(role["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
        let [token] = &data(&frames.event)[..] else { panic!("one event") };
        assert_eq!(token["choices"][0]["delta"], json!({"content": "0123"}));
        assert_eq!((&token["object"], &token["model"]), (&json!("chat.completion.chunk"), &json!("m")));
        let [finish, usage, done] = &data(&frames.closing)[..] else { panic!("three events") };
        assert_eq!(finish["choices"][0]["finish_reason"], "length");
        assert_eq!((&usage["choices"], &usage["usage"]["completion_tokens"]), (&json!([]), &json!(20)));
        assert_eq!(done, "[DONE]");
    }

    #[test]
    fn usage_is_reported_only_when_asked_for() {
        let Reply::Events(answer, frames) = reply(r#"{"messages": [], "stream": true}"#, "") else {
            panic!("no stream")
        };
        assert_eq!(answer.events.count, USUAL_TOKENS);
        let closing = data(&frames.closing);
        assert_eq!((closing.len(), closing[0].get("usage")), (2, None));
    }

    #[test]
    fn answer_without_a_stream_comes_when_its_last_token_would() {
        let body = r#"{"messages": [{"content": "a"}], "max_completion_tokens": 3, "max_tokens": 9}"#;
        let Reply::Json { answer, json } = reply(body, "delay=1ms&first=50ms&gap=10ms&event-bytes=2") else {
            panic!("no JSON")
        };
        assert_eq!(answer.delay, Duration::from_millis(71));
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["choices"][0]["message"]["content"], "010101");
        assert_eq!(
            (&json["object"], &json["usage"]["completion_tokens"]),
            (&json!("chat.completion"), &json!(3))
        );
    }

    #[test]
    fn requests_that_are_no_chat_are_refused() {
        for (body, status, words) in [
            ("", 400, "body: EOF"),
            ("{}", 400, "`messages`"),
            (r#"{"messages": [], "max_tokens": 0}"#, 400, "`max_tokens`"),
            (r#"{"messages": [], "max_tokens": "many"}"#, 400, "`max_tokens`"),
            (r#"{"messages": [], "stream": "yes"}"#, 400, "`stream`"),
            (&" ".repeat(MAX_BODY_BYTES + 1), 413, "4 MiB"),
        ] {
            let Reply::Json { answer, json } = reply(body, "delay=1s") else { panic!("{body}") };
            assert_eq!((answer.status, answer.delay), (status, Duration::ZERO));
            let error = &serde_json::from_str::<Value>(&json).unwrap()["error"];
            assert_eq!(error["type"], "invalid_request_error");
            assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        }
    }
}
