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
    let lookup = group.map(|group| {
        let listed = lines(groups).find(|line| line.first() == Some(&group));
        let gid = listed.and_then(|line| line.get(2)?.parse().ok());
        gid.or_else(|| group.parse().ok())
            .ok_or_else(|| format!("there is no group {group:?} in /etc/group"))
    });
    let gid = lookup.transpose()?;
    let Some(user) = user else {
        return Ok(gid.map(|gid| Person {
            uid: rustix::process::getuid().as_raw(),
            gid,
            groups: vec![gid],
            listed: None,
        }));
    };
    let line = lines(passwd)
        .find(|line| line.first() == Some(&user))
        .or_else(|| lines(passwd).find(|line| line.get(2) == Some(&user)));
    let number = |at: usize| line.as_ref()?.get(at)?.parse::<u32>().ok();
    let (Some(uid), own) = (number(2).or_else(|| user.parse().ok()), number(3)) else {
        return Err(format!("there is no user {user:?} in /etc/passwd"));
    };
    let gid = gid
        .or(own)
        .ok_or_else(|| format!("user {user} is not in /etc/passwd: its `group` must be given"))?;
    let text = |at: usize| Some((*line.as_ref()?.get(at)?).to_owned());
    let listed = text(0).zip(text(5));
    let mut all = vec![gid];
    if let Some((name, _)) = &listed {
        let lists = |names: &&str| names.split(',').any(|it| it == name);
        let listing = lines(groups).filter(|line| line.get(3).is_some_and(lists));
        let further = listing.filter_map(|line| line.get(2)?.parse::<u32>().ok());
        all.extend(further.filter(|other| *other != gid));
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

    fn person(user: &str, group: Option<&str>) -> Result<Person, String> {
        let found = find_in(Some(user), group, PASSWD, GROUP);
        found.map(|found| found.expect("a user was named"))
    }

    #[test]
    fn a_user_has_its_own_group_and_those_that_list_it() {
        let found = person("postgres", None).expect("listed");
        assert_eq!((found.uid, found.groups), (70, vec![71, 101]));
        let other = person("postgres", Some("backup")).expect("listed");
        assert_eq!((other.gid, other.groups), (34, vec![34, 101]));
    }

    #[test]
    fn a_number_is_a_user_too_and_needs_a_group_if_it_is_not_listed() {
        assert_eq!(person("70", None).expect("listed").gid, 71);
        assert_eq!(person("4711", Some("5")).expect("given").gid, 5);
        let why = "user 4711 is not in /etc/passwd: its `group` must be given";
        assert_eq!(person("4711", None), Err(why.to_owned()));
        let why = "there is no user \"nobdy\" in /etc/passwd";
        assert_eq!(person("nobdy", None), Err(why.to_owned()));
    }
}
