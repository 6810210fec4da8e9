//! The operator of `Memcached` objects: in a cluster inside the test, and installed by its manifests on a real API
//! server.
//!
//! There are no servers: the tests write the status of a Deployment that its controller would write.

mod alone;
mod installed;
mod stage;
mod story;
