//! Where the notices of a task may go.

use std::collections::HashSet;

use homing_agents::registry;
use homing_model::route::Address;
use homing_model::{NoRoute, Notify, Spec, Target};

use crate::engine::Inner;
use crate::error::Error;

/// Names each target once, and tells no more than the configuration allows.
pub(super) fn limit(inner: &Inner, spec: &mut Spec) {
    let notify = spec.notify.get_or_insert_with(Notify::usual);
    notify.on = notify.on.at_most(inner.config().notify.on);
    let mut named = HashSet::new();
    notify.targets.retain(|target| named.insert(target.clone()));
}

/// Checks each target, and fixes the route of a wake.
pub(super) fn resolve(inner: &Inner, spec: &mut Spec, network: bool) -> Result<(), Error> {
    let Some(notify) = &mut spec.notify else { return Ok(()) };
    let config = inner.config();
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
        inner.check_target(&named, notify, !network)?;
    }
    // A wake that turns out to be impossible leaves its notice in the inbox.
    let wakes = notify.targets.iter().any(|target| matches!(target, Target::Wake(_)));
    if wakes && !notify.targets.contains(&Target::Inbox) {
        notify.targets.push(Target::Inbox);
    }
    Ok(())
}
