//! Accepting connections, until the end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use homing_api::{Code, Problem};
use homing_deliver::Transports;
use homing_engine::Engine;
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::http::peer_closed::{self, Hangup};
use crate::http::router::router;
use crate::http::traffic::Traffic;
use crate::memory::Bodies;
use crate::net::connection::{self, Admission, is_shortage};
use crate::net::connection_limits::{Holder, Limits, Places};
use crate::net::listener;
use crate::net::socket::{self, BindError};
use crate::reload::Reloader;
use crate::routes::attach::Stages;
use homing_sys::confine::Confinement;
use homing_sys::home;
use homing_sys::presence::{self, Identity};

/// Before accepting again when the system has no descriptor or memory left, unless a connection ends before.
const BREATH: Duration = Duration::from_millis(100);

/// What a request that changes something is given to finish when the server leaves.
const GRACE: Duration = Duration::from_secs(2);

/// Why a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// A caller asked for it (`POST /v1/daemon/stop`): on purpose.
    Asked,
    /// Whoever runs it said so.
    Told,
}

/// The server of one engine's home.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    listener: UnixListener,
    /// Which file its name must mean.
    bound: Option<Identity>,
    own: Confinement,
    reloader: Option<Arc<Reloader>>,
    transports: Option<Arc<Transports>>,
}

impl Server {
    /// Listens on the socket of the engine's home. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the home is not safe, or the system refuses.
    pub fn bind(engine: Engine) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { home: engine.home().to_owned(), source };
        let own = Confinement::own().map_err(failed)?;
        let (listener, bound) = listen(&engine)?;
        Ok(Self { engine, listener, bound, own, reloader: None, transports: None })
    }

    /// Tells of the configuration in its status, and puts a changed one in force.
    pub(crate) fn with_reloader(self, reloader: Arc<Reloader>) -> Self {
        Self { reloader: Some(reloader), ..self }
    }

    /// Tells what posts transports which port is our own.
    #[must_use]
    pub fn with_transports(self, transports: Arc<Transports>) -> Self {
        Self { transports: Some(transports), ..self }
    }

    /// Makes the socket again if somebody has removed or replaced it. The engine holds the home's lock, so it is ours to make.
    fn mend(&mut self) {
        if presence::at(&self.engine.home().join(home::SOCKET)) == self.bound {
            return;
        }
        match listen(&self.engine) {
            Ok((listener, bound)) => {
                tracing::warn!("the socket was removed or replaced; it was made again");
                self.listener = listener;
                self.bound = bound;
            }
            Err(error) => tracing::error!(%error, "the socket was removed and cannot be made again"),
        }
    }

    /// Serves until `told` is done or a caller asks for the end. Requests that change something are finished; the rest is cut off.
    pub async fn serve(mut self, told: impl Future<Output = ()>) -> Ended {
        let shutdown = CancellationToken::new();
        // Also if this future is dropped.
        let _shutdown = shutdown.clone().drop_guard();
        let asked = Arc::new(Notify::new());
        let traffic = Arc::<Traffic>::default();
        let (listener, service) =
            listener::service(self.engine.clone(), self.transports.take(), self.own.clone());
        let app = App {
            stages: Stages::default(),
            engine: self.engine.clone(),
            listener,
            asked: Arc::clone(&asked),
            shutdown: shutdown.clone(),
            settings: self.reloader.as_ref().map(|reloader| Arc::clone(&reloader.settings)),
            reloader: self.reloader.clone(),
            traffic: Arc::clone(&traffic),
            bodies: Bodies::default(),
        };
        // On cancel and at the end it has nothing left to do; a panic there is none.
        let report = self.engine.background().register("memory", "returns freed memory to the system", None);
        tokio::spawn(app.bodies.clone().release(shutdown.clone(), report));
        let router = TowerToHyperService::new(router(app));
        // On cancel it is dropped with its connections; on a panic the socket serves on without it.
        let listening = tokio::spawn(service.run(router.clone(), shutdown.clone()));
        let mut told = pin!(told);
        // Every connection is a task of this set: on cancel it is dropped with its request, on a panic it alone ends.
        let mut connections = JoinSet::new();
        let places = Places::default();
        // Whether the last try found the system short of something; said once, not at every try.
        let mut short = false;
        let mut looked = self.engine.looked();
        let ended = loop {
            tokio::select! {
                biased;
                () = &mut told => break Ended::Told,
                () = asked.notified() => {
                    self.engine.mark_stopped();
                    break Ended::Asked;
                }
                Some(_) = connections.join_next() => {}
                Ok(()) = looked.changed() => self.mend(),
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        short = false;
                        // What is closed costs no look at its process, however fast a caller makes more of it.
                        if peer_closed::has_happened(&stream) {
                            continue;
                        }
                        let (admission, confined) = self.admit(&stream);
                        // The limit may be changed from outside.
                        let limits = Limits::of_files(getrlimit(Resource::Nofile).current);
                        let Some(place) = places.take(admission.holder(), limits) else {
                            connection::turn_away(stream, &no_place(&admission.holder(), places.is_full_for(&admission.holder(), limits)));
                            continue;
                        };
                        let (number, hangup) = (place.number(), Hangup::of(&stream));
                        let (visit, serving) = (
                            traffic.enter(),
                            connection::serve(stream, admission, router.clone(), shutdown.clone(), hangup, place),
                        );
                        let confined = confined.then(|| self.engine.clone());
                        let abort = connections.spawn(async move {
                            match confined {
                                None => serving.await,
                                Some(engine) => tokio::select! {
                                    () = serving => {}
                                    () = connection::confined_are_refused(engine) => {}
                                },
                            }
                            drop(visit);
                        });
                        places.set_abort(number, abort);
                        // Those that made room end before the next one is accepted.
                        tokio::task::yield_now().await;
                    }
                    Err(error) if is_shortage(&error) => {
                        if !short {
                            short = true;
                            tracing::warn!(%error, connections = connections.len(), "no connection can be accepted now");
                        }
                        places.give_up_one();
                        tokio::select! {
                            Some(_) = connections.join_next() => {}
                            () = sleep(BREATH) => {}
                        }
                    }
                    // The client gave up before we came to it.
                    Err(error) => tracing::debug!(%error, "a connection was not accepted"),
                },
            }
        };
        drop(self.listener);
        shutdown.cancel();
        let all = async {
            while connections.join_next().await.is_some() {}
            let _ = listening.await;
        };
        if timeout(GRACE, all).await.is_err() {
            tracing::warn!(connections = connections.len(), "requests were cut off");
        }
        ended
    }

    fn admit(&self, stream: &UnixStream) -> (Admission, bool) {
        let (admission, confined) = connection::admit(stream, &self.own, &self.engine);
        if let Admission::Refused(problem) = &admission {
            tracing::info!(code = problem.code, reason = problem.detail, "a caller was refused");
        }
        (admission, confined)
    }
}

/// What a caller is told that gets no place: its own connections take its share, or those of all
/// callers together take every place.
pub(crate) fn no_place(holder: &Holder, own_share: bool) -> Problem {
    let whose = match holder {
        Holder::Process(process) => format!("process {} has", process.pid),
        Holder::Task(task) => format!("the processes of task {task} have"),
        Holder::Unseen => "processes in other pid namespaces have".to_owned(),
        Holder::Refused | Holder::User | Holder::Stranger => "others have".to_owned(),
    };
    let detail = if own_share {
        format!("{whose} too many connections with requests under way")
    } else {
        "all places for connections are taken by requests under way".to_owned()
    };
    tracing::info!(detail, "a connection was turned away");
    Problem::new(Code::TooManyConnections, detail)
}

fn listen(engine: &Engine) -> Result<(UnixListener, Option<Identity>), BindError> {
    let failed = |source| BindError::Io { home: engine.home().to_owned(), source };
    let listener = UnixListener::from_std(socket::bind(engine.home())?).map_err(failed)?;
    Ok((listener, presence::at(&engine.home().join(home::SOCKET))))
}
