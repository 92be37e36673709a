//! The loopback listener: the same routes over TCP, for callers that show the token. Off until somebody turns it on.
//!
//! One service owns its sockets and connections; handles send it orders. It binds 127.0.0.1 and `[::1]`, and elsewhere only where the
//! configuration says `dangerously_bind`. A port that was drawn or asked for is remembered in the home, so that the next daemon has the same
//! address; one that the configuration names holds for as long as it does, and is not remembered. A port that another program has is waited
//! for, never exchanged, since whoever took it could be given our callers' tokens under a new address just as well. Keeps P11: [`Gate`]
//! judges every request.
//!
//! Whether it is open: the configuration or somebody's order says so, and whoever turns it off outweighs the configuration until that changes
//! or somebody turns it on. That is remembered in the home, with a digest of what it outweighs: no crash opens what was turned off.
//!
//! What can crash where: nothing here is worth keeping but the order, the port and the token, and both files are replaced whole. On cancel (the daemon
//! leaves) it takes no more connections, and those that are there end as those of the socket do.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use homing_api::{Code, ListenerInfo, PageAnswer, Problem};
use homing_deliver::Transports;
use homing_engine::Engine;
use homing_engine::config;
use homing_sys::boot;
use homing_sys::confine::Confinement;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::auth::request_auth::{Counts, Gate, Keys, LOOKUPS};
use crate::auth::signin::neighbour::{self, Neighbour};
use crate::auth::signin::{self, Caller, Codes, GivenCookies};
use crate::auth::token::{self, Token};
use crate::http::refusal::Refusal;
use crate::net::connection::{self, Admission, is_shortage};
use crate::net::connection_limits::{Holder, Limits, Places};
use crate::net::listener_state::{Remembered, digest};

/// Connections served at once, a quarter of them at most those of other users and other machines.
/// Each that says nothing is closed after a while.
const MOST: usize = 256;

/// Before accepting again when the system has no descriptor or memory left.
const BREATH: Duration = Duration::from_millis(100);

/// Random ports that are tried until one is free for both addresses.
const DRAWS: usize = 32;

/// What the service can be asked for.
enum Order {
    On { port: Option<u16>, answer: oneshot::Sender<Result<ListenerInfo, Refusal>> },
    Off { answer: oneshot::Sender<Result<ListenerInfo, Refusal>> },
    Look { answer: oneshot::Sender<Result<ListenerInfo, Refusal>> },
    Rotate { answer: oneshot::Sender<Result<ListenerInfo, Refusal>> },
}

/// How the service is asked. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Listener {
    orders: mpsc::Sender<Order>,
    codes: Arc<Codes>,
}

impl Listener {
    async fn ask(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<ListenerInfo, Refusal>>) -> Order,
    ) -> Result<ListenerInfo, Refusal> {
        let gone = || Refusal::new(Code::DaemonUnreachable, "the daemon is leaving");
        let (answer, answered) = oneshot::channel();
        self.orders.send(order(answer)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Turns it on, at this port if one is named; the one it has, or had, otherwise.
    pub(crate) async fn on(&self, port: Option<u16>) -> Result<ListenerInfo, Refusal> {
        self.ask(|answer| Order::On { port, answer }).await
    }

    /// Turns it off; its connections are cut.
    pub(crate) async fn off(&self) -> Result<ListenerInfo, Refusal> {
        self.ask(|answer| Order::Off { answer }).await
    }

    /// How it is.
    pub(crate) async fn info(&self) -> Result<ListenerInfo, Refusal> {
        self.ask(|answer| Order::Look { answer }).await
    }

    /// Turns it on, and makes an address by which a browser is signed in, once and soon.
    pub(crate) async fn invite(&self) -> Result<PageAnswer, Refusal> {
        let port = self
            .on(None)
            .await?
            .port
            .ok_or_else(|| Refusal::new(Code::ListenerFailed, "the listener has no address"))?;
        let code = self
            .codes
            .issue()
            .ok_or_else(|| Refusal::new(Code::Internal, "the system has no randomness to give"))?;
        let valid_ms = u64::try_from(signin::VALID.as_millis()).unwrap_or(u64::MAX);
        Ok(PageAnswer { url: format!("http://127.0.0.1:{port}{}?code={code}", signin::PATH), valid_ms })
    }

    /// Makes another token; whoever came in by the old one is cut.
    pub(crate) async fn rotate(&self) -> Result<ListenerInfo, Refusal> {
        self.ask(|answer| Order::Rotate { answer }).await
    }
}

/// The service before it runs.
pub(crate) struct Service {
    engine: Engine,
    /// Nobody is sent to our own port.
    transports: Option<Arc<Transports>>,
    orders: mpsc::Receiver<Order>,
    sockets: Vec<TcpListener>,
    /// The configuration that was looked at last.
    config: config::Listener,
    /// Whether confined callers were served then (`[confined] allow`).
    serves_confined: bool,
    remembered: Remembered,
    token: Option<Arc<Token>>,
    /// What browsers are signed in by.
    codes: Arc<Codes>,
    given: Arc<GivenCookies>,
    counts: Arc<Counts>,
    lookups: Arc<Semaphore>,
    connections: JoinSet<()>,
    places: Places,
    own: Confinement,
    /// Why it is not open, though it should be.
    problem: Option<String>,
}

/// The service of an engine's home, and how it is asked.
pub(crate) fn service(
    engine: Engine,
    transports: Option<Arc<Transports>>,
    own: Confinement,
) -> (Listener, Service) {
    let (sender, orders) = mpsc::channel(16);
    let codes = Arc::new(Codes::default());
    let service = Service {
        config: engine.config().listener.clone(),
        serves_confined: engine.config().confined.allow,
        remembered: Remembered::read(engine.home()),
        given: Arc::new(GivenCookies::of_home(engine.home(), &boot::id().unwrap_or_default())),
        engine,
        transports,
        orders,
        sockets: Vec::new(),
        token: None,
        codes: Arc::clone(&codes),
        counts: Arc::default(),
        lookups: Arc::new(Semaphore::new(LOOKUPS)),
        connections: JoinSet::new(),
        places: Places::default(),
        own,
        problem: None,
    };
    (Listener { orders: sender, codes }, service)
}

impl Service {
    /// Serves until the daemon leaves, and its connections have ended.
    pub(crate) async fn run(mut self, router: TowerToHyperService<Router>, shutdown: CancellationToken) {
        if !self.remembered.is_off(&self.config) {
            self.remember(Remembered { off: None, ..self.remembered.clone() });
        }
        self.open_if_wanted();
        let report = self.engine.background().register(
            "listener",
            "accepts connections on the loopback address",
            None,
        );
        let mut looked = self.engine.looked();
        let told = shutdown.clone();
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                order = self.orders.recv() => match order {
                    Some(order) => self.obey(order),
                    None => break,
                },
                Some(_) = self.connections.join_next() => {}
                Ok(()) = looked.changed() => self.look_again(),
                accepted = accept(&self.sockets), if !self.sockets.is_empty() => {
                    report.run();
                    match accepted {
                        Ok(stream) => self.welcome(stream, &router, &told),
                        Err(error) if is_shortage(&error) => {
                            report.error(&error);
                            sleep(BREATH).await;
                        }
                        // The client gave up before we came to it.
                        Err(error) => tracing::debug!(%error, "a connection was not accepted"),
                    }
                }
            }
        }
        self.sockets.clear();
        while self.connections.join_next().await.is_some() {}
    }

    fn welcome(
        &mut self,
        stream: TcpStream,
        router: &TowerToHyperService<Router>,
        shutdown: &CancellationToken,
    ) {
        let (Some(token), Ok(at), Ok(from)) = (&self.token, stream.local_addr(), stream.peer_addr()) else {
            return;
        };
        let user = neighbour::find(at, from).is_ok_and(|found| found.is_some_and(Neighbour::is_kin));
        let holder = if user { Holder::User } else { Holder::Stranger };
        let crowded = !user && self.places.len() >= MOST / 2;
        let head_time = if crowded { connection::CROWD_TIME } else { connection::STRANGER_TIME };
        // A stranger beyond the share of strangers is closed without a word.
        let Some(place) = self.places.take(holder, Limits::new(MOST)) else { return };
        // Answers are small and awaited.
        let _ = stream.set_nodelay(true);
        let engine = self.engine.clone();
        let keys = Keys {
            token: Arc::clone(token),
            codes: Arc::clone(&self.codes),
            given: Arc::clone(&self.given),
            now: Arc::new(move || engine.now()),
            lookups: Arc::clone(&self.lookups),
        };
        let (engine, own) = (self.engine.clone(), self.own.clone());
        let judge = move |vouched| Caller { engine: &engine, own: &own, ends: (at, from), vouched }.judge();
        let gate = Gate::new(
            (at, from),
            user || neighbour::may_be_elsewhere(at, from),
            keys,
            Arc::clone(&self.counts),
            Arc::new(judge),
        );
        let (number, admission) = (place.number(), Admission::Gated(gate, head_time));
        let serving = connection::serve(stream, admission, router.clone(), shutdown.clone(), None, place);
        let abort = self.connections.spawn(serving);
        self.places.set_abort(number, abort);
    }

    fn obey(&mut self, order: Order) {
        let (answer, result) = match order {
            Order::On { port, answer } => (answer, self.turn_on(port)),
            Order::Off { answer } => {
                self.close();
                let off = Some(digest(&self.config));
                self.remember(Remembered { on: false, off, ..self.remembered.clone() });
                (answer, Ok(()))
            }
            Order::Look { answer } => (answer, Ok(())),
            Order::Rotate { answer } => (answer, self.rotate()),
        };
        // Whoever asked may have gone.
        let _ = answer.send(result.map(|()| self.info()));
    }

    /// Whether it should be open, as far as is known.
    fn is_wanted(&self) -> bool {
        self.remembered.on || (self.config.enabled && !self.remembered.is_off(&self.config))
    }

    fn open_if_wanted(&mut self) {
        if self.is_wanted()
            && self.sockets.is_empty()
            && let Err(problem) = self.open(self.wanted_port())
        {
            let why = problem.detail;
            if self.problem.as_ref() != Some(&why) {
                tracing::error!(why, "the listener cannot be opened; it is tried again");
            }
            self.problem = Some(why);
        }
    }

    /// The port to have: the configured one, else the one that it had by itself, else any.
    fn wanted_port(&self) -> u16 {
        if self.config.port == 0 { self.remembered.port.unwrap_or(0) } else { self.config.port }
    }

    /// The configuration may be another, and a port may have become free.
    fn look_again(&mut self) {
        let all = self.engine.config();
        // A caller is judged once for a connection: one that is served on has to come again.
        if self.serves_confined && !all.confined.allow {
            self.connections.abort_all();
        }
        self.serves_confined = all.confined.allow;
        let config = all.listener.clone();
        if config != self.config {
            self.config = config;
            // Should it be as it was one day, that is a new word of whoever writes it.
            self.remember(Remembered { off: None, ..self.remembered.clone() });
            self.close();
        }
        self.open_if_wanted();
    }

    fn turn_on(&mut self, port: Option<u16>) -> Result<(), Refusal> {
        if let Some(port) = port
            && self.config.port != 0
            && port != self.config.port
        {
            return Err(Refusal::invalid(format!(
                "`port` is {port}, and `[listener] port` in config.toml says {}: leave `port` out, or change it there",
                self.config.port
            )));
        }
        let port = port.unwrap_or_else(|| self.port().unwrap_or_else(|| self.wanted_port()));
        if self.sockets.is_empty() || self.port() != Some(port) {
            self.open(port).map_err(|problem| Refusal::from(*problem))?;
        }
        self.remember(Remembered { on: true, off: None, ..self.remembered.clone() });
        Ok(())
    }

    /// Opens it, in place of what was open; an error leaves that as it was.
    fn open(&mut self, port: u16) -> Result<(), Box<Problem>> {
        if self.token.is_none() {
            let token = token::read_or_make(self.engine.home()).map_err(Problem::from)?;
            self.token = Some(Arc::new(Token::new(token)));
        }
        let sockets = bind(self.config.elsewhere(), port)?;
        self.close();
        self.sockets = sockets;
        self.problem = None;
        let own = self.sockets.iter().find_map(|socket| socket.local_addr().ok());
        if let Some(transports) = &self.transports {
            transports.listening(own);
        }
        if self.config.port == 0 {
            self.remember(Remembered { port: self.port(), ..self.remembered.clone() });
        }
        tracing::info!(port = self.port(), "the listener is open");
        if let Some(address) = self.config.elsewhere() {
            tracing::warn!(%address, "the listener is open beyond this machine: `dangerously_bind` says so");
        }
        Ok(())
    }

    /// Closes it, and cuts whoever came in by it.
    fn close(&mut self) {
        self.sockets.clear();
        self.connections.abort_all();
        self.problem = None;
        if let Some(transports) = &self.transports {
            transports.listening(None);
        }
    }

    fn rotate(&mut self) -> Result<(), Refusal> {
        let token = token::replace(self.engine.home())
            .map_err(|error| Refusal::new(Code::StorageFailed, error.to_string()))?;
        if let Some(known) = &self.token {
            known.set(token);
        }
        self.codes.revoke();
        self.given.clear();
        self.connections.abort_all();
        tracing::info!("the token was replaced");
        Ok(())
    }

    fn remember(&mut self, what: Remembered) {
        self.remembered = what;
        if let Err(error) = self.remembered.write(self.engine.home()) {
            tracing::warn!(%error, "what the listener is to remember could not be written");
        }
    }

    fn port(&self) -> Option<u16> {
        self.sockets.first()?.local_addr().ok().map(|at| at.port())
    }

    fn info(&self) -> ListenerInfo {
        let at = self.sockets.iter().filter_map(|socket| socket.local_addr().ok());
        ListenerInfo {
            enabled: !self.sockets.is_empty(),
            port: self.port(),
            addresses: at.map(|at| format!("http://{at}")).collect(),
            problem: self.problem.clone(),
            connections: self.connections.len() as u64,
            refused: self.counts.refused(),
            failed_auth: self.counts.failed_auth(),
        }
    }
}

/// The next connection at any of them.
async fn accept(sockets: &[TcpListener]) -> io::Result<TcpStream> {
    poll_fn(|context| {
        for socket in sockets {
            if let Poll::Ready(accepted) = socket.poll_accept(context) {
                return Poll::Ready(accepted.map(|(stream, _)| stream));
            }
        }
        Poll::Pending
    })
    .await
}

/// Binds both loopback addresses, and one more if that is asked for, all at one port; any port if it is 0.
fn bind(elsewhere: Option<IpAddr>, port: u16) -> Result<Vec<TcpListener>, Box<Problem>> {
    let mut last = None;
    for _ in 0..DRAWS {
        match bind_at(elsewhere, port) {
            Err((_, error)) if port == 0 && error.kind() == io::ErrorKind::AddrInUse => last = Some(error),
            Err((at, error)) => return Err(cannot_listen(at, &error).into()),
            Ok(sockets) => return Ok(sockets),
        }
    }
    let last = last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
    Err(Problem::new(Code::ListenerFailed, format!("no port is free for all addresses: {last}")).into())
}

/// Why there is no listening at an address, and what helps against that.
fn cannot_listen(at: SocketAddr, error: &io::Error) -> Problem {
    let mut problem = Problem::new(Code::ListenerFailed, format!("{at} cannot be listened at: {error}"));
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "Ports below 1024 are the system's: choose a higher one with `port` under [listener] in config.toml."
                .clone_into(&mut problem.advice);
        }
        io::ErrorKind::AddrNotAvailable => {
            "This machine has no such address: change `dangerously_bind` under [listener] in config.toml."
                .clone_into(&mut problem.advice);
        }
        _ => {}
    }
    problem
}

fn bind_at(elsewhere: Option<IpAddr>, port: u16) -> Result<Vec<TcpListener>, (SocketAddr, io::Error)> {
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    // "Everywhere" holds the loopback address of its kind, and that of IPv6 both kinds.
    let wanted = match elsewhere {
        None => vec![v4, v6],
        Some(all) if all == IpAddr::from(Ipv4Addr::UNSPECIFIED) => vec![all, v6],
        Some(all) if all == IpAddr::from(Ipv6Addr::UNSPECIFIED) => vec![all],
        Some(one) if one.is_loopback() => vec![v4, v6],
        Some(one) => vec![v4, v6, one],
    };
    let mut sockets: Vec<TcpListener> = Vec::new();
    for address in wanted {
        let port =
            sockets.first().and_then(|first| first.local_addr().ok()).map_or(port, |first| first.port());
        let at = SocketAddr::new(address, port);
        match listen(at) {
            Ok(socket) => sockets.push(socket),
            // A machine without IPv6.
            Err(error) if address == v6 && !sockets.is_empty() && is_absent(&error) => {}
            Err(error) => return Err((at, error)),
        }
    }
    Ok(sockets)
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = std::net::TcpListener::bind(at)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_about_what_keeps_the_port_away() {
        let at = SocketAddr::from(([127, 0, 0, 1], 80));
        let advice = |kind: io::ErrorKind| cannot_listen(at, &kind.into()).advice;
        assert!(advice(io::ErrorKind::PermissionDenied).contains("below 1024"));
        assert!(advice(io::ErrorKind::AddrNotAvailable).contains("dangerously_bind"));
        assert_eq!(advice(io::ErrorKind::AddrInUse), Code::ListenerFailed.advice());
    }
}
