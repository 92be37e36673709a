//! The cgroups of a home are gone when nobody of it is left.

use homing_shim::cgroup;
use homing_testkit::{alive, gate, left_out, wait_for};

use super::home;

#[test]
fn a_home_leaves_no_cgroup_behind_when_its_keeper_leaves() {
    let home = home();
    let Some(base) = cgroup::base(home.path()) else { return left_out("no cgroup can be made here") };
    assert_eq!(home.cli(["run", "--wait", "--", "true"]).code, 0);
    assert!(base.join("daemon").is_dir());
    home.stop_daemon();
    wait_for("the keeper to leave", || home.all_processes().is_empty().then_some(()));
    assert!(!base.exists(), "{base:?} was left behind");
    // And all is made again when it is needed.
    assert_eq!(home.cli(["run", "--wait", "--", "true"]).code, 0);
    assert!(base.join("daemon").is_dir());
}

#[test]
fn the_last_shim_removes_what_the_keeper_had_to_leave() {
    let home = home();
    let Some(base) = cgroup::base(home.path()) else { return left_out("no cgroup can be made here") };
    let id = home.submit(&[], &gate("go"));
    let _ = home.until_status(&id, "running");
    let (shim, keeper) = (home.shim_pid(&id), home.keeper_pid());
    // The next keeper is no parent of this shim, so it does not wait for it.
    home.kill_at_once(&[keeper]);
    wait_for("the next keeper", || (home.keeper_pid() != keeper).then_some(()));
    home.stop_daemon();
    wait_for("the keeper to leave", || {
        home.processes("homing-keeper").iter().all(|it| it.pid == shim).then_some(())
    });
    home.open("go");
    wait_for("the shim to leave", || (!alive(shim)).then_some(()));
    assert!(!base.exists(), "{base:?} was left behind");
}

#[test]
fn cgroups_that_a_task_made_below_its_own_go_with_it() {
    let home = home();
    let Some(base) = cgroup::base(home.path()) else { return left_out("no cgroup can be made here") };
    let make = |name: &str| {
        format!(
            "mkdir -p \"$own/a/b\" \"$own/c\" && sh -c 'echo 0 > '\"$own\"'/a/b/cgroup.procs; echo $$ > {name}; exec sleep 300' &"
        )
    };
    let root = base.parent().expect("a folder above");
    let begin = |name: &str| {
        let line = format!(
            "own={}/$(sed -n s,^0::/*,,p /proc/self/cgroup); {} until [ -s {name} ]; do sleep 0.01; done; {}",
            root.display(),
            make(name),
            gate("never")
        );
        let id = home.submit(&[], &line);
        let inner = home.told_pid(name);
        let own = base.join(format!("{id}.1"));
        assert!(own.join("a/b").is_dir() && own.join("c").is_dir(), "{own:?}");
        let _ = home.until_status(&id, "running");
        (id, inner, own)
    };
    let (id, inner, own) = begin("stopped");
    home.does(["stop", "--grace", "0s", &id]);
    assert!(!alive(inner));
    wait_for("the cgroups to go", || (!own.exists()).then_some(()));
    let (id, inner, own) = begin("lost");
    home.kill_at_once(&[home.shim_pid(&id)]);
    assert_eq!(home.ended(&id)["status"], "lost");
    assert!(!alive(inner));
    assert!(!own.exists(), "{own:?} was left behind");
}
