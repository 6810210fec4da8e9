//! The program `okt-sidecar`: its file, and real processes below it.

mod application;
mod commands;
mod conforms;
mod floods;
mod full;
mod kills;
mod probes;
mod site;
mod wrong_files;
