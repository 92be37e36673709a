//! Where the notices of a task may go. Pure.

use std::collections::HashSet;

use homing_agents::registry;
use homing_model::route::Address;
use homing_model::{NoRoute, Notify, Spec, Target};

use crate::config::Config;
use crate::error::Error;

/// Names each target once, and tells no more than the configuration allows.
pub(super) fn limit(config: &Config, spec: &mut Spec) {
    let notify = spec.notify.get_or_insert_with(Notify::usual);
    notify.on = notify.on.at_most(config.notify.on);
    let mut named = HashSet::new();
    notify.targets.retain(|target| named.insert(target.clone()));
}

/// Has each target checked, and fixes the route of a wake.
pub(super) fn resolve(
    config: &Config,
    spec: &mut Spec,
    check: impl Fn(&Target, &Notify) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(notify) = &mut spec.notify else { return Ok(()) };
    for target in &notify.targets {
        config.notify.check(target.into()).map_err(Error::Forbidden)?;
        // Before the pane: what runs there does not matter while the setting is off.
        if let Target::Wake(Some(whom)) = target
            && let Ok(Address::Tmux(pane)) = whom.parse()
            && !config.wake.tmux
        {
            return Err(NoRoute::TmuxOff(pane).into());
        }
        let route = registry::route(target, spec.session.as_ref(), spec.pane.as_ref())?;
        let named = route.map_or_else(|| target.clone(), |route| route.target());
        check(&named, notify)?;
    }
    // A wake that turns out to be impossible leaves its notice in the inbox.
    let wakes = notify.targets.iter().any(|target| matches!(target, Target::Wake(_)));
    if wakes && !notify.targets.contains(&Target::Inbox) {
        notify.targets.push(Target::Inbox);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use homing_model::notify::When;

    use super::*;

    fn telling(on: When, targets: &[&str]) -> Spec {
        let targets = targets.iter().map(|text| text.parse().unwrap()).collect();
        Spec { notify: Some(Notify { on, targets, secret: None }), ..Spec::default() }
    }

    fn targets(spec: &Spec) -> Vec<String> {
        spec.notify.iter().flat_map(|notify| &notify.targets).map(ToString::to_string).collect()
    }

    #[test]
    fn each_target_is_named_once_and_the_operator_limits_when() {
        let mut spec = telling(When::Always, &["exec:a", "inbox", "exec:a"]);
        let mut config = Config::default();
        config.notify.on = When::Never;
        limit(&config, &mut spec);
        assert_eq!(targets(&spec), ["exec:a", "inbox"]);
        assert_eq!(spec.notify.map(|notify| notify.on), Some(When::Never));
    }

    #[test]
    fn a_wake_leaves_its_notice_in_the_inbox_too() {
        let session = registry::session_of("claude:s1");
        let mut spec = Spec { session, ..telling(When::Always, &["wake"]) };
        resolve(&Config::default(), &mut spec, |_, _| Ok(())).unwrap();
        assert_eq!(targets(&spec), ["wake", "inbox"]);
        let mut spec = telling(When::Always, &["exec:a"]);
        resolve(&Config::default(), &mut spec, |_, _| Ok(())).unwrap();
        assert_eq!(targets(&spec), ["exec:a"]);
    }

    #[test]
    fn a_target_that_the_check_refuses_is_refused() {
        let refused = resolve(&Config::default(), &mut telling(When::Always, &["exec:a"]), |target, _| {
            Err(Error::Target(target.to_string()))
        });
        assert!(matches!(refused, Err(Error::Target(ref target)) if target == "exec:a"), "{refused:?}");
        let refused = resolve(&Config::default(), &mut telling(When::Always, &["wake"]), |_, _| Ok(()));
        assert!(matches!(refused, Err(Error::NobodyToWake(_))), "nothing says which session: {refused:?}");
    }
}
