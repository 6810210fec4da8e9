//! `okt-sidecar`, for demos and tests of this crate: Cargo builds it with them.

fn main() -> std::process::ExitCode {
    okt_sidecar::main()
}
