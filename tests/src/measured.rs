//! The shared parts of benchmarks that compare two programs: a server, a measured process, its
//! counters, and a table.

mod host;
mod process;
mod received;
mod rounds;
mod table;
mod tally;

pub use host::{Host, until};
pub use process::{Memory, Process, counted, megabytes, milliseconds, program};
pub use rounds::rounds;
pub use table::Table;
pub use tally::{Figures, Tally};
