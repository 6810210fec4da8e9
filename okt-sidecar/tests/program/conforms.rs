//! The program conforms to the protocol, and checks whether another agent does.

use std::process::Output;

use crate::site::Site;

const WORK: &str = "
probe: { command: [echo, Running] }
states:
  Quick: { command: [sleep, \"0.5\"] }
  Broken: { command: [\"false\"] }
  Endless: { command: [sleep, \"600\"] }
";

fn conform(site: &Site, address: &str, only: &[&str]) -> Output {
    let states = [
        "--brief",
        "Quick",
        "--failing",
        "Broken",
        "--endless",
        "Endless",
    ];
    let mut command = site.command(&["conform", address]);
    command.args(states);
    if !only.is_empty() {
        command.arg("--only").args(only);
    }
    command.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_agent_made_of_commands_keeps_every_rule() {
    let site = Site::running(WORK);
    let socket = format!("unix:{}", site.path("socket").display());
    let output = conform(&site, &socket, &[]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.ends_with("48 checks, 0 broken\n"), "{said}");
}

#[test]
fn a_person_frees_an_agent_that_does_not_run() {
    let mut site = Site::running(WORK);
    site.done("Quick");
    let free = |site: &Site| {
        let output = site
            .command(&["free", "okt.yaml"])
            .output()
            .expect("it runs");
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (code, _, why) = free(&site);
    assert_eq!(code, Some(1), "it runs");
    assert!(why.contains("belongs to an agent that runs"), "{why}");
    site.kill();
    let freed = "the agent belonged to shop/orders (u1)\n".to_owned();
    assert_eq!(free(&site), (Some(0), freed, String::new()));
    let nobody = "the agent belonged to no object\n".to_owned();
    assert_eq!(free(&site), (Some(0), nobody, String::new()));
}

#[test]
fn a_missing_agent_a_bad_address_and_an_unknown_check_are_reported() {
    let site = Site::new(WORK);
    let nobody = conform(&site, "unix:/nowhere/agent.sock", &[]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(
        text(&nobody.stdout).starts_with("BROKEN  answers: "),
        "{}",
        text(&nobody.stdout)
    );
    let no_address = conform(&site, "nowhere", &[]);
    assert_eq!(no_address.status.code(), Some(2));
    assert!(
        text(&no_address.stderr).contains("http://"),
        "{}",
        text(&no_address.stderr)
    );
    let no_check = conform(&site, "unix:/nowhere/agent.sock", &["statuses"]);
    assert_eq!(no_check.status.code(), Some(2));
    assert!(
        text(&no_check.stderr).contains("no check `statuses`, there are versions, "),
        "{}",
        text(&no_check.stderr)
    );
}
