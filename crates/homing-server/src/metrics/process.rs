//! This process as the kernel sees it, under the names that every dashboard knows.

use homing_model::Timestamp;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::text::{Exposition, Kind};

/// What it takes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Process {
    resident_bytes: u64,
    virtual_bytes: u64,
    open_files: u64,
    most_files: u64,
    cpu_micros: u64,
}

impl Process {
    /// Looks. What cannot be seen is 0.
    pub(crate) fn look() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        Self {
            resident_bytes: kib("VmRSS:").unwrap_or_default() * 1024,
            virtual_bytes: kib("VmSize:").unwrap_or_default() * 1024,
            // Less the one by which the folder is read.
            open_files: std::fs::read_dir("/proc/self/fd")
                .map_or(0, |all| all.count() as u64)
                .saturating_sub(1),
            most_files: getrlimit(Resource::Nofile).current.unwrap_or_default(),
            cpu_micros: u64::try_from(spent.tv_sec * 1_000_000 + spent.tv_nsec / 1_000).unwrap_or_default(),
        }
    }
}

pub(super) fn write(page: &mut Exposition, process: &Process, started_at: Timestamp) {
    page.family("process_resident_memory_bytes", Kind::Gauge, "Memory that the daemon has.");
    page.sample(&[], process.resident_bytes);
    page.family("process_virtual_memory_bytes", Kind::Gauge, "Addresses that the daemon has.");
    page.sample(&[], process.virtual_bytes);
    page.family("process_open_fds", Kind::Gauge, "Descriptors that the daemon has open.");
    page.sample(&[], process.open_files);
    page.family("process_max_fds", Kind::Gauge, "How many it may have.");
    page.sample(&[], process.most_files);
    page.family("process_cpu_seconds_total", Kind::Counter, "Time on a processor.");
    page.scaled(&[], process.cpu_micros, 1_000_000);
    page.family("process_start_time_seconds", Kind::Gauge, "When the daemon began, since 1970.");
    page.scaled(&[], u64::try_from(started_at.as_millis()).unwrap_or_default(), 1_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_this_process_takes() {
        let process = Process::look();
        assert!(process.resident_bytes > 1 << 20 && process.virtual_bytes > process.resident_bytes);
        assert!(process.open_files > 2 && process.most_files >= process.open_files && process.cpu_micros > 0);
    }
}
