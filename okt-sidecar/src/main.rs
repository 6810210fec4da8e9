//! The program `okt-sidecar`: an agent that a file configures.

fn main() -> std::process::ExitCode {
    okt_sidecar::main()
}
