//! Many shims are killed at one moment: each task is `lost` and each tree gone, and the daemon answers meanwhile.

use homing_testkit::alive;

use super::home;

#[test]
fn p2_many_shims_killed_at_once_are_lost_together_with_their_trees() {
    for with_daemon in [false, true] {
        let home = home();
        let ids: Vec<_> = (0..24)
            .map(|number| home.submit(&[], &format!("sleep 300 & echo $! > child{number}; wait")))
            .collect();
        let mut unnamed: Vec<_> =
            (0..ids.len()).map(|number| home.told_pid(&format!("child{number}"))).collect();
        let mut victims: Vec<_> = ids.iter().map(|id| home.shim_pid(id)).collect();
        if with_daemon {
            victims.extend([home.keeper_pid(), home.daemon_pid()]);
        }
        home.kill_at_once(&victims);
        // The first question is answered, whatever there is to do.
        let _ = home.cli(["status"]).ok();
        for id in &ids {
            let task = home.ended(id);
            assert_eq!(task["status"], "lost", "{task}");
            // Those whom the kernel has not ended yet are named, and killed all the same.
            let named = task["outcome"]["survivors"].as_array().unwrap();
            let named: Vec<_> = named.iter().map(|survivor| survivor["pid"].as_u64().unwrap()).collect();
            unnamed.retain(|pid| !named.contains(&u64::from(*pid)));
        }
        let left: Vec<_> = unnamed.iter().filter(|pid| alive(**pid)).collect();
        assert!(left.is_empty(), "{left:?}");
        home.nothing_left();
    }
}
