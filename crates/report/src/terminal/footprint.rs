//! Configuration and memory of proxies on a terminal: one line about memory and one about configuration per
//! proxy.

use super::style::{Options, bold, plain, wrap};
use crate::footprint::{FootprintRow, FootprintTable, count_text};
use crate::format::{self, SizeUnit};
use results::{ConfigurationCounts, Estimate, Mode};

/// Kinds that are shown on the terminal; the report shows all.
const NAMED: [&str; 7] =
    ["clusters", "listeners", "routes", "endpoints", "services", "workloads", "policies"];

/// The section, starting with its heading.
pub(super) fn lines(table: &FootprintTable, options: Options) -> Vec<String> {
    let mut lines = vec![bold("Proxy configuration and memory", options)];
    let names = table.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(24);
    let mut last: Option<(Mode, &str)> = None;
    for row in &table.rows {
        let place = (row.mode, row.load.as_str());
        if last != Some(place) {
            lines.push(format!("{} at {}", row.mode, plain(&row.load)));
            last = Some(place);
        }
        let mut name = plain(&row.name);
        for line in facts(table, row)
            .iter()
            .flat_map(|fact| wrap(&format::unbroken(fact), options.width.saturating_sub(names + 4)))
        {
            lines.push(format!("  {name:<names$}  {line}"));
            name.clear();
        }
    }
    if table.rows.iter().any(|row| row.is_of_several) {
        let text = "Those that are alike together: medians over them, counts from least to greatest. All of them: \
                    `meshmeter report DIR --csv FILE`";
        lines.extend(wrap(text, options.width));
    }
    for warning in &table.warnings {
        lines.extend(wrap(&plain(warning), options.width));
    }
    lines.push(String::new());
    lines
}

fn facts(table: &FootprintTable, row: &FootprintRow) -> Vec<String> {
    let memory = |memory| sized(memory, table.memory_unit);
    let anonymous =
        row.under.anonymous_bytes.map(|bytes| format!("; {} of it anonymous", memory(Some(bytes))));
    let mut facts = vec![format!(
        "memory {} before load, {} under, {} after{}",
        memory(row.before.all_bytes),
        memory(row.under.all_bytes),
        memory(row.after.all_bytes),
        anonymous.unwrap_or_default()
    )];
    if let Some(size) = &row.size {
        let counts = table.kinds.iter().zip(&row.counts).filter(|(kind, _)| NAMED.contains(kind));
        // No line break between a number and its noun.
        let counts: Vec<String> = counts
            .filter_map(|(kind, count)| {
                let count = count.as_ref()?;
                let noun = ConfigurationCounts::noun(kind, *count.end()).replace(' ', "\u{a0}");
                Some(format!("{}\u{a0}{noun}", count_text(count)))
            })
            .collect();
        let size = format::with_unit(&size.estimate, table.size_unit.symbol());
        facts.push(format!("configuration {size}: {}", counts.join(", ")));
    }
    if let Some(time) = &row.configured_in {
        facts.push(format!("propagated after {}", time.text_with_unit(table.time_unit.symbol())));
    }
    if let Some(time) = &row.further_domain_in {
        let time = time.text_with_unit(table.time_unit.symbol());
        facts.push(format!("a further domain propagated after {time}"));
    }
    facts
}

fn sized(size: Option<Estimate>, unit: SizeUnit) -> String {
    size.map_or_else(
        || format::ABSENT.to_owned(),
        |size| format::with_unit(&format::digits(size.estimate / unit.bytes()), unit.symbol()),
    )
}
