//! `emojivoto`: Buoyant's voting app (github.com/BuoyantIO/emojivoto): `web` over HTTP, `emoji` and `voting`
//! over gRPC behind it, and a bot that votes.
//!
//! Paths, calls and sizes follow the app's handlers (`emojivoto-web/web/web.go`): a vote looks up the emoji
//! and then counts it; the list is one call; the leaderboard looks up each emoji that it shows. Sizes assume
//! 100 emoji and a leaderboard of ten. The vote for the doughnut, which the app fails on purpose, is left
//! out.

use super::draft::{Draft, call_endpoint, endpoint};
use super::parameter::CLIENT_IN_MESH;
use super::shape::Shape;
use crate::protocol::Protocol;

/// Emoji on the leaderboard.
const LEADERS: usize = 10;

const MIB: u64 = 1 << 20;

pub(super) static EMOJIVOTO: Shape = Shape {
    name: "emojivoto",
    summary: "a voting app: web over HTTP, emoji and voting over gRPC behind it",
    parameters: &[CLIENT_IN_MESH],
    is_plain: false,
    make: |settings| {
        let mut draft = Draft::new("emojivoto", settings);
        let (web, emoji, voting) = (0, 1, 2);
        let find = || call_endpoint(emoji, "/FindByShortcode", 16);
        let mut leaderboard = vec![call_endpoint(voting, "/Results", 0)];
        leaderboard.extend((0..LEADERS).map(|_| find()));
        draft.service(
            "web",
            Protocol::Http1,
            vec![
                endpoint("/", Vec::new(), 560),
                endpoint("/api/list", vec![call_endpoint(emoji, "/ListAll", 0)], 5_600),
                endpoint("/api/vote", vec![find(), call_endpoint(voting, "/Vote", 0)], 0),
                endpoint("/api/leaderboard", leaderboard, 700),
            ],
        );
        let methods = |methods: &[(&str, u32)]| {
            methods.iter().map(|(path, bytes)| endpoint(path, Vec::new(), *bytes)).collect()
        };
        draft.service("emoji", Protocol::Grpc, methods(&[("/ListAll", 2_600), ("/FindByShortcode", 28)]));
        draft.service("voting", Protocol::Grpc, methods(&[("/Vote", 0), ("/Results", 240)]));
        for service in draft.services() {
            draft.reserve(service, 0.1, 20 * MIB);
        }
        let bot = draft.driver(web, "/api/vote");
        draft.reserve(bot, 0.01, 20 * MIB);
        Ok(draft.done())
    },
};
