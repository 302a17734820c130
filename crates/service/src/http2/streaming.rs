//! Streams of events over HTTP/2: the same as over HTTP/1.1.

use super::exchange::{Broken, Exchange, send_content};
use crate::compute::compute;
use crate::content::Content;
use crate::events::{Frames, Schedule};
use crate::settings::Answer;
use ::http1::EVENT_STREAM;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use rand::rngs::SmallRng;

/// Sends a stream of events, whose schedule counts from the end of its delay.
pub(super) async fn send(
    mut exchange: Exchange,
    answer: &Answer,
    frames: Box<Frames>,
    head_only: bool,
    random: &mut SmallRng,
) -> Result<(), Broken> {
    exchange.delay(answer.delay_ns(), None).await?;
    compute(answer.cpu_time);
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    let mut stream = exchange.respond.send_response(response, head_only)?;
    if !head_only {
        let mut schedule = Schedule::new(&answer.events, exchange.worker.now_ns(), random);
        send_content(&mut stream, Content::new(frames.opening, 0), false).await?;
        let mut is_last = false;
        while let Some(due_ns) = schedule.next_ns() {
            let wait_ns = due_ns.saturating_sub(exchange.worker.now_ns());
            exchange.delay(wait_ns, Some(&mut stream)).await?;
            is_last = schedule.take();
            let end: &[u8] = if is_last { &frames.closing } else { &[] };
            let event = [&frames.event, end].concat();
            send_content(&mut stream, Content::new(event, 0), is_last).await?;
        }
        debug_assert!(is_last, "a stream has an event");
    }
    exchange.answered();
    Ok(())
}
