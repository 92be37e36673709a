//! What a route is called by those who use it: the command, which is also the tool where there is one. Refusals speak of that, since nobody
//! outside knows the names of our routes.

/// The command that leads to a route.
pub(crate) fn of(route: &'static str) -> &'static str {
    match route {
        "submit" => "run",
        "wait_one" => "wait",
        "follow" | "output_file" | "output_index" => "output",
        "inbox_owners" | "take" => "inbox",
        "session" | "bind_session" | "show_session" | "unbind_session" => "hook",
        "listener" => "status",
        "listener_on" => "mcp --http",
        "listener_off" => "mcp --http --off",
        "token_rotate" => "token rotate",
        "daemon_stop" => "daemon stop",
        "config_reload" => "config reload",
        // The others have the name of their command.
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::route_table::ROUTES;

    #[test]
    fn every_route_has_a_name_that_somebody_may_have_typed() {
        // What only programs ask for.
        let no_command = ["signal", "healthy", "metrics", "openapi", "resize"];
        let commands = [
            "ack",
            "attach",
            "complete",
            "config",
            "daemon",
            "deliveries",
            "events",
            "forget",
            "gc",
            "heartbeat",
            "hook",
            "inbox",
            "input",
            "list",
            "mcp",
            "output",
            "pause",
            "progress",
            "redeliver",
            "rerun",
            "resume",
            "run",
            "show",
            "status",
            "stop",
            "token",
            "wait",
            "web",
        ];
        for route in ROUTES.iter().filter(|route| !no_command.contains(&route.name)) {
            let word = of(route.name).split(' ').next().unwrap_or_default();
            assert!(commands.contains(&word), "{}: {word}", route.name);
        }
    }
}
