//! Requests outside the measured window that prove that a filter acts. Each differs in one thing from the
//! requests of the load, which pass, so only that difference can cause its rejection.

use super::{CREDENTIAL_HEADER, Filter};

pub const LOCAL_LIMIT_HEADER: &str = "x-local-limit-probe";
pub const GLOBAL_LIMIT_HEADER: &str = "x-global-limit-probe";
pub const WASM_HEADER: &str = "x-wasm-probe";
/// Header that carries tokens.
pub const TOKEN_HEADER: &str = "authorization";

const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
const TOO_MANY_REQUESTS: u16 = 429;
/// Enough requests to exceed a limit of one per hour: an hour may end between two of them, not between three.
const OVER_LIMIT: usize = 3;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Probe {
    /// Such as `an attack by script`.
    pub what: &'static str,
    pub change: Change,
    pub requests: usize,
    pub expected: Expected,
}

/// The difference from a request of the load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    Query(&'static str),
    /// Adds this header with the value 1.
    WithHeader(&'static str),
    WithoutHeader(&'static str),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expected {
    /// At least one response has one of these statuses.
    Refused(&'static [u16]),
    /// No response has the status of a rejection.
    Passed,
}

impl Probe {
    fn refused(what: &'static str, change: Change, statuses: &'static [u16]) -> Self {
        Self { what, change, requests: 1, expected: Expected::Refused(statuses) }
    }

    fn over_limit(header: &'static str) -> Self {
        let change = Change::WithHeader(header);
        Self { requests: OVER_LIMIT, ..Self::refused("requests over a limit", change, &[TOO_MANY_REQUESTS]) }
    }

    pub fn is_met_by(&self, statuses: &[u16]) -> bool {
        let refusals = [UNAUTHORIZED, FORBIDDEN, TOO_MANY_REQUESTS];
        match self.expected {
            Expected::Refused(expected) => statuses.iter().any(|status| expected.contains(status)),
            Expected::Passed => {
                !statuses.is_empty() && !statuses.iter().any(|status| refusals.contains(status))
            }
        }
    }

    /// Request path of the probe.
    pub fn path(&self, path: &str) -> String {
        match self.change {
            Change::Query(query) => format!("{path}?{query}"),
            Change::WithHeader(_) | Change::WithoutHeader(_) => path.to_owned(),
        }
    }

    /// Request headers of the probe, derived from those of the load, such as `x-api-key: secret`.
    pub fn headers(&self, of_load: &[String]) -> Vec<String> {
        let mut headers = of_load.to_vec();
        match self.change {
            Change::Query(_) => {}
            Change::WithHeader(name) => headers.push(format!("{name}: 1")),
            Change::WithoutHeader(name) => {
                headers.retain(|header| {
                    !header.split(':').next().is_some_and(|known| known.eq_ignore_ascii_case(name))
                });
            }
        }
        headers
    }
}

impl Filter {
    pub fn probes(self) -> Vec<Probe> {
        match self {
            Self::Jwt => {
                let change = Change::WithoutHeader(TOKEN_HEADER);
                vec![Probe::refused("a request without a token", change, &[UNAUTHORIZED, FORBIDDEN])]
            }
            Self::ExtAuthzGrpc | Self::ExtAuthzHttp => {
                let change = Change::WithoutHeader(CREDENTIAL_HEADER);
                vec![Probe::refused("an unauthorized request", change, &[FORBIDDEN])]
            }
            Self::Wasm => {
                let change = Change::WithHeader(WASM_HEADER);
                vec![Probe::refused("a request that its module refuses", change, &[FORBIDDEN])]
            }
            Self::Waf => {
                let attack = |what, query| Probe::refused(what, Change::Query(query), &[FORBIDDEN]);
                let clean = attack("a clean query", "q=blue+shoes");
                vec![
                    attack("an attack by script", "q=%3Cscript%3Ealert(1)%3C/script%3E"),
                    attack("an attack by SQL", "id=1%27%20OR%20%271%27=%271"),
                    Probe { expected: Expected::Passed, ..clean },
                ]
            }
            Self::LocalRateLimit => vec![Probe::over_limit(LOCAL_LIMIT_HEADER)],
            Self::GlobalRateLimit => vec![Probe::over_limit(GLOBAL_LIMIT_HEADER)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_differs_from_load_in_one_thing() {
        let of_load = ["Authorization: Bearer x".to_owned(), "x-api-key: y".to_owned()];
        let [without_token] = &Filter::Jwt.probes()[..] else { panic!("one probe") };
        assert_eq!(without_token.headers(&of_load), ["x-api-key: y"]);
        let [over_limit] = &Filter::LocalRateLimit.probes()[..] else { panic!("one probe") };
        let headers = over_limit.headers(&of_load);
        assert_eq!(headers, ["Authorization: Bearer x", "x-api-key: y", "x-local-limit-probe: 1"]);
        assert_eq!(Filter::Waf.probes()[2].path("/get/1"), "/get/1?q=blue+shoes");
    }

    #[test]
    fn only_status_shows_refusal() {
        let [over_limit] = &Filter::GlobalRateLimit.probes()[..] else { panic!("one probe") };
        assert!(over_limit.is_met_by(&[200, 429, 429]) && !over_limit.is_met_by(&[200, 200, 503]));
        let [script, _, clean] = &Filter::Waf.probes()[..] else { panic!("three probes") };
        assert!(script.is_met_by(&[403]) && !script.is_met_by(&[404]) && !script.is_met_by(&[]));
        assert!(clean.is_met_by(&[200]) && !clean.is_met_by(&[403]) && !clean.is_met_by(&[]));
    }
}
