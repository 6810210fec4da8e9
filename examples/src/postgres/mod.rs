//! A real PostgreSQL: an operator without code for its states, and an agent with a file of commands.
//!
//! | what | file |
//! |---|---|
//! | the states, the resource | `life` |
//! | the operator, which only knows where the agents are | `operator` |
//! | a server's directory, with the file and the scripts of its agent (`examples/postgres`) | `server` |
//! | the same in Kubernetes: the agent in the Pod of a `StatefulSet` | `pods` |
//! | the processes of a show or a test, and their end | `stage` |
//! | a writer that commits rows all the time | `writer` |

pub mod life;
pub mod operator;
pub mod pods;
pub mod server;
pub mod stage;
pub mod writer;
