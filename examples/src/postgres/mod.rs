//! A real PostgreSQL and its life: an operator without code for its states, beside an agent with a file of commands.
//!
//! | what | file |
//! |---|---|
//! | the states, the resource | `life` |
//! | the operator, which only knows where the agents are | `operator` |
//! | a server's directory, with the file and the scripts of its agent (`examples/postgres`) | `server` |
//! | the processes of a show or a test, and their end | `stage` |
//! | somebody who commits rows all the time | `writer` |

pub mod life;
pub mod operator;
pub mod server;
pub mod stage;
pub mod writer;
