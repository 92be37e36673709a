//! A webhook receiver that behaves as a test scripts it: a real socket on a port that the system chose.
//!
//! Each connection carries one request and takes the next [`Script`]; the last one is for all that follow. Everything ends when the
//! receiver is dropped, whatever still hangs.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::net::{AddressFamily, SocketType};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::script::{Request, Script};
use crate::wait::wait_for;

/// The names that the certificate of a [`Receiver::tls`] is for.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "receiver.test"];

/// A webhook receiver.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Listener,
    certificate: Vec<u8>,
}

/// What to do with the connection of this number.
type Choose = Arc<dyn Fn(usize) -> Script + Send + Sync>;

fn in_turn(scripts: Vec<Script>) -> Choose {
    Arc::new(move |number| scripts.get(number).or_else(|| scripts.last()).expect("a script").clone())
}

/// What stands behind the port.
#[derive(Debug)]
enum Listener {
    /// A thread that takes connections.
    Taking { socket: TcpListener, thread: Option<JoinHandle<()>> },
    /// A port that is held and on which nobody listens.
    Refusing { _socket: OwnedFd },
    /// A queue that is full, and what fills it: whoever connects hears nothing.
    Full { _socket: OwnedFd, _queue: Vec<OwnedFd> },
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    left: Condvar,
    sent: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    over: bool,
    taken: usize,
    live: HashMap<usize, TcpStream>,
    requests: Vec<Request>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver {
    /// A receiver that plays these, one per connection; the last one goes on.
    #[must_use]
    pub fn new(scripts: impl Into<Vec<Script>>) -> Self {
        Self::start(in_turn(scripts.into()), None, Vec::new())
    }

    /// A receiver that asks for each connection, by its number, what to do with it.
    #[must_use]
    pub fn choosing(choose: impl Fn(usize) -> Script + Send + Sync + 'static) -> Self {
        Self::start(Arc::new(choose), None, Vec::new())
    }

    /// The same behind TLS, with a certificate of its own that nobody knows.
    #[must_use]
    pub fn tls(scripts: impl Into<Vec<Script>>) -> Self {
        let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned)).expect("a certificate");
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the versions of TLS that there are")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .expect("a key that fits");
        Self::start(in_turn(scripts.into()), Some(Arc::new(config)), certificate.to_vec())
    }

    /// A port on which nobody listens, and that nobody else gets.
    #[must_use]
    pub fn refusing() -> Self {
        let (socket, address) = bound();
        Self::idle(address, Listener::Refusing { _socket: socket })
    }

    /// A port that swallows every attempt to connect.
    #[must_use]
    pub fn full() -> Self {
        let (socket, address) = bound();
        rustix::net::listen(&socket, 0).expect("a listener");
        // The queue takes a connection or two; further ones are not answered and stay on their way.
        let queue = (0..4).map(|_| {
            let filler = tcp();
            rustix::io::ioctl_fionbio(&filler, true).expect("a socket that does not block");
            let _ = rustix::net::connect(&filler, &address);
            filler
        });
        let queue: Vec<OwnedFd> = queue.collect();
        // Only then is there no room for another; the kernel comes to it when it does.
        let is_through = |filler: &OwnedFd| rustix::net::getpeername(filler).is_ok();
        wait_for("a full queue", || queue.iter().any(is_through).then_some(()));
        Self::idle(address, Listener::Full { _socket: socket, _queue: queue })
    }

    fn idle(address: SocketAddr, listener: Listener) -> Self {
        Self { address, shared: Arc::default(), listener, certificate: Vec::new() }
    }

    fn start(choose: Choose, tls: Option<Arc<ServerConfig>>, certificate: Vec<u8>) -> Self {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = socket.local_addr().expect("its address");
        let shared = Arc::<Shared>::default();
        let (accepting, listening) = (Arc::clone(&shared), socket.try_clone().expect("a second handle"));
        let thread = std::thread::spawn(move || {
            // Shutting the listener down ends this.
            while let Ok((stream, _)) = listening.accept() {
                serve(stream, &choose, tls.clone(), &accepting);
            }
        });
        let listener = Listener::Taking { socket, thread: Some(thread) };
        Self { address, shared, listener, certificate }
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// The certificate, as DER; empty without TLS.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// Connections taken so far.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.shared.state().taken
    }

    /// Bytes of endless answers sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// The requests so far, in the order in which they were whole.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Looks at the requests so far.
    pub fn look<T>(&self, at: impl FnOnce(&[Request]) -> T) -> T {
        at(&self.shared.state().requests)
    }

    /// Waits for so many requests and answers all that there are.
    #[must_use]
    pub fn wait_for(&self, count: usize) -> Vec<Request> {
        wait_for(&format!("{count} requests"), || {
            let requests = self.requests();
            (requests.len() >= count).then_some(requests)
        })
    }

    /// Waits until no connection is open.
    pub fn wait_idle(&self) {
        wait_for("the end of every connection", || self.shared.state().live.is_empty().then_some(()));
    }
}

/// A thread per connection, which ends with it; [`Receiver::drop`] closes those that are left and waits.
fn serve(stream: TcpStream, choose: &Choose, tls: Option<Arc<ServerConfig>>, shared: &Arc<Shared>) {
    let mut state = shared.state();
    if state.over {
        return;
    }
    let number = state.taken;
    state.taken += 1;
    state.live.insert(number, stream.try_clone().expect("a second handle"));
    drop(state);
    let (choose, shared) = (Arc::clone(choose), Arc::clone(shared));
    std::thread::spawn(move || {
        let script = choose(number);
        let record = |request| shared.state().requests.push(request);
        // A connection that breaks is part of many tests.
        let _ = play(&script, stream, tls, &shared.sent, record);
        let mut state = shared.state();
        state.live.remove(&number);
        shared.left.notify_all();
    });
}

fn play(
    script: &Script,
    mut stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    sent: &AtomicU64,
    record: impl FnOnce(Request),
) -> io::Result<()> {
    match tls {
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(io::Error::other)?;
            let mut encrypted = StreamOwned::new(connection, stream.try_clone()?);
            script.play(&mut encrypted, sent, record)?;
            if !script.hangs() {
                encrypted.conn.send_close_notify();
                encrypted.conn.write_tls(&mut encrypted.sock)?;
            }
        }
        None => script.play(&mut stream, sent, record)?,
    }
    if script.hangs() {
        io::copy(&mut stream, &mut io::sink())?;
    }
    Ok(())
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.over = true;
        for stream in state.live.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        if let Listener::Taking { socket, thread } = &mut self.listener {
            let _ = rustix::net::shutdown(socket.as_fd(), rustix::net::Shutdown::Both);
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
        let all_left = self.shared.left.wait_while(self.shared.state(), |state| !state.live.is_empty());
        drop(all_left.unwrap_or_else(PoisonError::into_inner));
    }
}

fn tcp() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, rustix::net::SocketFlags::CLOEXEC, None)
        .expect("a socket")
}

/// A socket with a port that does not listen.
fn bound() -> (OwnedFd, SocketAddr) {
    let socket = tcp();
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    let name = rustix::net::getsockname(&socket).expect("its address");
    (socket, SocketAddr::try_from(name).expect("an address of the internet"))
}
