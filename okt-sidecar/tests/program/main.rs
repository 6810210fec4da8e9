//! The program `okt-sidecar`: its file, and real processes below it.

mod wrong_files;
