//! From a name to addresses. Asked once per delivery; what it answers is filtered and then used, never asked for again.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

/// Addresses, or why there are none.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Something that knows names.
pub trait Resolver: Send + Sync {
    /// The addresses of a name, best first.
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// At most so many names are looked up at a time: a name server that does not answer holds a thread for each.
const MAX_LOOKUPS: usize = 8;

/// The system's resolver: hosts file, name servers and whatever else it is set up with.
#[derive(Debug)]
pub struct System {
    threads: Arc<Semaphore>,
}

impl Default for System {
    fn default() -> Self {
        Self { threads: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Resolver for System {
    /// A thread of its own, because the call cannot be broken off. On cancel the thread ends by itself when the system gives up; it
    /// holds nothing but its place among those that may run, and no runtime waits for it when the daemon leaves.
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        let threads = Arc::clone(&self.threads);
        let name = name.to_owned();
        Box::pin(async move {
            let place = threads.acquire_owned().await.map_err(io::Error::other)?;
            let (answer, answered) = oneshot::channel();
            std::thread::Builder::new().name("resolve".to_owned()).spawn(move || {
                let found = (name.as_str(), 0).to_socket_addrs();
                // Nobody listens any more if the deadline has passed.
                let _ = answer.send(found.map(|all| all.map(|to: SocketAddr| to.ip()).collect()));
                drop(place);
            })?;
            answered.await.map_err(io::Error::other)?
        })
    }
}
