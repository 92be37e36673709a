//! The variables and secrets of a task.

use std::collections::BTreeMap;

use homing_model::mask::UNNAMED;
use homing_model::{Masks, OsText, Secret, Spec, obvious};

use crate::error::Error;
use crate::supervisor::launch::{self, Values};

/// All values that the launch needs: variables, secrets, and values that stand in the command line alone.
pub(super) async fn collect(default_env: &Values, spec: &mut Spec) -> Result<Values, Error> {
    let mut values = spec.env.take().unwrap_or_else(|| default_env.clone());
    let set = spec.env_set.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    values.extend(set);
    values.retain(|name, _| !name.starts_with("HOMING_"));
    values.retain(|name, _| !spec.secrets.contains_key(name));
    let secrets = read_secrets(&spec.secrets).await?;
    // A value that stands in the command line alone is written beside the environment, and gone with it; no part of
    // a secret is.
    let within = |whole: &[u8], part: &[u8]| whole.windows(part.len().max(1)).any(|window| window == part);
    let obvious = obvious::find(spec).into_iter().filter(|(_, value)| {
        !secrets.values().any(|secret| within(secret.as_bytes(), value) || within(value, secret.as_bytes()))
    });
    for (index, (name, value)) in obvious.enumerate() {
        let name = if index == 0 { name } else { format!("{name} {}", index + 1) };
        values.insert(format!("{UNNAMED}{name}"), value.to_vec().into());
    }
    values.extend(secrets);
    Ok(values)
}

/// The values of these secrets.
pub(super) async fn read_secrets(secrets: &BTreeMap<String, Secret>) -> Result<Values, Error> {
    let mut values = Values::new();
    for (name, secret) in secrets {
        let value = match secret {
            Secret::Value(value) => value.clone(),
            Secret::File(path) => {
                launch::read_secret(path).await.map_err(|error| Error::secret(name, path, &error))?
            }
        };
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// Refuses a spec that has a secret's value where it would be written down or sent.
pub(super) fn refuse_secrets(masks: &Masks, spec: &Spec, prompt: Option<&str>) -> Result<(), Error> {
    for target in spec.notify.iter().flat_map(|notify| &notify.targets) {
        if let Some(name) = masks.given_in(&target.to_string()) {
            return Err(Error::SecretInTarget(name.to_owned()));
        }
    }
    if let Some(name) = spec.watch.iter().find_map(|pattern| masks.given_in(pattern)) {
        return Err(Error::BadParameter(format!(
            "`watch` contains the value of the secret `{name}`, which is never written down"
        )));
    }
    if let Some(name) = prompt.and_then(|prompt| masks.given_in(prompt)) {
        return Err(Error::BadParameter(format!(
            "`prompt` contains the value of the secret `{name}`, which is never written down: name the variable instead, the agent has it"
        )));
    }
    Ok(())
}

/// What was set for the task alone, as far as it may be kept; of a secret only that there was one.
pub(super) fn kept_variables(spec: &Spec, masks: &Masks) -> BTreeMap<String, Option<OsText>> {
    let set = spec.env_set.iter().filter(|(name, _)| !spec.secrets.contains_key(*name));
    set.map(|(name, value)| (name.clone(), value.clone().filter(|value| masks.may_keep(name, value))))
        .collect()
}

/// The names of the variables.
pub(super) fn names(values: &Values) -> Vec<String> {
    values.keys().filter(|name| !name.starts_with(UNNAMED)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn collected(mut spec: Spec) -> Values {
        let default_env = Values::from([("PATH".into(), "/bin".into()), ("HOMING_HOME".into(), "/h".into())]);
        collect(&default_env, &mut spec).await.unwrap()
    }

    #[tokio::test]
    async fn a_secret_replaces_a_variable_and_none_of_ours_is_passed_on() {
        let secrets = BTreeMap::from([("TOKEN".into(), Secret::Value("hunter22".into()))]);
        let set = |name: &str, value: &str| (name.to_owned(), Some(OsText::from(value)));
        let env_set = BTreeMap::from([set("TOKEN", "other"), set("HOMING_X", "1"), set("A", "b")]);
        let values = collected(Spec { secrets, env_set, ..Spec::default() }).await;
        let expected = [("A", "b"), ("PATH", "/bin"), ("TOKEN", "hunter22")];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value.into())).into());
    }

    #[tokio::test]
    async fn a_value_in_the_command_line_alone_has_no_name() {
        let values =
            collected(Spec { shell: Some("curl --password=correct-horse".into()), ..Spec::default() }).await;
        assert_eq!(values.len(), 2, "{values:?}");
        assert_eq!(names(&values), ["PATH"]);
    }

    #[test]
    fn a_secret_is_refused_where_it_would_be_written_down() {
        let values = Values::from([("TOKEN".into(), "hunter22".into())]);
        let masks = Masks::new(7, &values, |_| true);
        let watched = Spec { watch: vec!["hunter22".into()], ..Spec::default() };
        assert!(matches!(refuse_secrets(&masks, &watched, None), Err(Error::BadParameter(_))));
        let asked = refuse_secrets(&masks, &Spec::default(), Some("say hunter22"));
        assert!(matches!(asked, Err(Error::BadParameter(_))));
        assert!(refuse_secrets(&masks, &Spec::default(), Some("say it")).is_ok());
    }
}
