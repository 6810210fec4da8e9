//! Checks that this machine has the programs, users and files of a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use super::fields::Field;
use super::mistakes::nearest;
use super::{CommandEnvironment, DEFAULT_PATH};

/// Checks that the program of a command exists and is executable.
pub(super) fn program(field: &Field<'_>, name: &str, environment: &BTreeMap<String, String>) {
    if name.contains('/') {
        if let Err(why) = runs(Path::new(name)) {
            field.wrong(format!("{name} {why}"));
        }
        return;
    }
    let path = match environment.get("PATH") {
        Some(path) => path.clone(),
        None => env::var("PATH").unwrap_or_else(|_| DEFAULT_PATH.to_owned()),
    };
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    if directories.iter().any(|it| runs(&it.join(name)).is_ok()) {
        return;
    }
    let likely = match alike(name, &directories) {
        Some(likely) => format!(", did you mean {likely:?}?"),
        None => String::new(),
    };
    field.wrong(format!(
        "there is no program {name:?} in PATH ({path}){likely}"
    ));
}

fn runs(program: &Path) -> Result<(), String> {
    let about = fs::metadata(program).map_err(|error| format!("cannot be run: {error}"))?;
    if !about.is_file() {
        return Err("is no file".to_owned());
    }
    if about.permissions().mode() & 0o111 == 0 {
        return Err("is not executable: chmod +x".to_owned());
    }
    Ok(())
}

fn alike(name: &str, directories: &[PathBuf]) -> Option<String> {
    let entries = directories.iter().filter_map(|it| fs::read_dir(it).ok());
    let files = entries.flatten().flatten().map(|entry| entry.file_name());
    let names: BTreeSet<String> = files.flat_map(OsString::into_string).collect();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    nearest(name, &texts).map(str::to_owned)
}

/// Checks that the user, the group and the directory exist, and that the agent may use them.
pub(super) fn surroundings(fields: [Option<&Field<'_>>; 3], around: &CommandEnvironment) {
    let [user, group, directory] = fields;
    if let Some(field) = user.or(group) {
        let me = geteuid();
        match around.person() {
            Err(why) if why.contains("no group") => group.unwrap_or(field).wrong(why),
            Err(why) => field.wrong(why),
            Ok(Some(person)) if !me.is_root() && person.uid != me.as_raw() => field.wrong(format!(
                "only root can run something as another user, and the agent is user {}",
                me.as_raw()
            )),
            Ok(Some(person)) if !me.is_root() && person.gid != getegid().as_raw() => {
                field.wrong("only root can run something as another group");
            }
            Ok(_) => {}
        }
    }
    if let (Some(field), Some(path)) = (directory, &around.directory)
        && !path.is_dir()
    {
        field.wrong(format!("{} is no directory", path.display()));
    }
}

/// Checks that a file that the agent reads exists.
pub(super) fn file(field: &Field<'_>, path: &Path) {
    if let Err(error) = fs::File::open(path) {
        field.wrong(format!("cannot read {}: {error}", path.display()));
    }
}
