//! A registry with four releases of Istio whose differences are known, for scripts/known-differences.sh. Each
//! has the installed components with one of the proxies that the script has written into the given directory,
//! and the ztunnel of MESHMETER_ZTUNNEL if set. Prints the hub, and serves until its standard input ends.

#[path = "../tests/release_images/mod.rs"]
mod release_images;

use release_images::push_release;
use std::io::{Read as _, stdin};
use std::path::PathBuf;
use test_support::{Registry, RegistryOptions};

#[allow(clippy::print_stdout, reason = "whoever starts it reads the address")]
fn main() {
    let proxies = PathBuf::from(std::env::args_os().nth(1).expect("the directory of the proxies"));
    let ztunnel = std::env::var_os("MESHMETER_ZTUNNEL").map(PathBuf::from);
    let registry = Registry::start(RegistryOptions::default());
    for name in ["base", "burning", "larger", "same"] {
        push_release(&registry, &format!("1.99.0-{name}"), &proxies.join(name), ztunnel.as_deref(), 0);
    }
    println!("{}/istio", registry.address());
    stdin().read_to_end(&mut Vec::new()).expect("an input that ends");
}
