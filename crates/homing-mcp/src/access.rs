//! Who calls, in whose name, and what its tasks take over.

use homing_agents::registry::{self, mcp_client};
use homing_agents::{Agent, McpSession, environment};
use homing_api::Problem;
use homing_client::Client;
use homing_model::environment::DEFAULT_OWNER;
use homing_model::{Session, Spec};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;

use crate::refusal::Refusal;

/// What comes with a request: who asks, in which protocol, and how it is taken back.
pub(crate) type Context = RequestContext<RoleServer>;

/// The header that names the owner, as in homing's own API.
const OWNER: &str = "homing-owner";

/// Whose the tasks of a bridge are.
#[derive(Debug, Clone)]
pub enum Owner {
    /// Somebody named it.
    Named(String),
    /// The session of the agent that runs the bridge.
    Session {
        /// As the environment has it.
        found: Option<Box<Session>>,
        /// The owner where no session is known: that of the agent's process, so that sessions of unknown agents do not share an inbox.
        process: String,
    },
}

/// A bridge: a process of an agent that passes its calls on to the daemon.
#[derive(Debug)]
pub struct Bridge {
    /// The way to the daemon.
    pub client: Client,
    /// In whose name.
    pub owner: Owner,
    /// The owner of the task that the bridge runs in. What it submits may belong to that one: the daemon decides.
    pub outer: Option<String>,
    /// All that a task takes over from the bridge: folder, environment, mask, limits, niceness, session.
    pub base: Spec,
}

impl Bridge {
    /// Who calls now. A bridge may outlive the conversation that it was started in: a hook of the agent that said which one its process
    /// is in knows better than the environment.
    async fn caller(
        &self,
        context: &RequestContext<RoleServer>,
        said: Option<Session>,
    ) -> Result<(String, Option<Session>), Refusal> {
        let (found, process) = match &self.owner {
            Owner::Named(owner) => return Ok((owner.clone(), registry::session_of(owner))),
            Owner::Session { found, process } => (found, process),
        };
        if let Some(session) = self.thread(context).or(said) {
            return Ok((session.owner(), Some(session)));
        }
        // Where that cannot be asked nobody is guessed: the environment may be that of an earlier conversation.
        let bound = self.client.nameless().session().await?;
        let session = match (bound, found) {
            (Some(bound), Some(found)) if bound.agent == found.agent => {
                Some(Session { id: bound.session, ..Session::clone(found) })
            }
            (Some(bound), _) => Session::new(bound.agent, &bound.session),
            (None, found) => found.as_deref().cloned(),
        };
        let owner = session.as_ref().map_or_else(|| process.clone(), Session::owner);
        Ok((owner, session))
    }

    /// The session that an argument of a call names: that is taken out, since no tool has it.
    pub(crate) fn said(
        &self,
        arguments: Option<&mut JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Option<Session> {
        let (agent, named) = mcp_client(&context.client_info()?.name)?;
        self.session(agent, &take_session(named, arguments)?, context)
    }

    /// The session that the client names with every call.
    fn thread(&self, context: &RequestContext<RoleServer>) -> Option<Session> {
        match mcp_client(&context.client_info()?.name)? {
            (agent, McpSession::Meta(field)) => {
                self.session(agent, context.meta.get(field)?.as_str()?, context)
            }
            (_, McpSession::Argument(_)) => None,
        }
    }

    /// A session of the client's agent, and how it is reached, as if the environment had named it.
    fn session(&self, agent: &dyn Agent, id: &str, context: &RequestContext<RoleServer>) -> Option<Session> {
        let variable = agent.identity().session_variable;
        let found = environment::detect(|name| {
            if name == variable {
                return Some(id.to_owned());
            }
            Some(self.base.env.as_ref()?.get(name)?.lossy().into_owned())
        })?;
        let version = context.client_info().map(|client| client.version);
        Some(Session { version: found.version.or(version), ..found })
    }
}

/// Takes the argument that names the session out of a call.
fn take_session(named: McpSession, arguments: Option<&mut JsonObject>) -> Option<String> {
    match named {
        McpSession::Argument(field) => arguments?.remove(field)?.as_str().map(str::to_owned),
        McpSession::Meta(_) => None,
    }
}

/// One call: the way to the API, and who makes it.
#[derive(Debug)]
pub(crate) struct Access {
    /// In the owner's name. Its first call confirms what the owner was told before.
    pub(crate) client: Client,
    /// In nobody's name: what is read with it confirms nothing.
    pub(crate) reader: Client,
    /// Who calls.
    pub(crate) owner: String,
    /// The owner of the task that the caller runs in.
    pub(crate) outer: Option<String>,
    /// What a task takes over.
    pub(crate) base: Spec,
}

impl Access {
    fn new(client: &Client, owner: String, base: Spec) -> Self {
        Self { client: client.on_behalf_of(&owner), reader: client.nameless(), owner, outer: None, base }
    }

    /// Whether the caller's own tasks can have this owner.
    pub(crate) fn is_own(&self, owner: &str) -> bool {
        self.owner == owner || self.outer.as_deref() == Some(owner)
    }

    /// That of a call over stdio.
    pub(crate) async fn by_bridge(
        bridge: &Bridge,
        context: &RequestContext<RoleServer>,
        said: Option<Session>,
    ) -> Result<Self, Refusal> {
        let (owner, session) = bridge.caller(context, said).await?;
        let access = Self::new(&bridge.client, owner, Spec { session, ..bridge.base.clone() });
        Ok(Self { outer: bridge.outer.clone(), ..access })
    }

    /// That of a call over HTTP: whoever mounts the service has put a client of the API into the request. The owner is the one that the
    /// header names, else the session that the plugin of an agent names, and nobody is
    /// guessed; tasks get the API's own defaults.
    pub(crate) fn by_request(
        arguments: Option<&mut JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Self, Refusal> {
        let internal = |detail: &str| Problem::new(homing_api::Code::Internal, detail);
        let parts = context.extensions.get::<http::request::Parts>();
        let parts = parts.ok_or_else(|| internal("this call of MCP came without its HTTP request"))?;
        let client = parts.extensions.get::<Client>();
        let client = client.ok_or_else(|| internal("this call of MCP came without a way to the API"))?;
        // Its header names the client: a call says nothing of it here.
        let program = parts.headers.get(http::header::USER_AGENT).and_then(|program| program.to_str().ok());
        let said = program
            .and_then(mcp_client)
            .and_then(|(agent, named)| registry::session(agent, &take_session(named, arguments)?));
        let owner = match parts.headers.get(OWNER).map(|value| std::str::from_utf8(value.as_bytes())) {
            None | Some(Ok("")) => said.map_or_else(|| DEFAULT_OWNER.to_owned(), |session| session.owner()),
            Some(Ok(owner)) => owner.to_owned(),
            Some(Err(_)) => return Err(Refusal::invalid("the header `Homing-Owner` is not UTF-8")),
        };
        let base = Spec { session: registry::session_of(&owner), ..Spec::default() };
        Ok(Self::new(client, owner, base))
    }
}
