//! The playground of the book: checks the graphs in a text as the compiler does, and plays an object on one of them with
//! the decisions of the operator.
//!
//! [`check`] and [`play`] take a text and return JSON. For the page they are functions of a module of WebAssembly (`wasm`),
//! which `docs/playground.js` calls.
//!
//! | module | content |
//! |---|---|
//! | `check` | the mistakes of a text, and its graphs |
//! | `object` | an object, its application and its operator |
//! | `play` | what happens to it, step by step |
//! | `wasm` | what the page calls |

mod check;
mod object;
mod play;
mod wasm;

pub use check::check;
pub use play::play;
