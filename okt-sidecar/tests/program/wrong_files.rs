//! Wrong configuration files and their errors, in one readable text.

use std::fs;
use std::path::Path;

use expect_test::expect_file;
use okt_sidecar::{Config, Machine};

/// A valid file, to which one change is applied.
const RIGHT: &str = "\
listen: 127.0.0.1:8470
data: /var/lib/okt-sidecar
application:
  command: [/usr/bin/env, sleep, \"1000\"]
  stop:
    - { signal: INT, wait: 20s }
probe:
  command: [sh, -c, echo Running]
  every: 1s
states:
  Starting:
    application: start
    until: Running
  Servicing:
    command: [sh, -c, exit 0]
    timeout: 40m
";

/// In YAML, what is wrong, and then either a whole file, or a replacement in the valid one.
const FILES: &str = r#"
- [an empty file, ""]
- [no YAML, "listen: [127.0.0.1:8470\ndata: /var\n"]
- [a key twice, "listen: 127.0.0.1:8470\nlisten: 127.0.0.1:8471\n"]
- [a list, "- listen\n"]
- [everything missing, "{}\n"]
- [a misspelt key, "listen:", "lisen:"]
- [a key of nobody, "states:", "replicas: 3\nstates:"]
- [an address without a port, "127.0.0.1:8470", "127.0.0.1"]
- [a name for an address, "127.0.0.1:8470", "localhost:8470"]
- [all addresses without a token, "127.0.0.1:8470", "0.0.0.0:8470"]
- [a socket of a relative path, "127.0.0.1:8470", "unix:agent.sock"]
- [a mode that is none, "127.0.0.1:8470", "unix:/run/a.sock\nsocketMode: rw-rw----"]
- [a mode without a socket, "data:", "socketMode: \"0660\"\ndata:"]
- [a token that is not there, "data:", "tokenFile: /nowhere/token\ndata:"]
- [a certificate without its key, "data:", "tls: { certificate: /etc/passwd }\ndata:"]
- [a relative directory, "/var/lib/okt-sidecar", "journal"]
- [a limit out of range, "data:", "limits: { connections: 0, outputBytes: 64KiB }\ndata:"]
- [a time without a unit, "every: 1s", "every: 1"]
- [a time that is none, "timeout: 40m", "timeout: soon"]
- [a time of a year, "timeout: 40m", "timeout: 8760h"]
- [a command in one line, "[sh, -c, exit 0]", "pg_basebackup -D /backup"]
- [a command without words, "[sh, -c, exit 0]", "[]"]
- [a program that is not there, "[sh, -c, exit 0]", "[/nowhere/pg_basebackup]"]
- [a program that is a directory, "[sh, -c, exit 0]", "[/tmp]"]
- [a program that is not executable, "[sh, -c, exit 0]", "[/etc/passwd]"]
- [a program of a relative path, "[sh, -c, exit 0]", "[bin/backup]"]
- [a user that is not there, "timeout: 40m", "user: postgers-nobody"]
- [a group that is not there, "timeout: 40m", "group: postgers-nobody"]
- [a directory that is not there, "timeout: 40m", "directory: /nowhere"]
- [a variable of the agent's own, "timeout: 40m", "environment: { OKT_STATE: x }"]
- [a signal that cannot be caught, "signal: INT", "signal: KILL"]
- [a signal in full, "signal: INT", "signal: SIGINT"]
- [a state's name with a dash, "Servicing:", "being-serviced:"]
- [two things to do, "timeout: 40m", "application: stop"]
- [steps beside a command, "timeout: 40m", "steps: [{ application: stop }]"]
- [nothing to do, "command: [sh, -c, exit 0]", "repeatable: true"]
- [an action that is none, "application: start", "application: strat"]
- [an application that is none, "application:\n  command: [/usr/bin/env, sleep, \"1000\"]\n  stop:\n    - { signal: INT, wait: 20s }\n", ""]
- [a pid file and no name, "  command: [/usr/bin/env", "  recognise: { pidFile: /run/x.pid }\n  command: [/usr/bin/env"]
- [an application that nobody can find, "command: [/usr/bin/env, sleep, \"1000\"]", "onExit: leave"]
- [a stop that is longer than its time, "application: start", "application: stop\n    timeout: 10s"]
- [a word for a flag, "timeout: 40m", "repeatable: maybe"]
- [an exit code out of range, "timeout: 40m", "permanent: [0, 3]"]
- [a URL of another kind, "command: [sh, -c, exit 0]", "http: { url: \"ftp://x/\", method: GTE }"]
- [a probe of two kinds, "every: 1s", "http: http://127.0.0.1:1/"]
- [statuses of a command, "every: 1s", "statuses: { 200: Running }"]
- [an answer that is none, "every: 1s", "exits: { 0: running, up: Running }"]
- [until nothing, "until: Running", "until: ready"]
- [many things at once, "listen: here\ndata: there\nprobe: { http: nowhere, evry: 1s }\nstates: { Start: { aplication: start } }\n"]
"#;

#[test]
fn each_mistake_is_reported_with_its_line_and_key() {
    let files: Vec<Vec<String>> = serde_saphyr::from_str(FILES).expect("lists of texts");
    let mut read = String::new();
    for file in &files {
        let (what, text, done) = match &file[..] {
            [what, whole] => (what, whole.clone(), whole.clone()),
            [what, from, to] => {
                assert!(RIGHT.contains(from), "{from:?} is not in the valid file");
                (
                    what,
                    RIGHT.replacen(from, to, 1),
                    format!("{from}  ->  {to}"),
                )
            }
            _ => panic!("{file:?}"),
        };
        let done = done.trim_end().replace('\n', "\n    | ");
        let Err(error) = Config::parse(Path::new("okt.yaml"), &text, Machine::Here) else {
            panic!("{what}: no error is reported for\n{text}");
        };
        let error = error.to_string().replace('\n', "\n  ");
        assert!(
            !error.contains("PATH ("),
            "{what}: the text would differ from machine to machine: {error}"
        );
        read += &format!("{what}\n    | {done}\n  {error}\n\n");
    }
    expect_file!["wrong_files.txt"].assert_eq(&read);
}

#[test]
fn the_valid_file_is_accepted() {
    Config::parse(Path::new("okt.yaml"), RIGHT, Machine::Here).expect("the file is valid");
}

#[test]
fn a_program_that_is_not_in_path_is_reported_with_a_suggestion() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("pg_basebackup"), "").expect("a file");
    let text = RIGHT.replacen(
        "command: [sh, -c, exit 0]",
        &format!(
            "command: [pg_basebakup]\n    environment: {{ PATH: {} }}",
            directory.path().display()
        ),
        1,
    );
    let error = Config::parse(Path::new("okt.yaml"), &text, Machine::Here).expect_err("misspelt");
    let expected = format!(
        "okt.yaml:15:14: states.Servicing.command: there is no program \"pg_basebakup\" in PATH ({}), did you mean \
         \"pg_basebackup\"?",
        directory.path().display()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_file_that_cannot_be_read_is_reported() {
    let error =
        Config::read(Path::new("/nowhere/okt.yaml"), Machine::Elsewhere).expect_err("nowhere");
    assert_eq!(
        error.to_string(),
        "/nowhere/okt.yaml: cannot read the file: No such file or directory (os error 2)"
    );
}

#[test]
fn the_example_of_the_docs_is_valid() {
    let docs = include_str!("../../../docs/sidecar-config.md");
    let example = docs
        .split_once("```yaml\n")
        .and_then(|(_, rest)| rest.split_once("```"));
    let (example, _) = example.expect("there is one");
    let file = Path::new("docs/sidecar-config.md");
    if let Err(error) = Config::parse(file, example, Machine::Elsewhere) {
        panic!("{error}");
    }
}
