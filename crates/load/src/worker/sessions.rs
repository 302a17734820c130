//! Sessions in flight of one thread: what each has received, and when its next step is due.
//!
//! The first step of a session is due when the session is, by the schedule. Each later step is due when the response before has
//! been read and a think time has passed: it cannot be due before what it depends on is known. A step is sent as any other request
//! is, on any connection to its server.

use crate::clock::{Nanos, nanos};
use crate::protocol::KeptResponse;
use crate::recorder::SessionEnd;
use crate::target::{Chosen, CookieJar, Selector, SessionKind, SessionStep, Target, Values};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Streams of the random generator from here on are for think times; lower ones are for data, requests and arrivals.
const FIRST_STREAM: u64 = 1 << 34;
/// Maximum number of sessions in flight of one thread: it bounds memory. Those due beyond it wait in the schedule.
const MAX_SESSIONS: usize = 1 << 20;

/// The sessions of a thread.
pub(super) struct Sessions<'a> {
    kinds: &'a [SessionKind],
    /// Session and step of each choice.
    steps: Vec<(usize, usize)>,
    /// Choice of the first step of each kind.
    first_choices: Vec<usize>,
    /// Sources of data that each kind uses.
    sources: Vec<Vec<usize>>,
    sessions: Vec<Session>,
    /// Numbers of sessions that have ended.
    free: Vec<u32>,
    /// Sessions that wait for their next step, and when it is due, the earliest first.
    waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Steps due from here on are not sent.
    end: Nanos,
    random: Box<ChaCha8Rng>,
    path: Vec<u8>,
}

/// A session in flight.
#[derive(Default)]
struct Session {
    kind: usize,
    /// Its step that is in flight, or due next.
    step: usize,
    /// Index of its host among the options of each step.
    option: usize,
    arrived: Nanos,
    /// Values by source of data.
    data: Vec<u64>,
    /// Values taken from responses.
    values: Vec<Box<[u8]>>,
    jar: CookieJar,
    /// Cookies of the request in flight, as in its header.
    cookies: Vec<u8>,
}

/// Outcome of a step for its session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StepOutcome {
    /// The response was as expected, and has its values.
    Done,
    Failed,
    /// It was not sent, and nothing can follow.
    Dropped,
}

/// State of a session after a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum After {
    /// Its next step is due later.
    GoesOn,
    /// It has come to its end.
    Ended(SessionEnd),
    /// Its next step would be due after the end of the run.
    Cut,
}

impl<'a> Sessions<'a> {
    /// `sources`: those of data that each choice uses.
    pub(super) fn new(
        kinds: &'a [SessionKind],
        (steps, selector): (Vec<(usize, usize)>, &Selector<'_>),
        end: Nanos,
        (seed, thread): (u64, usize),
    ) -> Self {
        let mut random = Box::new(ChaCha8Rng::seed_from_u64(seed));
        random.set_stream(FIRST_STREAM + thread as u64);
        let first_choice = |kind| steps.iter().position(|step| *step == (kind, 0)).unwrap_or_default();
        let first_choices: Vec<usize> = (0..kinds.len()).map(first_choice).collect();
        let choices = |kind: usize| first_choices[kind]..first_choices[kind] + kinds[kind].steps.len();
        let sources = (0..kinds.len()).map(|kind| selector.sources(choices(kind))).collect();
        Self {
            kinds,
            sources,
            first_choices,
            steps,
            sessions: Vec::new(),
            free: Vec::new(),
            waiting: BinaryHeap::new(),
            end,
            random,
            path: Vec::new(),
        }
    }

    /// When the next request is due: a step, or the first one of the session that `arrives` then.
    pub(super) fn next_due(&self, arrives: Option<Nanos>) -> Option<Nanos> {
        let is_full = self.free.is_empty() && self.sessions.len() == MAX_SESSIONS;
        let step = self.waiting.peek().map(|Reverse((due, _))| *due);
        arrives.filter(|_| !is_full).into_iter().chain(step).min()
    }

    /// True if no session waits for its next step.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the earliest step that waits, and its session, if it is due when `is_due` says.
    fn take_waiting(&mut self, is_due: impl Fn(Nanos) -> bool) -> Option<(Nanos, u32)> {
        self.waiting.peek().filter(|Reverse((due, _))| is_due(*due))?;
        self.waiting.pop().map(|Reverse(step)| step)
    }

    /// Takes the step that is due at this time; `None` if a session arrives then.
    pub(super) fn take_step(&mut self, due: Nanos, selector: &mut Selector<'_>) -> Option<Chosen> {
        let number = self.take_waiting(|step| step <= due)?.1;
        let session = &self.sessions[number as usize];
        let choice = self.first_choices[session.kind] + session.step;
        let chosen = selector.choose_step(choice, session.option, &session.data);
        Some(Chosen { step: Some(SessionStep { session: number, is_first: false }), ..chosen })
    }

    /// A session arrives, of which this is the first request.
    pub(super) fn begin(&mut self, due: Nanos, first: Chosen, selector: &mut Selector<'_>) -> Chosen {
        let number = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(Session::default());
            (self.sessions.len() - 1) as u32
        });
        let (kind, _) = self.steps[first.choice];
        let data = selector.session_values(&self.sources[kind]);
        let lacks_data = data.is_none();
        let session = &mut self.sessions[number as usize];
        (session.kind, session.step, session.option, session.arrived) = (kind, 0, first.option, due);
        session.data = data.unwrap_or_default();
        session.values.clear();
        session.values.resize(self.kinds[kind].values, Box::default());
        session.jar.clear();
        Chosen { step: Some(SessionStep { session: number, is_first: true }), lacks_data, ..first }
    }

    /// The values of a request in flight.
    pub(super) fn values<'v>(&'v mut self, chosen: &'v Chosen, targets: &[Target]) -> Values<'v> {
        let numbers = &chosen.numbers[..];
        let Some(step) = chosen.step else { return numbers.into() };
        let session = &mut self.sessions[step.session as usize];
        session.cookies.clear();
        if !session.jar.is_empty() {
            self.path.clear();
            let values = Values { numbers, of_session: &session.values, cookies: &[] };
            targets[chosen.server].requests[chosen.request].path.write_with(values, &mut self.path);
            session.jar.write(&self.path, &mut session.cookies);
        }
        Values { numbers, of_session: &session.values, cookies: &session.cookies }
    }

    /// Kind of session that a choice is a step of.
    pub(super) fn kind_of(&self, choice: usize) -> usize {
        self.steps[choice].0
    }

    /// Index of the host of a session among the options of its steps.
    pub(super) fn option_of(&self, number: u32) -> usize {
        self.sessions[number as usize].option
    }

    /// Takes cookies and values from a response. Returns false if a value is not there.
    pub(super) fn receive(&mut self, number: u32, response: &KeptResponse, host: &str) -> bool {
        let session = &mut self.sessions[number as usize];
        session.jar.receive(&response.fields, host);
        self.kinds[session.kind].steps[session.step].extract(response, &mut session.values)
    }

    /// A step has ended at this time.
    pub(super) fn step_ended(&mut self, number: u32, outcome: StepOutcome, at: Nanos) -> After {
        let session = &mut self.sessions[number as usize];
        let (kind, arrived, steps) = (session.kind, session.arrived, &self.kinds[session.kind].steps);
        let ends = match outcome {
            StepOutcome::Done => false,
            StepOutcome::Failed => !steps[session.step].goes_on,
            StepOutcome::Dropped => true,
        };
        if ends {
            self.free.push(number);
            return After::Ended(SessionEnd { kind, arrived, failed_at: Some(session.step) });
        }
        session.step += 1;
        let Some(step) = steps.get(session.step) else {
            self.free.push(number);
            return After::Ended(SessionEnd { kind, arrived, failed_at: None });
        };
        let think = match &step.think[..] {
            [] => 0,
            [time] => nanos(*time),
            times => nanos(times[self.random.random_range(0..times.len())]),
        };
        let due = at.saturating_add(think);
        if due >= self.end {
            self.free.push(number);
            return After::Cut;
        }
        self.waiting.push(Reverse((due, number)));
        After::GoesOn
    }

    /// Gives up the steps that were due before `at`: their sessions are cut. Returns when they were due, and their choices.
    pub(super) fn give_up(&mut self, at: Nanos) -> Vec<(Nanos, usize)> {
        let mut given_up = Vec::new();
        while let Some((due, number)) = self.take_waiting(|due| due < at) {
            let session = &self.sessions[number as usize];
            given_up.push((due, self.first_choices[session.kind] + session.step));
            self.free.push(number);
        }
        given_up
    }

    /// A session is cut: its request is given up.
    pub(super) fn cut(&mut self, step: SessionStep) {
        self.free.push(step.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{
        Assignment, Content, Kind, Order, RequestKind, RequestTemplate, Source, Step, Targets, Text,
        resolve_kinds,
    };
    use std::time::Duration;

    const MS: Nanos = 1_000_000;

    /// Sessions of three steps with a value of data each, of which the second may fail.
    fn targets() -> Targets {
        let kind = |name: &str| {
            let mut path = Text::from("/".to_owned());
            path.push_data(0, Content::Number);
            let kind = Kind { name: name.to_owned(), ..Kind::default() };
            RequestKind { weight: 1, path, template: RequestTemplate::default(), kind }
        };
        let source = Source { first: 7, count: Some(2), order: Order::Turn, stops: true };
        let targets = resolve_kinds("http://127.0.0.1:9", &["a", "b", "c"].map(kind), vec![source]).unwrap();
        let step = |think_ms: &[u64], goes_on| Step {
            think: think_ms.iter().copied().map(Duration::from_millis).collect(),
            extract: Vec::new(),
            goes_on,
        };
        let steps = vec![step(&[], false), step(&[5], true), step(&[20, 20], false)];
        targets.with_sessions(vec![SessionKind { name: "s".to_owned(), weight: 2, values: 1, steps }])
    }

    fn number(chosen: &Chosen) -> u32 {
        chosen.step.expect("it is of a session").session
    }

    #[test]
    fn steps_are_due_after_responses_and_think_times() {
        let targets = targets();
        let mut selector = Selector::new(&targets, 1, (0, 1), &Assignment::new(&targets, 1, 0, 1));
        let steps = (targets.steps(), &selector);
        let mut sessions = Sessions::new(&targets.sessions, steps, 100 * MS, (1, 0));
        let end = |failed_at| SessionEnd { kind: 0, arrived: MS, failed_at };
        let begin = |sessions: &mut Sessions<'_>, selector: &mut Selector<'_>| {
            let first = selector.choose();
            sessions.begin(MS, first, selector)
        };
        let first = begin(&mut sessions, &mut selector);
        assert_eq!((first.choice, &first.numbers[..], first.lacks_data), (0, &[7][..], false));
        let other = begin(&mut sessions, &mut selector);
        assert_eq!((number(&other), &other.numbers[..]), (1, &[8][..]), "each session has its own value");
        let ended = begin(&mut sessions, &mut selector);
        assert!(ended.lacks_data, "there are two values");
        let after = sessions.step_ended(number(&ended), StepOutcome::Dropped, MS);
        assert_eq!(after, After::Ended(end(Some(0))));

        assert_eq!(sessions.next_due(Some(9 * MS)), Some(9 * MS));
        assert_eq!(sessions.step_ended(0, StepOutcome::Done, 3 * MS), After::GoesOn);
        assert_eq!((sessions.next_due(Some(9 * MS)), sessions.next_due(None)), (Some(8 * MS), Some(8 * MS)));
        assert_eq!(sessions.step_ended(1, StepOutcome::Failed, 4 * MS), After::Ended(end(Some(0))));
        assert!(sessions.take_step(7 * MS, &mut selector).is_none());
        let second = sessions.take_step(8 * MS, &mut selector).expect("it is due");
        assert_eq!((second.choice, number(&second), &second.numbers[..]), (1, 0, &[7][..]), "the same value");
        assert!(sessions.is_idle());
        // The step that failed is one after which the session goes on.
        assert_eq!(sessions.step_ended(0, StepOutcome::Failed, 79 * MS), After::GoesOn);
        let third = sessions.take_step(99 * MS, &mut selector).expect("it is due");
        assert_eq!((third.choice, third.step.map(|step| step.is_first)), (2, Some(false)));
        assert_eq!(sessions.step_ended(0, StepOutcome::Done, 99 * MS), After::Ended(end(None)));
        assert_eq!(sessions.free.len(), 3);
    }

    #[test]
    fn steps_due_after_the_end_or_given_up_cut_their_session() {
        let targets = targets();
        let mut selector = Selector::new(&targets, 1, (0, 1), &Assignment::new(&targets, 1, 0, 1));
        let mut sessions = Sessions::new(&targets.sessions, (targets.steps(), &selector), 100 * MS, (1, 0));
        for _ in 0..2 {
            let first = selector.choose();
            sessions.begin(0, first, &mut selector);
        }
        assert_eq!(sessions.step_ended(0, StepOutcome::Done, 95 * MS), After::Cut);
        assert_eq!(sessions.step_ended(1, StepOutcome::Done, 10 * MS), After::GoesOn);
        assert_eq!(sessions.give_up(15 * MS), []);
        assert_eq!(sessions.give_up(16 * MS), [(15 * MS, 1)]);
        assert_eq!((sessions.next_due(None), sessions.free.len()), (None, 2));
    }
}
