//! Compares the responses of the test double with those of kube-apiserver 1.36.1, word for word.

mod cel_rules;
mod columns;
mod crd_rules;
mod formats;
mod kept;
mod kinds;
mod limits;
mod mutated;
mod requests;
mod support;
