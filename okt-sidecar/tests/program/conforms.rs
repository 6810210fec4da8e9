//! The program conforms to the protocol, and checks whether another agent does.

use crate::site::{Run, Site};

const WORK: &str = "
probe: { command: [echo, Running] }
states:
  Quick: { command: [sleep, \"0.5\"] }
  Broken: { command: [\"false\"] }
  Endless: { command: [sleep, \"600\"] }
";

fn conform(site: &Site, address: &str, only: &[&str]) -> Run {
    let mut command = site.command(&["conform", address, "--brief", "Quick"]);
    command.args(["--failing", "Broken", "--endless", "Endless"]);
    if !only.is_empty() {
        command.arg("--only").args(only);
    }
    Run::of(&mut command)
}

#[test]
fn an_agent_made_of_commands_keeps_every_rule() {
    let site = Site::running(WORK);
    let socket = format!("unix:{}", site.path("socket").display());
    let Run { code, out, err } = conform(&site, &socket, &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.ends_with("48 checks, 0 broken\n"), "{out}");
}

#[test]
fn a_person_frees_an_agent_that_does_not_run() {
    let mut site = Site::running(WORK);
    site.done("Quick");
    let free = |site: &Site| site.run(&["free", "okt.yaml"]);
    let Run { code, err, .. } = free(&site);
    assert_eq!(code, Some(1), "it runs");
    assert!(err.contains("belongs to an agent that runs"), "{err}");
    site.kill();
    for out in [
        "the agent belonged to shop/orders (u1)\n",
        "the agent belonged to no object\n",
    ] {
        let freed = Run {
            code: Some(0),
            out: out.to_owned(),
            err: String::new(),
        };
        assert_eq!(free(&site), freed);
    }
}

#[test]
fn a_missing_agent_a_bad_address_and_an_unknown_check_are_reported() {
    let site = Site::new(WORK);
    let nowhere = "unix:/nowhere/agent.sock";
    let Run { code, out, .. } = conform(&site, nowhere, &[]);
    assert_eq!(code, Some(1));
    assert!(out.starts_with("BROKEN  answers: "), "{out}");
    let Run { code, err, .. } = conform(&site, "nowhere", &[]);
    assert_eq!(code, Some(2));
    assert!(err.contains("http://"), "{err}");
    let Run { code, err, .. } = conform(&site, nowhere, &["statuses"]);
    assert_eq!(code, Some(2));
    let known = "no check `statuses`, there are versions, ";
    assert!(err.contains(known), "{err}");
}
