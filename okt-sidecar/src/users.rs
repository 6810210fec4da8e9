//! The users and groups of this machine, from `/etc/passwd` and `/etc/group`.
//!
//! No other source (such as LDAP) is used: an agent runs in a container or on a server where the users of services are
//! local.

use std::fs;

/// The user and groups of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Person {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// All groups, including the primary one.
    pub(crate) groups: Vec<u32>,
    /// The name and home of a listed user.
    pub(crate) listed: Option<(String, String)>,
}

/// Finds a user by name or number. The group is the user's own one unless another one is given.
pub(crate) fn find(user: Option<&str>, group: Option<&str>) -> Result<Option<Person>, String> {
    let entries = |file: &str| fs::read_to_string(file).unwrap_or_default();
    find_in(user, group, &entries("/etc/passwd"), &entries("/etc/group"))
}

fn find_in(
    user: Option<&str>,
    group: Option<&str>,
    passwd: &str,
    groups: &str,
) -> Result<Option<Person>, String> {
    let gid = match group {
        None => None,
        Some(group) => Some(
            (lines(groups).find(|line| line.first() == Some(&group)))
                .and_then(|line| line.get(2)?.parse().ok())
                .or_else(|| group.parse().ok())
                .ok_or_else(|| format!("there is no group {group:?} in /etc/group"))?,
        ),
    };
    let Some(user) = user else {
        let uid = rustix::process::getuid().as_raw();
        return Ok(gid.map(|gid| Person {
            uid,
            gid,
            groups: vec![gid],
            listed: None,
        }));
    };
    let line = lines(passwd)
        .find(|line| line.first() == Some(&user))
        .or_else(|| lines(passwd).find(|line| line.get(2) == Some(&user)));
    let number = |at: usize| {
        line.as_ref()
            .and_then(|line| line.get(at)?.parse::<u32>().ok())
    };
    let (Some(uid), own) = (number(2).or_else(|| user.parse().ok()), number(3)) else {
        return Err(format!("there is no user {user:?} in /etc/passwd"));
    };
    let Some(gid) = gid.or(own) else {
        return Err(format!(
            "user {user} is not in /etc/passwd: its `group` must be given"
        ));
    };
    let listed = (line.as_ref())
        .and_then(|line| Some(((*line.first()?).to_owned(), (*line.get(5)?).to_owned())));
    let mut all = vec![gid];
    if let Some((name, _)) = &listed {
        all.extend(
            (lines(groups))
                .filter(|line| {
                    line.get(3)
                        .is_some_and(|names| names.split(',').any(|it| it == name))
                })
                .filter_map(|line| line.get(2)?.parse::<u32>().ok())
                .filter(|other| *other != gid),
        );
    }
    Ok(Some(Person {
        uid,
        gid,
        groups: all,
        listed,
    }))
}

fn lines(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines().map(|line| line.trim().split(':').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0::/root:/bin/sh\npostgres:x:70:71:,,,:/var/lib/postgresql:/bin/sh\n";
    const GROUP: &str = "root:x:0:\npostgres:x:71:\nssl-cert:x:101:www,postgres\nbackup:x:34:\n";

    fn person(user: Option<&str>, group: Option<&str>) -> Result<Option<Person>, String> {
        find_in(user, group, PASSWD, GROUP)
    }

    #[test]
    fn a_user_has_its_own_group_and_those_that_list_it() {
        let found = person(Some("postgres"), None)
            .expect("listed")
            .expect("named");
        assert_eq!((found.uid, found.groups), (70, vec![71, 101]));
        let other = person(Some("postgres"), Some("backup"))
            .expect("listed")
            .expect("named");
        assert_eq!((other.gid, other.groups), (34, vec![34, 101]));
    }

    #[test]
    fn a_number_is_a_user_too_and_needs_a_group_if_it_is_not_listed() {
        assert_eq!(
            person(Some("70"), None)
                .expect("listed")
                .expect("named")
                .gid,
            71
        );
        let error = person(Some("4711"), None).expect_err("no group is known");
        assert_eq!(
            error,
            "user 4711 is not in /etc/passwd: its `group` must be given"
        );
        assert_eq!(
            person(Some("4711"), Some("5"))
                .expect("given")
                .expect("named")
                .gid,
            5
        );
        assert_eq!(
            person(Some("nobdy"), None).expect_err("not there"),
            "there is no user \"nobdy\" in /etc/passwd"
        );
    }
}
