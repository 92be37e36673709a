//! What a task takes over from its caller besides the environment: file mode mask, resource limits, niceness.

use std::io::Read;

use homing_model::Rlimit;
use rustix::process::{Resource, getpriority_process, getrlimit};

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

/// The mask, read without changing it: `umask(2)` can only be asked by setting it.
pub(crate) fn umask() -> Option<u32> {
    // It is among the first lines.
    let mut status = [0; 512];
    let length = std::fs::File::open("/proc/self/status").ok()?.read(&mut status).ok()?;
    parse_umask(&String::from_utf8_lossy(status.get(..length)?))
}

fn parse_umask(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok().filter(|mask| *mask <= 0o777)
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
    fn the_mask_is_read_from_the_status_of_the_process() {
        assert_eq!(parse_umask("Name:\thoming\nUmask:\t0027\nState:\tR\n"), Some(0o27));
        assert_eq!(parse_umask("Name:\thoming\n"), None);
        assert!(umask().is_some());
    }

    #[test]
    fn limits_and_niceness_pass_the_checks_of_a_spec() {
        let spec = homing_model::Spec {
            argv: vec!["true".into()],
            rlimits: rlimits(),
            nice: nice(),
            umask: umask(),
            ..homing_model::Spec::default()
        };
        assert_eq!(spec.validate(), Ok(()));
        assert_eq!(spec.rlimits.len(), 16);
        assert_eq!(spec.rlimits.last().map(|limit| limit.resource), Some(15));
    }
}
