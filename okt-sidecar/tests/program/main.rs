//! The program `okt-sidecar`: its configuration file, and real processes that it runs.

mod application;
mod commands;
mod conforms;
mod floods;
mod full;
mod installs;
mod kills;
mod probes;
mod site;
mod wrong_files;
