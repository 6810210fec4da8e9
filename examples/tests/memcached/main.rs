//! The operator of `Memcached` objects: in a cluster inside the test, and installed by its own manifests on a real API server.
//!
//! There are no servers: the tests say of a Deployment what its controller would.

mod alone;
mod installed;
mod stage;
mod story;
