//! What a task takes over from its caller besides the environment: file mode mask, resource limits, niceness.

use std::sync::Mutex;

use homing_model::Rlimit;
use rustix::fs::Mode;
use rustix::process::{self, Resource, getpriority_process, getrlimit};

const RESOURCES: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// The mask, which can only be asked for by setting it, and is as it was in a moment; a file that another thread made meanwhile would be closed
/// to others. `/proc/self/status` has it too, and takes longer than everything else here.
pub(crate) fn umask() -> u32 {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    let mask = process::umask(Mode::RWXG | Mode::RWXO);
    process::umask(mask);
    mask.as_raw_mode()
}

/// Every limit of this process.
pub(crate) fn rlimits() -> Vec<Rlimit> {
    RESOURCES
        .iter()
        .map(|resource| {
            let limit = getrlimit(*resource);
            Rlimit { resource: *resource as u32, soft: limit.current, hard: limit.maximum }
        })
        .collect()
}

/// The niceness of this process.
pub(crate) fn nice() -> Option<i32> {
    getpriority_process(None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_as_it_was_after_it_was_asked_for() {
        let asked = umask();
        assert!(asked <= 0o777);
        assert_eq!(umask(), asked);
    }

    #[test]
    fn limits_and_niceness_pass_the_checks_of_a_spec() {
        let spec = homing_model::Spec {
            argv: vec!["true".into()],
            rlimits: rlimits(),
            nice: nice(),
            umask: Some(umask()),
            ..homing_model::Spec::default()
        };
        assert_eq!(spec.validate(), Ok(()));
        assert_eq!(spec.rlimits.len(), 16);
        assert_eq!(spec.rlimits.last().map(|limit| limit.resource), Some(15));
    }
}
