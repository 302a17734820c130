//! Writes reports of generated runs into a directory, to look at: `cargo run -p meshmeter-report --example
//! preview -- DIR`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use results::Mode;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, run) in [
        ("usual", fixture::run(fixture::usual_trials())),
        ("many-cells", fixture::run(fixture::many_trials())),
        ("one-mode", fixture::run(fixture::trials(&[Mode::Sidecar], &[1000.0], 3))),
        ("nothing-valid", fixture::run(fixture::invalid_trials())),
        ("stalled", fixture::run(fixture::stalled_trials())),
        ("saturated", fixture::run(fixture::saturated_trials())),
        ("five-drivers", fixture::run(fixture::tenant_trials(5))),
        ("fifty-drivers", fixture::run(fixture::tenant_trials(50))),
        ("five-namespaces", fixture::run(fixture::tiered::tiered_trials(5))),
        ("fifty-namespaces", fixture::run(fixture::tiered::tiered_trials(50))),
        ("fleets", fixture::fleets::fleet_run("proxies", &["100", "200", "400"])),
        ("fleets-by-kind", fixture::fleets::fleet_run("kind", &["sidecar", "gateway"])),
        (
            "fleet-never",
            fixture::fleets::with_a_proxy_never_reached(fixture::fleets::fleet_run("proxies", &["100"])),
        ),
        ("no-trials", fixture::run(vec![])),
    ] {
        std::fs::write(folder.join(format!("{name}.html")), report::html::render(&run))?;
        let summary = serde_json::to_vec_pretty(&run.summary).map_err(std::io::Error::other)?;
        std::fs::write(folder.join(format!("{name}.json")), summary)?;
        for width in [80, 120] {
            let options = report::terminal::Options { width, colours: true };
            let text = report::terminal::render(&run.summary, options);
            std::fs::write(folder.join(format!("{name}-{width}.txt")), text)?;
        }
    }
    Ok(())
}
