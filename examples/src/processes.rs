//! The processes of a demo or a test, found by the directory that they work in, so that none outlives it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Returns the processes that name this directory on their command line, or work below it.
pub fn of(home: &Path) -> Vec<Pid> {
    let name = home.to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let place = fs::read_link(process.path().join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&name) || place.starts_with(home)
    })
    .filter_map(|process| process.file_name().to_str()?.parse().ok())
    .filter_map(Pid::from_raw)
    .collect()
}

/// Kills these processes with SIGKILL, and those that appear shortly after.
pub fn end(home: &Path) {
    for _ in 0..3 {
        for process in of(home) {
            // The process may have ended meanwhile.
            let _ = kill_process(process, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(100));
    }
}
