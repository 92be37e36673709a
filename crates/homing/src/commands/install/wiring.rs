//! What makes an agent know of homing: which files it reads, and what is to be in them.

use std::path::{Path, PathBuf};

use homing_agents::Agent;
use homing_agents::install::{File, Installation, NAME, Scope, Site};
use homing_api::{Code, Problem};

use super::backup::Shelf;
use super::edit::{Block, Edit, Members, Own};
use crate::cli::context::Context;
use crate::cli::entry;
use crate::options::environment::Surroundings;

/// All that is done for one agent.
#[derive(Debug)]
pub(super) struct Wiring {
    /// In the order in which it is done.
    pub(super) edits: Vec<Edit>,
    /// What the user has to know.
    pub(super) note: &'static str,
    /// Where it is kept how the files were.
    pub(super) shelf: Shelf,
    /// The folder of the project that it is for, if it is for one.
    project: Option<PathBuf>,
}

impl Wiring {
    /// How many folders above a file homing may have made where nothing tells any more: in a project all of them, since an empty folder is
    /// nobody's there; those of an agent's user stay.
    pub(super) fn folders_of(&self, path: &Path) -> usize {
        let inside = self.project.as_deref().and_then(|project| path.strip_prefix(project).ok());
        inside.map_or(0, |inside| inside.components().count().saturating_sub(1))
    }

    /// The link by which a file of a project may be anywhere else, if there is one on the way to it.
    pub(super) fn link_out(&self, path: &Path) -> Option<PathBuf> {
        let project = self.project.as_deref()?;
        let mut inside = path.ancestors().take_while(|part| *part != project);
        inside.find(|part| part.is_symlink()).map(Path::to_owned)
    }
}

/// How the agent calls homing: the program and its first arguments.
struct Program(Vec<String>);

impl Program {
    /// For the user the place where a shell finds this program, as it is written there: an upgrade replaces what is there, and an agent that was
    /// not started from a shell finds it too. For a project the name alone: others have it elsewhere.
    fn find(scope: Scope, context: &Context) -> Result<Self, Problem> {
        if scope == Scope::Project {
            return Ok(Self(vec![NAME.to_owned()]));
        }
        let own = entry::executable()?;
        let path = context.surroundings.get("PATH").unwrap_or_default();
        let same = |found: &PathBuf| {
            let real = |path: &Path| std::fs::canonicalize(path).ok();
            found.is_absolute() && real(found).is_some_and(|found| Some(found) == real(&own))
        };
        let found = std::env::split_paths(path).map(|folder| folder.join(NAME)).find(same);
        let place = found.unwrap_or(own);
        // What was written is known by that name: under another, nothing would ever be found again.
        if place.file_name().is_none_or(|name| name != NAME) {
            let detail =
                format!("this program is called {}, and agents are to call `{NAME}`", place.display());
            let advice =
                format!("Put a link to it, or the program itself, on your PATH under the name `{NAME}`.");
            return Err(Problem { advice, ..Problem::new(Code::AgentConfig, detail) });
        }
        let mut words = vec![text(&place)?];
        // Not every agent hands the variable on to what it starts.
        let chosen = context.home_flag.is_some() || context.surroundings.get("HOMING_HOME").is_some();
        if chosen {
            words.extend(["--home".to_owned(), text(&context.home)?]);
        }
        Ok(Self(words))
    }
}

fn text(path: &Path) -> Result<String, Problem> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Problem::new(Code::AgentConfig, format!("the path {} cannot be written as text", path.display()))
    })
}

/// The folder that a variable names, if it does.
fn named(surroundings: &Surroundings, name: &str) -> Option<PathBuf> {
    surroundings.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// What is to be done for an agent.
pub(super) fn wiring(agent: &dyn Agent, scope: Scope, context: &Context) -> Result<Wiring, Problem> {
    let program = Program::find(scope, context)?;
    let here = match scope {
        Scope::Project => std::env::current_dir().map_err(|error| {
            Problem::new(Code::AgentFiles, format!("the working directory cannot be found: {error}"))
        })?,
        Scope::User => named(&context.surroundings, "HOME").ok_or_else(|| {
            let mut problem =
                Problem::new(Code::AgentFiles, "HOME is not set, so the agent's files cannot be found");
            problem.advice = "Set HOME, or use `--project` in the folder that it is for.".to_owned();
            problem
        })?,
    };
    let variable = |name: &str| named(&context.surroundings, name);
    let site = Site { scope, here: &here, program: &program.0, variable: &variable };
    let Installation { files, note } = agent.install(&site);
    let edits = files.into_iter().map(|file| match file {
        File::Json { path, members, hooks } => {
            Edit::Members(Members { path, agent: agent.name(), members, hooks })
        }
        File::Toml { path, table, block } => Edit::Block(Block { path, table, block }),
        File::Own { path, content } => Edit::Own(Own { path, content }),
    });
    let edits = edits.collect();
    let shelf = match scope {
        Scope::User => Shelf::Beside,
        Scope::Project => Shelf::Home(context.home.clone()),
    };
    let project = (scope == Scope::Project).then_some(here);
    Ok(Wiring { edits, note, shelf, project })
}
