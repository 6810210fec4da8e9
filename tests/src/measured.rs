//! What benchmarks share that set two programs side by side: a server, a process seen from outside, its count, and a table.

mod host;
mod process;
mod table;
mod tally;

pub use host::{Host, until};
pub use process::{Memory, Process, counted, megabytes, milliseconds, program};
pub use table::Table;
pub use tally::{Figures, Tally};
