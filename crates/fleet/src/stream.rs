//! A proxy's stream: moves received bytes to the session, and the session's requests to the connection.

use crate::backoff::Backoff;
use crate::core::Core;
use crate::figures::Reading;
use crate::proxy::{Ended, Phase, Proxy};
use crate::spec::Security;
use crate::target::ResolvedTarget;
use crate::transport::{
    Deframer, Ending, EndingKind, Event as LinkEvent, Link, Piece, RequestHead, Stamp, frame_message,
};
use crate::worker::Worker;
use crate::xds::XdsVariant;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Maximum number of reads before other proxies of the thread get their turn.
const MAX_READS_PER_TURN: usize = 8;

/// State of one proxy's stream.
pub(crate) struct Stream<'a> {
    worker: &'a Worker,
    proxy: &'a Proxy,
    target: &'a ResolvedTarget,
    link: Link,
    deframer: Deframer,
    backoff: &'a mut Backoff,
    /// Start of the connection attempt.
    began: Instant,
    ready: bool,
    last_received: Instant,
    /// True while a ping has no response.
    pinged: bool,
    timer: Pin<Box<Sleep>>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(
        worker: &'a Worker,
        proxy: &'a Proxy,
        target: &'a ResolvedTarget,
        link: Link,
        began: Instant,
        backoff: &'a mut Backoff,
    ) -> Self {
        let timer = Box::pin(tokio::time::sleep(worker.settings.connect_timeout));
        Self {
            worker,
            proxy,
            target,
            link,
            deframer: Deframer::default(),
            backoff,
            began,
            ready: false,
            last_received: began,
            pinged: false,
            timer,
        }
    }

    /// Ready once the connection has ended.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        if self.proxy.poll_order(context).is_ready() {
            self.link.cancel(context);
            return Poll::Ready(Ended::Ordered);
        }
        match self.poll_bytes(context) {
            Poll::Ready(ending) => {
                if matches!(ending.kind, EndingKind::Broken | EndingKind::GrpcViolation) {
                    self.link.cancel(context);
                }
                Poll::Ready(Ended::By(ending))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Ending> {
        for _ in 0..MAX_READS_PER_TURN {
            if let Poll::Ready(Err(ending)) = self.link.poll_send(context) {
                return Poll::Ready(ending);
            }
            match self.poll_receive(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(ending)) => return Poll::Ready(ending),
                Poll::Pending => return self.poll_timer(context),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        let core = &mut *self.worker.core.borrow_mut();
        let mut buffer = self.worker.buffer.borrow_mut();
        let (proxy, deframer) = (self.proxy, &mut self.deframer);
        let mut ready = false;
        let mut reading: Option<Reading> = None;
        let received = self.link.poll_receive(context, &mut buffer, &mut |event, stamp| match event {
            LinkEvent::Data(bytes) => deframer.receive(bytes, usize::MAX, |piece| {
                if !matches!(piece, Piece::End) {
                    reading = Some(Reading { stamp: *stamp, followed_events: core.events.len() });
                }
                receive_piece(core, proxy, &piece, stamp)
            }),
            LinkEvent::Ready => {
                ready = true;
                Ok(())
            }
            LinkEvent::Pong => Ok(()),
        });
        let Poll::Ready(received) = received else { return Poll::Pending };
        self.last_received = Instant::now();
        self.pinged = false;
        if ready {
            self.open(core);
        }
        if !core.events.is_empty() {
            self.backoff.reset();
        }
        if let Some(reading) = reading {
            core.take_events(proxy, self.began, &reading, &self.worker.shared);
        }
        // Data received before an error still counts.
        let sent = self.send_requests(core);
        Poll::Ready(received.and(sent))
    }

    /// Called when the control plane's settings arrive: opens the stream and has the session subscribe.
    fn open(&mut self, core: &mut Core) {
        self.ready = true;
        let next = Instant::now() + self.worker.settings.keepalive.interval;
        self.timer.as_mut().reset(next.into());
        self.proxy.phase.set(Phase::Connected);
        core.connected(self.proxy, self.began.elapsed(), &self.worker.shared);
        let path = match self.proxy.session.borrow().variant() {
            XdsVariant::Delta => {
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
            }
            XdsVariant::StateOfTheWorld => {
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
            }
        };
        let is_plain = self.target.security == Security::Plaintext;
        self.link.open_stream(&RequestHead {
            scheme: if is_plain { "http" } else { "https" },
            authority: &self.target.authority,
            path,
            token: self.proxy.token.as_deref().filter(|_| self.target.security == Security::Token),
            cluster_id: &self.proxy.spec.cluster_id,
        });
        core.subscribe(self.proxy);
    }

    fn send_requests(&mut self, core: &mut Core) -> Result<(), Ending> {
        if core.outbox.is_empty() {
            return Ok(());
        }
        let mut messages = Vec::new();
        core.outbox.bodies().for_each(|body| frame_message(body, &mut messages));
        core.outbox.clear();
        self.link.send(&messages)
    }

    /// Ready if the connection is dead: before the control plane's settings after the connect timeout, later
    /// by pings.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<Ending> {
        while self.timer.as_mut().poll(context).is_ready() {
            let next = match self.silence_ended() {
                Ok(next) => next,
                Err(ending) => return Poll::Ready(ending),
            };
            self.timer.as_mut().reset((Instant::now() + next).into());
            if let Poll::Ready(Err(ending)) = self.link.poll_send(context) {
                return Poll::Ready(ending);
            }
        }
        Poll::Pending
    }

    /// Called when the timer fires. Returns the time until the next check.
    fn silence_ended(&mut self) -> Result<Duration, Ending> {
        let keepalive = self.worker.settings.keepalive;
        let silence = self.last_received.elapsed();
        if !self.ready {
            let timeout = self.worker.settings.connect_timeout;
            let detail = format!("no HTTP/2 settings after {timeout:?}");
            return Err(Ending::new(EndingKind::ConnectTimeout, detail));
        }
        if silence < keepalive.interval {
            return Ok(keepalive.interval - silence);
        }
        if self.pinged {
            let detail = format!("silent for {:.1} s in spite of a ping", silence.as_secs_f64());
            return Err(Ending::new(EndingKind::Silent, detail));
        }
        self.pinged = true;
        self.link.ping();
        Ok(keepalive.timeout)
    }
}

/// Passes a part of a response to the session.
fn receive_piece(core: &mut Core, proxy: &Proxy, piece: &Piece<'_>, stamp: &Stamp) -> Result<(), Ending> {
    let mut session = proxy.session.borrow_mut();
    let broken = match piece {
        Piece::Start(length) => core.message_started(&mut session, *length),
        Piece::Body(bytes) => core.message_continued(&mut session, bytes, stamp),
        Piece::End => core.message_ended(&mut session, stamp),
    };
    broken.map_err(|_| Ending::new(EndingKind::Broken, "a response that violates the protocol"))
}
