//! The exit status of a process, as text.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Returns how a process has ended, to follow its name in a message.
pub(super) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => {
            let known = SIGNALS.iter().find(|(number, _)| *number == signal);
            let name = known.map_or_else(String::new, |(_, name)| format!(" ({name})"));
            format!("was ended by signal {signal}{name}")
        }
        (None, None) => "has ended".to_owned(),
    }
}

/// The signals that usually end processes, with their numbers on every Linux architecture but MIPS and SPARC.
const SIGNALS: [(i32, &str); 12] = [
    (1, "HUP"),
    (2, "INT"),
    (3, "QUIT"),
    (4, "ILL"),
    (6, "ABRT"),
    (7, "BUS"),
    (8, "FPE"),
    (9, "KILL"),
    (11, "SEGV"),
    (13, "PIPE"),
    (14, "ALRM"),
    (15, "TERM"),
];
