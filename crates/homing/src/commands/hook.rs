//! `homing hook`: what the hooks of an agent call.
//!
//! An agent runs it at the turns of its own life and hands it JSON on stdin. What the session is to be told is taken from its inbox under a short
//! lease, printed, and only then marked as told: a hook that dies in between has told nobody, and the notices are free again in seconds. The
//! end of the turn acknowledges them; where its process dies first, the session is told again when it begins anew (P5, P6). One that
//! speaks into nothing (a closed stdout, the null device) takes nothing.
//!
//! A hook must never stand in the agent's way. With nothing to say it says nothing. It starts no daemon, and where none answers, or
//! what it was given makes no sense, it ends at once with 0. It ends with 2, which agents take for "go on", only to wake a session.

mod answer;
mod diary;
mod input;
pub(crate) mod misuse;
mod seat;
mod waiter;

use std::time::Duration;

use clap::Args;
use homing_agents::environment::Variables;
use homing_agents::hooks::{Event, Input};
use homing_agents::{Agent, registry};
use homing_api::TakeRequest;
use homing_client::{Client, Error, ListQuery};
use homing_model::binding::BindRequest;
use homing_model::turn;
use homing_model::units;
use homing_model::units::millis;
use homing_model::{AgentName, NoticeId, Status};
use tokio::time::timeout;

use crate::cli::context::Context;
use crate::cli::exit_code;
use crate::cli::failure::Failure;
use crate::render::console::leads_nowhere;
use diary::Step;
pub(crate) use seat::program_above;

/// A daemon that does not answer in this time is left alone: what waits is told by the next hook. [`PATIENCE_NAME`] says otherwise.
const PATIENCE: Duration = Duration::from_secs(1);
/// The variable that says how long a hook waits for its agent's words, and for each answer of the daemon.
const PATIENCE_NAME: &str = "HOMING_HOOK_PATIENCE";
/// How long it may take to print what was taken.
const TAKEN: Duration = Duration::from_secs(10);
/// How long the session may take to call again: longer than most turns. Then what it was told is back in its inbox.
const TOLD: Duration = Duration::from_secs(3_600);
/// Tasks with this label are waited for at the end of a turn, where that is asked for.
const HELD: &str = "hold=true";

#[derive(Debug, Args)]
#[command(
    after_help = "The agent calls it, not you: `homing install AGENT` writes it into the agent's hooks. It reads the agent's JSON on stdin, \
never starts the daemon, and says nothing where there is nothing to say.

Events: Stop, SessionStart, UserPromptSubmit, SessionEnd (also AfterAgent and BeforeAgent, where the agent calls them so), and rewake, which \
waits in the background for the next result of the session and wakes it. homing's plugin in an agent calls UserPromptSubmit, Stop and rewake. Any \
other is nothing to the agent; typed on a terminal it is an error, and `homing doctor` tells of the last one that an agent called.

Examples:
  homing hook claude Stop                 at the end of a turn: what has ended meanwhile
  homing hook claude Stop --hold 10m      wait for tasks that run with `--label hold=true` first
  homing hook claude rewake               as a hook with `asyncRewake`"
)]
pub(crate) struct Options {
    #[arg(help = registry::listed())]
    agent: String,
    /// The event
    event: String,
    /// At the end of a turn, wait so long for tasks with the label hold=true
    #[arg(long, value_name = "D", value_parser = units::duration)]
    hold: Option<Duration>,
}

/// Whose hook this is, and all that it needs.
struct Hook<'a> {
    context: &'a Context,
    client: Client,
    agent: &'static dyn Agent,
    owner: String,
    input: Input,
    patience: Duration,
}

/// Does what the event asks for; 0 whatever happens, and 2 to wake the session.
pub(crate) fn run(options: &Options, context: &Context) -> Result<u8, Failure> {
    let agent = misuse::agent_with_hooks(&options.agent);
    let (Some(agent), Some(event)) = (agent, Event::parse(&options.event)) else {
        return misuse::tell(&options.agent, &options.event, context);
    };
    let given = context.surroundings.text(PATIENCE_NAME).and_then(|text| units::duration(text).ok());
    let patience = given.unwrap_or(PATIENCE);
    // An agent reads what is printed here: nothing else may be.
    context.block_on_screen(async {
        let Some(input) = input::read(agent, context, patience).await else { return Ok(exit_code::DONE) };
        // What a subagent does is no turn of the session.
        let session = registry::session(agent, &input.session).filter(|_| !input.subagent);
        let Some(session) = session else { return Ok(exit_code::DONE) };
        let client = context.quiet_client().nameless();
        let hook = Hook { context, client, agent, owner: session.owner(), input, patience };
        match event {
            Event::Rewake => waiter::wait(&hook).await,
            Event::Stop => hook.stop(options.hold).await,
            Event::SessionStart | Event::Prompt => hook.catch_up(event).await,
            Event::SessionEnd => {
                let _ = timeout(patience, hook.client.unbind_session(&hook.owner)).await;
                Ok(exit_code::DONE)
            }
        }
    })
}

/// What a session is told, and what that was made of.
struct Telling {
    text: String,
    ids: Vec<NoticeId>,
}

impl Hook<'_> {
    /// The end of a turn: what has ended meanwhile makes it go on.
    async fn stop(&self, hold: Option<Duration>) -> Result<u8, Failure> {
        let reports_answers = self.agent.hooks().no_answer.is_some();
        let agent = seat::agent_process(self.agent, &self.context.surroundings).filter(|_| reports_answers);
        let (home, owner) = (&self.context.home, &self.owner);
        let before = agent.as_ref().and_then(|agent| answer::take(home, owner, agent));
        let stuck = self.input.continued && before.is_some() && before == self.input.answer_bytes;
        if (self.input.unanswered || stuck) && reports_answers {
            // The agent drops the prompt of such a turn, and with it what its hooks have added: no
            // later turn has that in its context. It is free again, for the next prompt. Going on
            // now would only repeat a request that failed.
            let _ = timeout(self.patience, self.client.unbind_session(&self.owner)).await;
            let _ = self.bind(None).await;
            return Ok(exit_code::DONE);
        }
        let ended = (!self.input.unanswered).then_some(self.input.continued);
        let Some(streak) = self.bind(ended).await else { return Ok(exit_code::DONE) };
        if self
            .with_variables(|variables| self.agent.stop_limit(variables))
            .is_some_and(|most| streak.saturating_add(1) >= most)
        {
            // The agent would end the turn all the same, and nobody would read it.
            return Ok(exit_code::DONE);
        }
        if leads_nowhere(std::io::stdout()) {
            return Ok(exit_code::DONE);
        }
        let mut telling = self.take().await;
        if let (None, Some(hold)) = (&telling, hold) {
            let _ = timeout(hold, self.marked_work_runs()).await;
            telling = self.take().await;
        }
        if let (Some(_), Some(agent), Some(bytes)) = (&telling, &agent, self.input.answer_bytes) {
            let _ = answer::keep(home, owner, agent, bytes);
        }
        self.tell(Event::Stop, telling).await
    }

    /// The beginning of a session or of a turn: what waits, and after a break also what still runs.
    async fn catch_up(&self, event: Event) -> Result<u8, Failure> {
        if self.bind(None).await.is_none() || leads_nowhere(std::io::stdout()) {
            return Ok(exit_code::DONE);
        }
        let mut telling = if self.agent.reaches_model(event, &self.input) { self.take().await } else { None };
        if event == Event::SessionStart && self.input.after_a_break() {
            let most = u32::try_from(turn::MOST_RUNNING).unwrap_or(u32::MAX).saturating_add(1);
            let live = ListQuery { limit: Some(most), ..self.live() };
            let live = timeout(self.patience, self.client.list(&live)).await;
            let still = live
                .ok()
                .and_then(Result::ok)
                .and_then(|page| turn::running(&page.items, self.context.now()));
            if let Some(still) = still {
                let said = telling.get_or_insert_with(|| Telling { text: String::new(), ids: Vec::new() });
                if said.text.chars().count() + still.chars().count() < turn::LONGEST {
                    let gap = if said.text.is_empty() { "" } else { "\n" };
                    said.text = format!("{}{gap}{still}", said.text);
                }
            }
        }
        self.tell(event, telling).await
    }

    /// Says which session the agent is in. `None` where no daemon answers; else how often the end of the turn was put off.
    async fn bind(&self, continued: Option<bool>) -> Option<u32> {
        let pid = seat::agent_process(self.agent, &self.context.surroundings).map(|process| process.pid);
        let session = self.input.session.clone();
        let polls = self.with_variables(|variables| self.agent.polls_tasks(variables));
        let agent = AgentName::new(self.agent.name())?;
        let request = BindRequest { agent, session, pid, continued, polls };
        match timeout(self.patience, self.client.bind_session(&request)).await {
            Ok(Ok(info)) => Some(info.streak),
            // Where the session is stays unknown; what it is told does not depend on it.
            Ok(Err(Error::Problem(_))) => Some(0),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// What the environment of the hook says of its agent.
    fn with_variables<T>(&self, read: impl FnOnce(Variables<'_>) -> T) -> T {
        read(Variables::new(&|name| self.context.surroundings.text(name).map(str::to_owned)))
    }

    /// Takes what waits, for a moment, and puts it into words.
    async fn take(&self) -> Option<Telling> {
        let most = u32::try_from(turn::MOST).unwrap_or(u32::MAX);
        let request =
            TakeRequest { max: Some(most), lease_ms: Some(millis(TAKEN)), ..TakeRequest::default() };
        diary::note(self.context, Step::Asks, &[]);
        let taken = timeout(self.patience, self.client.take(&self.owner, &request)).await.ok()?.ok()?.items;
        if taken.is_empty() {
            return None;
        }
        diary::note(
            self.context,
            Step::Took,
            &taken.iter().map(|notice| notice.id.clone()).collect::<Vec<_>>(),
        );
        let more = if taken.len() < turn::MOST {
            0
        } else {
            let left = timeout(self.patience, self.client.inbox(&self.owner, None)).await;
            left.ok().and_then(Result::ok).map_or(0, |left| left.items.len())
        };
        let (known, news): (Vec<_>, Vec<_>) =
            taken.into_iter().partition(|notice| self.input.known.iter().any(|id| id == notice.id.as_str()));
        let known = known.into_iter().map(|notice| notice.id);
        if news.is_empty() {
            return Some(Telling { text: String::new(), ids: known.collect() });
        }
        let turn = turn::compose(&news, more);
        let ids = known.chain(news.into_iter().take(turn.told).map(|notice| notice.id)).collect();
        Some(Telling { text: turn.text, ids })
    }

    /// Prints it in the words of the agent. What was printed counts as told; what nobody read does not.
    /// It is no failure of the agent's.
    async fn tell(&self, event: Event, telling: Option<Telling>) -> Result<u8, Failure> {
        let Some(Telling { text, ids }) = telling else { return Ok(exit_code::DONE) };
        if text.is_empty() || self.context.console.json_line(&self.agent.hook_answer(event, &text)).is_ok() {
            self.told(ids).await;
        }
        Ok(exit_code::DONE)
    }

    /// Marks what was printed. Where that fails it is told once more, under the same id.
    async fn told(&self, ids: Vec<NoticeId>) {
        if !ids.is_empty() {
            diary::note(self.context, Step::Said, &ids);
            if let Ok(Ok(marked)) = timeout(self.patience, self.client.deliver(&self.owner, ids, TOLD)).await
            {
                let marked: Vec<_> = marked.items.into_iter().map(|notice| notice.id).collect();
                diary::note(self.context, Step::Marked, &marked);
            }
        }
    }

    /// The tasks of the session that have not ended.
    fn live(&self) -> ListQuery {
        let statuses = Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect();
        ListQuery { owner: Some(self.owner.clone()), statuses, limit: Some(1), ..ListQuery::default() }
    }

    /// Waits while marked work runs and nothing is there to tell.
    async fn marked_work_runs(&self) {
        let marked = ListQuery { labels: vec![HELD.to_owned()], ..self.live() };
        while matches!(self.client.list(&marked).await, Ok(page) if !page.items.is_empty()) {
            match self.client.inbox(&self.owner, Some(waiter::ROUND)).await {
                Ok(answer) if answer.items.is_empty() => {}
                _ => return,
            }
        }
    }
}
