//! These tests reach an application: with commands, HTTP and ports, against a scripted node and application.

mod application;
mod exec;
mod http;
mod node;
mod real;
mod route;
