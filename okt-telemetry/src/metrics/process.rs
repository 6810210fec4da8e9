//! The process itself, under the names that the clients of Prometheus have in all languages.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

/// The process, read from `/proc` whenever the metrics are read; on other systems it has no metrics.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    #[cfg(target_os = "linux")]
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // A process that cannot be read has no metrics.
        linux::Numbers::read().map_or(Ok(()), |numbers| numbers.encode(encoder))
    }

    #[cfg(not(target_os = "linux"))]
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt;

    use procfs::process::{LimitValue, Process};
    use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
    use prometheus_client::metrics::MetricType;
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;

    use crate::metrics::now::whole;

    pub(super) struct Numbers {
        cpu_seconds: f64,
        start_seconds: f64,
        resident: u64,
        virtual_: u64,
        open_files: usize,
        most_files: Option<u64>,
    }

    impl Numbers {
        pub(super) fn read() -> Option<Self> {
            let process = Process::myself().ok()?;
            let stat = process.stat().ok()?;
            let seconds = |ticks: u64| seconds(ticks, procfs::ticks_per_second());
            let booted = procfs::boot_time_secs().ok()?;
            let most_files =
                process
                    .limits()
                    .ok()
                    .and_then(|limits| match limits.max_open_files.soft_limit {
                        LimitValue::Value(most) => Some(most),
                        LimitValue::Unlimited => None,
                    });
            Some(Self {
                cpu_seconds: seconds(stat.utime.saturating_add(stat.stime)),
                start_seconds: whole(booted) + seconds(stat.starttime),
                resident: stat.rss.saturating_mul(procfs::page_size()),
                virtual_: stat.vsize,
                open_files: process.fd_count().ok()?,
                most_files,
            })
        }

        pub(super) fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let cpu = encoder.encode_descriptor(
                "process_cpu_seconds",
                "Total user and system CPU time spent in seconds",
                None,
                MetricType::Counter,
            )?;
            ConstCounter::new(self.cpu_seconds).encode(cpu)?;
            let most_files = self.most_files.map(whole);
            for (name, help, number) in [
                (
                    "process_start_time_seconds",
                    "Start time of the process since unix epoch in seconds",
                    Some(self.start_seconds),
                ),
                (
                    "process_resident_memory_bytes",
                    "Resident memory size in bytes",
                    Some(whole(self.resident)),
                ),
                (
                    "process_virtual_memory_bytes",
                    "Virtual memory size in bytes",
                    Some(whole(self.virtual_)),
                ),
                (
                    "process_open_fds",
                    "Number of open file descriptors",
                    Some(whole(u64::try_from(self.open_files).unwrap_or(u64::MAX))),
                ),
                (
                    "process_max_fds",
                    "Maximum number of open file descriptors",
                    most_files,
                ),
            ] {
                if let Some(number) = number {
                    let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                    ConstGauge::new(number).encode(gauge)?;
                }
            }
            Ok(())
        }
    }

    fn seconds(ticks: u64, per_second: u64) -> f64 {
        whole(ticks) / whole(per_second.max(1))
    }
}
