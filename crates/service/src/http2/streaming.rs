//! Streams of events over HTTP/2 and HTTP/3: the same as over HTTP/1.1.

use super::context::Held;
use super::exchange::{Broken, Exchange, Respond, send_content};
use super::outbox::Outbox;
use crate::compute::compute;
use crate::content::Content;
use crate::events::{Frames, Schedule};
use crate::settings::Answer;
use ::http1::EVENT_STREAM;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use rand::rngs::SmallRng;

/// Sends a stream of events, whose schedule counts from the end of its delay. `held`: memory of the frames.
pub(super) async fn send<R: Respond>(
    mut exchange: Exchange<R>,
    answer: &Answer,
    (frames, held): (Box<Frames>, Held),
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
        let Frames { opening, event, closing } = *frames;
        let (opens, ends) = (opening.len(), opening.len() + event.len());
        // All events share their bytes.
        let frames = held.until_gone([opening, event, closing].concat());
        let outbox = Outbox::default();
        send_content(&mut stream, &outbox, Content::new(frames.slice(..opens), 0), false).await?;
        // The head is sent at the end of this turn, however many events are due by then.
        let mut least_ns = 1;
        let mut is_last = false;
        while let Some(due_ns) = schedule.next_ns() {
            let wait_ns = due_ns.saturating_sub(exchange.worker.now_ns());
            exchange.delay(wait_ns.max(std::mem::take(&mut least_ns)), Some(&mut stream)).await?;
            is_last = schedule.take();
            let event = if is_last { frames.slice(opens..) } else { frames.slice(opens..ends) };
            send_content(&mut stream, &outbox, Content::new(event, 0), is_last).await?;
        }
        debug_assert!(is_last, "a stream has an event");
    }
    exchange.answered();
    Ok(())
}
