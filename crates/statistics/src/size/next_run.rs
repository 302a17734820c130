//! The run that finds what a replica carries, if the given runs did not reach it.

use super::groups::{Group, Sized, is_gateway};
use experiment::LoadLevels;
use results::{BindingResource, shell_word};

/// Numbers of clients of a closed loop that reach most capacities.
const CLIENTS: [usize; 3] = [8, 32, 128];
/// Steps from the most clients of a run.
const MORE_CLIENTS: [usize; 3] = [2, 4, 8];
/// CPU limit of a replica that most machines can fill.
const SMALL_CPU: &str = "500m";

/// Command that measures what a replica carries: a closed loop with more clients, with more threads if the generator was full, and
/// with a CPU limit if the machine was. `None` if only a larger machine would show more.
pub(super) fn command(
    group: &Group<'_>,
    sized: &Sized<'_>,
    binds: BindingResource,
    directory: &str,
) -> Option<String> {
    let load = &sized.experiment.load;
    let mut settings = vec![format!("modes=[{}]", group.mode)];
    match &load.levels {
        LoadLevels::Fleet => return None,
        LoadLevels::Open { .. } => {
            let none = ["load.rate=null", "load.arrival=null", "load.connections=null"];
            settings.extend(none.map(str::to_owned));
            settings.push(clients(CLIENTS));
        }
        LoadLevels::Closed { clients: measured } if binds == BindingResource::Load => {
            let most = measured.iter().copied().max().unwrap_or(1);
            settings.push("load.connections=null".to_owned());
            settings.push(clients(MORE_CLIENTS.map(|times| times * most)));
        }
        LoadLevels::Closed { .. } => {}
    }
    match binds {
        BindingResource::Generator => settings.push(format!("load.threads={}", 2 * load.threads)),
        BindingResource::Machine => settings.push(format!("{}={SMALL_CPU}", cpu_limit(group, sized)?)),
        _ => {}
    }
    let file = format!("{}/experiment.yaml", directory.trim_end_matches('/'));
    let program = ["meshmeter", "run"].map(str::to_owned);
    let settings = settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]);
    let words = program.into_iter().chain([file]).chain(settings);
    Some(words.map(|word| shell_word(&word)).collect::<Vec<_>>().join(" "))
}

fn clients(numbers: [usize; 3]) -> String {
    format!("load.clients=[{}]", numbers.map(|number| number.to_string()).join(","))
}

/// Key of a proxy's CPU limit; `None` if it has one already, or cannot have one.
fn cpu_limit(group: &Group<'_>, sized: &Sized<'_>) -> Option<&'static str> {
    let key = if is_gateway(&group.component) { "gateway.cpu" } else { "proxy.cpu" };
    let can_have_one = sized.limits.cpu_cores.is_none() && !group.component.ends_with("ztunnel");
    can_have_one.then_some(key)
}
