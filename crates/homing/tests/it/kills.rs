//! The daemon is killed at random moments, and everything that was owed still comes. `cargo xtask soak` does the same for longer.

use std::time::Duration;

use homing_testkit::Storm;

#[test]
fn p5_no_webhook_is_lost_or_has_two_ids_whenever_the_daemon_is_killed() {
    let home = super::home();
    let seen = home.webhooks_through_kills(30, 7);
    println!("{seen}");
    // Nobody waited for the patience of anything: neither of an adoption nor of the next pass.
    assert!(seen.slowest < Duration::from_secs(9), "{seen}");
}

#[test]
fn p3_every_reader_of_events_sees_each_once_in_order_while_the_daemon_is_killed() {
    let home = super::home();
    let seen = home.events_through_kills(Storm { events: 10_000, clients: 3, kills: 20, seed: 7 });
    println!("{seen}");
    assert!(seen.events >= 10_000 && seen.daemons > 20, "{seen}");
}
