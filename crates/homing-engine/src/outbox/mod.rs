//! The outbox: deliveries, each one notice on its way to one target. Keeps P5 and P6.
//!
//! # Theory of operation
//!
//! The transaction that records a notice writes one delivery for each target but the inbox. The
//! [dispatcher] sleeps until something is committed or due, and gives each [`Channel`] with a due
//! delivery a worker of its own: an [endpoint] gets attempts side by side, a
//! [command or wake](handover) gets all that is due in one [hook task](hook). What leaves the
//! machine goes through the injected [`Transport`].
//!
//! **Lease and fence.** A claim holds a delivery until a time and moves its fence. Only the holder
//! of the current fence settles it, so a late answer changes nothing. A claim that is given to a
//! hook task is held until that task ends, by no clock; the transaction that ends the task settles
//! it.
//!
//! **Needed for P5** (no notice is lost): the delivery is written with its notice, settled under its
//! fence, and pending until then. Every attempt has the same notice id and the same bytes, so a
//! receiver recognizes a repetition. **Needed for P6** (an owner is not notified twice): the
//! transaction that hands a wake over checks that the owner does not have the notice and holds its
//! inbox entry. **Not needed for either**: that a lease outlasts its attempt (a shorter one costs
//! another attempt), the map of workers, the permits, and the pauses, which live in memory and only
//! save work.
//!
//! | what dies | what follows | test |
//! |---|---|---|
//! | the daemon, before an attempt | the next one releases the claims and makes it | `p5_with_the_daemon_killed_and_nothing_touched_the_webhook_still_arrives` |
//! | the daemon, after the receiver answered | another attempt with the same id and bytes | `p5_a_crash_after_the_receiver_took_it_gives_one_more_with_the_same_id_and_bytes` |
//! | the daemon, between two attempts | the schedule continues | `p5_the_schedule_goes_on_where_it_was_when_the_engine_is_opened_again` |
//! | the daemon, while a command runs | the shim records its end, which settles | `p5_a_daemon_killed_while_the_command_runs_neither_loses_nor_doubles_it` |
//! | the daemon, while an agent's turn runs | likewise | `p5_one_more_turn_is_run_once_though_the_daemon_is_killed_meanwhile` |
//! | an attempt, beyond its lease | its answer is refused | `p5_a_delivery_is_claimed_once_and_settled_by_who_holds_it` |
//! | the row of a hook task | the reconcile pass releases its deliveries | `p5_a_command_whose_row_is_damaged_holds_up_its_channel_until_the_next_pass_only` |
//!
//! [`Channel`]: homing_model::Channel

pub(crate) mod deliveries;
pub(crate) mod dispatcher;
pub(crate) mod endpoint;
pub(crate) mod handover;
pub(crate) mod hook;
pub(crate) mod transport;
