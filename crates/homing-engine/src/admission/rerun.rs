//! Running a task again, as a new one: its command, folder, limits, labels and targets from the ledger, the rest from whoever asks.
//!
//! Values of variables are gone once a task has started (P11), so the new one has those of its caller, and over them those that were set for
//! the task alone, which are kept unless they are secrets. Where a value stood in the command
//! line, it has to be the same one, or one that was given for this run: a command line is never run with something else in it. All that is
//! decided here is what to submit; the submit itself is that of any task, so a crash in between costs and doubles what it does there.

use std::collections::BTreeMap;

use homing_api::RerunRequest;
use homing_model::agent::KEPT_PROMPT;
use homing_model::mask::UNNAMED;
use homing_model::{Kind, Notify, OsText, Spec, Stdin, TaskId};
use homing_store::Record;

use crate::admission::submit::{Caller, IdempotencyKey, Submission};
use crate::admission::values;
use crate::engine::Engine;
use crate::error::Error;
use crate::supervisor::launch::Values;

/// The longest that the end of a prompt may be when it was cut between two characters.
const LONGEST_CHARACTER: usize = 4;

impl Engine {
    /// Submits what a task was, again.
    ///
    /// # Errors
    /// If what is kept of it does not suffice, or the submit is refused.
    pub async fn rerun(
        &self,
        id: &TaskId,
        request: RerunRequest,
        caller: Caller,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Submission, Error> {
        let owner = request.owner.clone();
        let record = self.inner.record(id).await?;
        let spec = again(&record, request, &self.inner.default_env).await.map_err(|why| (owner, why));
        self.submit_made(spec, caller, idempotency).await
    }
}

/// What to submit.
async fn again(record: &Record, request: RerunRequest, usual: &Values) -> Result<Spec, Error> {
    let refuse = |why: String| Error::NotAgain { task: record.id.clone(), why };
    match record.kind {
        _ if record.forgotten => return Err(Error::Forgotten(record.id.clone())),
        Kind::External => return Err(refuse("somebody else ran it".to_owned())),
        Kind::Hook => {
            return Err(refuse("it told somebody of an end; `homing redeliver` tells again".to_owned()));
        }
        Kind::Command | Kind::Agent => {}
    }
    let mut secrets = record.spec.secrets.clone();
    secrets.extend(request.secrets.clone());
    let mut env_set = record.spec.env_set.clone();
    env_set.extend(request.env_set.clone().into_iter().map(|(name, value)| (name, Some(value))));
    env_set.retain(|name, _| !secrets.contains_key(name));
    let missing: Vec<_> = record
        .volatile_secrets
        .iter()
        .filter(|name| !secrets.contains_key(*name) && !env_set.contains_key(*name))
        .chain(env_set.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name))
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(Error::SecretsGone { task: record.id.clone(), names: missing });
    }
    let env = request.env.unwrap_or_else(|| usual.clone());
    let spec = if record.masks.is_spliced() {
        let mut whole = env.clone();
        whole.extend(env_set.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))));
        whole.extend(values::read_secrets(&secrets).await?);
        let given = |name: &str| request.secrets.contains_key(name) || request.env_set.contains_key(name);
        record.masks.restore_anew(&record.spec, &whole, given).map_err(|name| {
            refuse(match name.strip_prefix(UNNAMED) {
                Some(what) => format!("its command line held a secret ({what}), which is not kept"),
                None => format!("its command line held the value of {name}, which is not kept, and that is not the same here"),
            })
        })?
    } else {
        record.spec.clone()
    };
    let spec = match record.kind {
        Kind::Agent => asked(spec, record).map_err(|why| refuse(why.to_owned()))?,
        Kind::Command | Kind::External | Kind::Hook => spec,
    };
    Ok(Spec {
        owner: request.owner,
        env: Some(with_folder(env, &spec)),
        env_set,
        secrets,
        notify: request.notify.or_else(|| spec.notify.clone()).or_else(|| Some(Notify::default())),
        session: request.session,
        pane: request.pane,
        // Whoever polls for the end of the first one does not know of this one.
        reserve: None,
        ..spec
    })
}

/// The question of an agent's task, without the command that was made of it: that is made anew.
fn asked(spec: Spec, record: &Record) -> Result<Spec, &'static str> {
    let prompt = spec.prompt.as_deref().unwrap_or_default();
    if prompt.len() + LONGEST_CHARACTER > KEPT_PROMPT {
        return Err("what it was asked is longer than what is kept of that (64KiB)");
    }
    if !record.masks.is_empty() && prompt.contains("[secret ") {
        return Err("what it was asked held a secret, which is not kept");
    }
    Ok(Spec { argv: Vec::new(), stdin: Stdin::None, ..spec })
}

/// `PWD` of the caller names the caller's folder; the task has its own.
fn with_folder(mut env: BTreeMap<String, OsText>, spec: &Spec) -> BTreeMap<String, OsText> {
    if let (Some(pwd), Some(cwd)) = (env.get_mut("PWD"), &spec.cwd) {
        pwd.clone_from(cwd);
    }
    env
}

#[cfg(test)]
mod tests {
    use homing_model::{Masks, Secret, Status};

    use homing_model::reservation::Reserve;

    use super::*;
    use crate::admission::values::kept_variables;

    fn again(record: &Record, request: RerunRequest, usual: &Values) -> Result<Spec, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(super::again(record, request, usual))
    }
    use crate::supervisor::launch;
    use crate::supervisor::live::tests::record;

    fn ran(spec: &Spec, values: &[(&str, &str)]) -> Record {
        let values: Values = values.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut masks = Masks::new(7, &values, |name| spec.secrets.contains_key(name));
        let (mut stored, volatile_secrets) = launch::storable(spec);
        masks.cover_spec(&mut stored);
        stored.env_set = kept_variables(spec, &masks);
        Record { spec: stored, masks, volatile_secrets, ..record(Status::Failed) }
    }

    fn why(result: Result<Spec, Error>) -> String {
        match result {
            Err(Error::NotAgain { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_task_is_submitted_as_it_was_with_the_variables_of_the_caller() {
        let spec = Spec {
            argv: vec!["make".into()],
            cwd: Some("/src".into()),
            labels: BTreeMap::from([("k".into(), "v".into())]),
            timeout_ms: Some(5),
            owner: Some("ann".into()),
            reserve: Some(Reserve::Poll),
            ..Spec::default()
        };
        let env = Values::from([("PWD".into(), "/elsewhere".into()), ("A".into(), "1".into())]);
        let request = RerunRequest { owner: Some("bob".into()), env: Some(env), ..RerunRequest::default() };
        let again = again(&ran(&spec, &[]), request, &Values::new()).unwrap();
        assert_eq!((again.argv, again.cwd, again.labels), (spec.argv, spec.cwd, spec.labels));
        assert_eq!((again.timeout_ms, again.owner.as_deref(), again.reserve), (Some(5), Some("bob"), None));
        let env = again.env.unwrap();
        assert_eq!((&env["PWD"], &env["A"]), (&"/src".into(), &"1".into()));
        assert_eq!(again.notify, Some(Notify::default()), "nobody was told, so nobody is");
    }

    #[test]
    fn a_secret_is_given_anew_or_the_task_is_not_run() {
        let secrets = BTreeMap::from([("TOKEN".into(), Secret::Value("hunter22".into()))]);
        let spec = Spec { shell: Some("curl -H hunter22".into()), secrets, ..Spec::default() };
        let record = ran(&spec, &[("TOKEN", "hunter22")]);
        let refused = again(&record, RerunRequest::default(), &Values::new());
        assert!(matches!(refused, Err(Error::SecretsGone { names, .. }) if names == ["TOKEN"]));
        let secrets = BTreeMap::from([("TOKEN".into(), Secret::Value("another1".into()))]);
        let request = RerunRequest { secrets, ..RerunRequest::default() };
        assert_eq!(again(&record, request, &Values::new()).unwrap().shell, Some("curl -H another1".into()));
    }

    #[test]
    fn what_was_set_for_a_task_is_set_again_and_a_secret_of_it_is_given_anew() {
        let set = |pairs: &[(&str, &str)]| -> BTreeMap<String, Option<OsText>> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).into()))).collect()
        };
        let env_set =
            set(&[("TARGET", "staging"), ("API_TOKEN", "hunter22"), ("DB", "postgres://u:hunter33@h/d")]);
        let spec = Spec { argv: vec!["deploy".into()], env_set, ..Spec::default() };
        let record = ran(&spec, &[("API_TOKEN", "hunter22")]);
        let refused = again(&record, RerunRequest::default(), &Values::new());
        assert!(matches!(refused, Err(Error::SecretsGone { names, .. }) if names == ["API_TOKEN", "DB"]));
        let request = RerunRequest {
            env_set: BTreeMap::from([("DB".into(), "other".into())]),
            secrets: BTreeMap::from([("API_TOKEN".into(), Secret::Value("hunter22".into()))]),
            ..RerunRequest::default()
        };
        let again = again(&record, request, &Values::new()).unwrap();
        assert_eq!(again.env_set, set(&[("TARGET", "staging"), ("DB", "other")]));
    }

    #[test]
    fn a_value_that_only_has_the_same_name_does_not_get_into_the_command_line() {
        let spec = Spec { argv: vec!["deploy".into(), "production".into()], ..Spec::default() };
        let record = ran(&spec, &[("DB_PASSWORD", "production")]);
        assert_ne!(record.spec.argv, spec.argv, "taken for a secret");
        let with = |value: &str| {
            let env = Values::from([("DB_PASSWORD".into(), value.into())]);
            again(&record, RerunRequest { env: Some(env), ..RerunRequest::default() }, &Values::new())
        };
        assert_eq!(with("production").unwrap().argv, spec.argv);
        assert!(why(with("correct horse")).contains("DB_PASSWORD"));
        assert!(why(again(&record, RerunRequest::default(), &Values::new())).contains("DB_PASSWORD"));
    }

    #[test]
    fn what_is_not_kept_whole_is_not_run() {
        let forgotten = Record { forgotten: true, ..record(Status::Succeeded) };
        let refused = again(&forgotten, RerunRequest::default(), &Values::new());
        assert!(matches!(refused, Err(Error::Forgotten(_))), "{refused:?}");
        let foreign = Record { kind: Kind::External, ..record(Status::Running) };
        assert!(why(again(&foreign, RerunRequest::default(), &Values::new())).contains("somebody else"));
        let asked = |prompt: String| {
            let spec = Spec {
                kind: Kind::Agent,
                argv: vec!["claude".into()],
                prompt: Some(prompt),
                ..Spec::default()
            };
            let record = Record { kind: Kind::Agent, spec, ..record(Status::Succeeded) };
            again(&record, RerunRequest::default(), &Values::new())
        };
        assert!(why(asked("x".repeat(KEPT_PROMPT))).contains("64KiB"));
        assert!(asked("short".into()).unwrap().argv.is_empty(), "its command is made anew");
    }
}
