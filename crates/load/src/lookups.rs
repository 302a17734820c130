//! Addresses of a run's servers. Names are looked up before it, and on request again and again meanwhile: connections that are opened
//! then go to the addresses found last. A name that cannot be looked up keeps its last ones.

use crate::source::Sources;
use crate::target::{Address, Target, in_families, spread};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Looks up the addresses of a host and port.
pub type LookUp = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// Repeated look-ups of the servers' names.
#[derive(Clone, Copy, Debug)]
pub struct Lookups {
    /// Time between them.
    pub every: Duration,
    /// The resolver.
    pub look_up: LookUp,
}

impl Lookups {
    /// Look-ups by the system's resolver.
    #[must_use]
    pub fn by_system(every: Duration) -> Self {
        Self { every, look_up: |endpoint| Ok(endpoint.to_socket_addrs()?.collect()) }
    }
}

/// The addresses of all servers as found last, shared by the threads of a run.
pub(crate) struct FoundAddresses {
    /// Number of changes.
    generation: AtomicU64,
    found: Mutex<Found>,
    is_looked_up_again: bool,
}

#[derive(Default)]
struct Found {
    lists: Vec<Arc<[Address]>>,
    /// Failed look-ups of each host and port.
    failed: BTreeMap<String, u64>,
}

impl FoundAddresses {
    /// The addresses of a run. With look-ups a thread looks names up again until the last reference is gone; `sources`: the local
    /// addresses from which they must be reachable.
    pub(crate) fn new(
        servers: &[Target],
        lookups: Option<Lookups>,
        sources: Option<Sources>,
    ) -> io::Result<Arc<Self>> {
        let lists = servers.iter().map(|server| server.addresses.as_slice().into()).collect();
        let this = Arc::new(Self {
            generation: AtomicU64::new(0),
            found: Mutex::new(Found { lists, failed: BTreeMap::new() }),
            is_looked_up_again: lookups.is_some(),
        });
        if let Some(Lookups { every, look_up }) = lookups {
            let (names, run) = (names(servers), Arc::downgrade(&this));
            // Not joined: a resolver may take longer to give up than the rest of the run.
            thread::Builder::new().name("lookups".to_owned()).spawn(move || {
                loop {
                    thread::sleep(every);
                    for (endpoint, servers) in &names {
                        let found = look_up(endpoint);
                        let Some(run) = run.upgrade() else { return };
                        run.looked_up(endpoint, servers, found, sources.as_ref());
                    }
                }
            })?;
        }
        Ok(this)
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the result of a look-up for these servers.
    fn looked_up(
        &self,
        endpoint: &str,
        servers: &[usize],
        found: io::Result<Vec<SocketAddr>>,
        sources: Option<&Sources>,
    ) {
        let reachable = |address: &SocketAddr| sources.is_none_or(|from| from.is_ipv4() == address.is_ipv4());
        let found = in_families(found.unwrap_or_default().into_iter().filter(reachable).collect());
        let mut known = self.lock();
        if found.is_empty() {
            *known.failed.entry(endpoint.to_owned()).or_default() += 1;
            return;
        }
        let list: Arc<[Address]> = found.into_iter().map(Address::from).collect();
        // Resolvers often give the same addresses in another order, which is no news.
        let is_known = |server: &usize| {
            let known = &known.lists[*server];
            known.len() == list.len() && known.iter().all(|address| list.contains(address))
        };
        if servers.iter().all(is_known) {
            return;
        }
        servers.iter().for_each(|server| known.lists[*server] = Arc::clone(&list));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The host and port whose look-ups failed most often, and how often; `None` if none failed.
    pub(crate) fn most_failed(&self) -> Option<(String, u64)> {
        let known = self.lock();
        let most = known.failed.iter().max_by_key(|(_, failures)| **failures);
        most.map(|(endpoint, failures)| (endpoint.clone(), *failures))
    }
}

/// Hosts that are names, with the servers that they are for.
fn names(servers: &[Target]) -> BTreeMap<String, Vec<usize>> {
    let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, server) in servers.iter().enumerate().filter(|(_, server)| server.is_named()) {
        names.entry(server.authority.clone()).or_default().push(index);
    }
    names
}

impl Target {
    /// True if its host is a name, whose addresses may change.
    #[must_use]
    pub fn is_named(&self) -> bool {
        let is_ip = self.authority.parse::<SocketAddr>().is_ok();
        !is_ip && self.addresses.iter().all(|address| address.ip().is_some())
    }
}

/// The addresses of all servers as one thread knows them.
pub(crate) struct Addresses<'a> {
    latest: &'a FoundAddresses,
    generation: u64,
    lists: Vec<Arc<[Address]>>,
}

impl<'a> Addresses<'a> {
    pub(crate) fn new(latest: &'a FoundAddresses) -> Self {
        let lists = latest.lock().lists.clone();
        Self { latest, generation: 0, lists }
    }

    /// Takes over what was found since.
    pub(crate) fn refresh(&mut self) {
        let generation = self.latest.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.generation = generation;
            self.lists.clone_from(&self.latest.lock().lists);
        }
    }

    /// The addresses of a server; not empty.
    pub(crate) fn of(&self, server: usize) -> &[Address] {
        &self.lists[server]
    }

    /// Number of a server's addresses that connections are spread over: see [`Target::spread`].
    pub(crate) fn spread(&self, server: usize) -> usize {
        spread(self.of(server))
    }

    /// True if connections to the server are counted by address.
    pub(crate) fn are_counted(&self, server: usize) -> bool {
        self.latest.is_looked_up_again || self.spread(server) > 1
    }

    /// True if the addresses may change.
    pub(crate) fn may_change(&self) -> bool {
        self.latest.is_looked_up_again
    }
}
