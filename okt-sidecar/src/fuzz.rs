//! Almost valid texts of people and of the application: each is read or refused, without a panic.

use std::path::Path;

use okt_fuzz::check;

use super::config::{Config, Machine};
use super::{probe, proc, recognise, scratch};

const FILE: &str = "\
listen: 0.0.0.0:8470
tokenFile: /etc/okt-sidecar/token
tls: { certificate: /etc/tls.crt, key: /etc/tls.key, clientCa: /etc/ca.crt }
data: /var/lib/okt-sidecar
object: { namespace: shop, name: orders }
limits: { connections: 256, outputBytes: 65536, stopping: 10s }
application:
  command: [postgres, -D, /data]
  user: postgres
  environment: &environment
    PATH: /usr/bin:/bin
  stop:
    - { signal: INT, wait: 30s }
  recognise: { pidFile: /data/postmaster.pid, name: postgres, directory: /data }
  down: Stopped
  onExit: stop
probe:
  command: [pg_isready, -q]
  environment: *environment
  exits: { 0: Running, 1: Starting }
  every: 2s
states:
  Starting: { application: start, until: Running, timeout: 5m }
  Servicing:
    command: [pg_basebackup, -D, /backups/new]
    permanent: [2]
  Reconfiguring:
    http: { method: PUT, url: \"http://127.0.0.1:8008/config\", expect: [200, 202] }
";

#[test]
fn every_configuration_is_accepted_or_its_mistakes_are_reported() {
    let lines: Vec<&str> = FILE.lines().collect();
    check(700, |dice| {
        let mut text = lines.clone();
        for _ in 0..dice.below(3) {
            let at = dice.below(text.len());
            match dice.below(3) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, lines[dice.below(lines.len())]),
                _ => {
                    let other = dice.below(text.len());
                    text.swap(at, other);
                }
            }
        }
        let mut text = text.join("\n").into_bytes();
        if dice.below(4) > 0 {
            text = dice.bytes(&text);
        }
        let text = String::from_utf8_lossy(&text);
        if let Err(error) = Config::parse(Path::new("okt.yaml"), &text, Machine::Elsewhere) {
            let message = error.to_string();
            let length = message.len();
            assert!(message.contains("okt.yaml:"), "{message}");
            assert!(length < 64 * 1024 + 2 * text.len(), "{length} bytes");
        }
    });
}

#[test]
fn a_configuration_that_is_too_deep_or_expands_without_end_is_refused() {
    for text in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        format!(
            "a: &a [x]\n{}",
            (0..50)
                .map(|n| format!("b{n}: &b{n} [*a, *a, *a, *a]\na: &a [*b{n}, *b{n}]\n"))
                .collect::<Vec<_>>()
                .concat()
        ),
    ] {
        assert!(Config::parse(Path::new("okt.yaml"), &text, Machine::Elsewhere).is_err());
    }
}

#[test]
fn every_pid_file_names_one_process_or_none() {
    check(20_000, |dice| {
        let text = dice.bytes(b"4711\n/data\n1763800000\n5432\n");
        assert!(recognise::pid_in(&text).is_none_or(|pid| pid > 1));
    });
}

#[test]
fn every_result_of_a_command_is_accepted_or_refused_with_its_line() {
    let seed = b"event: Reviewing\nmessage: 3 of 4 files\nreason: DiskFull\npermanent: true\n";
    check(20_000, |dice| {
        let text = String::from_utf8_lossy(&dice.bytes(seed)).into_owned();
        if let Err(why) = scratch::parse(&text) {
            assert!(why.contains(" of OKT_RESULT"), "{why}");
        }
    });
}

#[test]
fn every_answer_of_a_probe_is_accepted_or_refused_with_a_reason() {
    check(20_000, |dice| {
        let text = dice.bytes(b"Running Promoted Upgradable\nmore\n");
        if let Err(why) = probe::read(&text) {
            assert!(
                why.contains("answer of the probe") && why.len() < 4096,
                "{why}"
            );
        }
    });
}

#[test]
fn every_stat_line_of_the_kernel_is_a_process_or_none() {
    let seed = b"7 (a) Z 1 (b) S 3 5 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 9 9";
    check(20_000, |dice| {
        // A process chooses its own name.
        let text = String::from_utf8_lossy(&dice.bytes(seed)).into_owned();
        let _ = proc::parse(&text);
    });
}
