//! Where CPU time went: a flame graph per component, and the functions with most time or change.

use super::context::Chart;
use crate::comparison::page::{Table, columns, plain_row};
use crate::format;
use crate::html::charts::flames::{self, Side};
use crate::html::charts::{WIDE, WIDTH};
use crate::profile::{OwnTime, Profile};
use serde::Serialize;

/// Components that are drawn, those with the most CPU, and functions in the table.
const MAX_CHARTS: usize = 24;
const MAX_FUNCTIONS: usize = 20;

/// Content of `profiles.html`.
#[derive(Debug, Serialize)]
pub struct ProfileSection {
    is_compared: bool,
    functions: Table,
    charts: Vec<Chart>,
    /// Stacks of the base that the head does not have.
    vanished: Vec<Chart>,
    left_out: usize,
}

/// `None` without profiles.
pub fn profiles(profiles: &[Profile]) -> Option<ProfileSection> {
    let is_compared = profiles.first()?.is_compared;
    let mut shown: Vec<&Profile> = profiles.iter().collect();
    let most = |profile: &Profile| profile.cores().into_iter().fold(0.0, f64::max);
    shown.sort_by(|one, other| most(other).total_cmp(&most(one)));
    let left_out = shown.len().saturating_sub(MAX_CHARTS);
    shown.truncate(MAX_CHARTS);
    let drawn = |side, name: &'static str| {
        shown
            .iter()
            .enumerate()
            .filter_map(move |(number, profile)| chart(profile, side, &format!("{name}-{number}")))
    };
    let vanished = drawn(Side::Vanished, "vanished").filter(|_| is_compared).collect();
    Some(ProfileSection {
        is_compared,
        functions: functions(&shown, is_compared),
        charts: drawn(Side::Head, "flames").collect(),
        vanished,
        left_out,
    })
}

fn chart(profile: &Profile, side: Side, id: &str) -> Option<Chart> {
    let Profile { component, place, .. } = profile;
    let [base, head] = profile.cores().map(format::cores);
    let caption = match profile.is_compared {
        true => format!("{component}, {place}: base {base}, head {head}"),
        false => format!("{component}, {place}: {head}"),
    };
    let draw = |width, id: &str| flames::chart(id, &caption, profile, side, width);
    let (svg, wide) = draw(WIDTH, id).zip(draw(WIDE, &format!("{id}-wide")))?;
    Some(Chart { caption, svg, wide })
}

fn functions(profiles: &[&Profile], is_compared: bool) -> Table {
    let of_profile = |profile: &&Profile| {
        let name = profile.component.clone();
        profile
            .own_times()
            .into_iter()
            .take(MAX_FUNCTIONS)
            .map(move |time| (name.clone(), time))
            .collect::<Vec<_>>()
    };
    let mut times: Vec<(String, OwnTime)> = profiles.iter().flat_map(of_profile).collect();
    times.sort_by(|one, other| other.1.change().abs().total_cmp(&one.1.change().abs()));
    times.truncate(MAX_FUNCTIONS);
    let caption = match is_compared {
        true => "Functions whose own time changed most.",
        false => "Functions with the most time of their own.",
    };
    let row = |(component, time): (String, OwnTime)| {
        let [base, head] = time.cores.map(format::cores_number);
        let sign = if time.change() > 0.0 { "+" } else { "" };
        let change = format!("{sign}{}", format::cores_number(time.change()));
        (component, time.function, base, head, change)
    };
    let rows = times.into_iter().map(row);
    match is_compared {
        true => Table {
            caption: caption.to_owned(),
            columns: columns([
                ("Function", "prose"),
                ("Component", ""),
                ("Base, cores", "n"),
                ("Head, cores", "n"),
                ("Change", "n"),
            ]),
            rows: rows
                .map(|(component, function, base, head, change)| {
                    plain_row([function, component, base, head, change])
                })
                .collect(),
        },
        false => Table {
            caption: caption.to_owned(),
            columns: columns([("Function", "prose"), ("Component", ""), ("Cores", "n")]),
            rows: rows
                .map(|(component, function, _, head, _)| plain_row([function, component, head]))
                .collect(),
        },
    }
}
