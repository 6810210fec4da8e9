//! Compares the responses of the test double with tables of those of kube-apiserver 1.36.1, word for word. The conformance
//! suite (`tests/tests/conformance`) asks both servers.

mod cel_rules;
mod columns;
mod crd_rules;
mod mutated;
mod openapi;
mod support;
