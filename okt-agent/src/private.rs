//! Directories that only the agent's user can change, and their locks.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// How long a lock may be held by a process that a killed agent was about to start.
///
/// Such a process holds the files of the agent until it executes its program.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// Opens a file and locks it; waits up to two seconds for the lock. Returns `None` if another process keeps it.
///
/// The file is created if it is missing, and must not be a symbolic link.
///
/// # Errors
///
/// The file cannot be opened or locked. A retry helps after a person has fixed the cause.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(path)?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_LIMIT => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Creates a directory with this mode, or checks that an existing one can be trusted.
///
/// The name of a new directory is on disk before this returns.
/// An existing directory must not be a symbolic link, must belong to the agent's user, and must not be writable by
/// others.
/// Further permissions of its group and of others are removed: a volume with an `fsGroup` gets them at each mount.
///
/// # Errors
///
/// The directory cannot be created or trusted. A retry helps after a person has fixed the cause.
pub fn directory(
    path: &Path,
    mode: u32,
    mut sync: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    make(path, mode, &mut sync)?;
    let no_link = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(no_link.bits().cast_signed());
    let opened = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::NotADirectory => refused("it is no directory, or a symbolic link to one"),
        _ => error,
    })?;
    let about = opened.metadata()?;
    let (own, found) = (geteuid().as_raw(), about.uid());
    if found != own {
        let why = format!("it belongs to user {found}, not to user {own}");
        return Err(refused(&why));
    }
    let is = about.mode() & 0o7777;
    if is & 0o002 != 0 {
        return Err(refused("everybody can write to it: chmod o-w"));
    }
    if is & 0o777 & !mode != 0 {
        opened.set_permissions(Permissions::from_mode(is & (mode | 0o7000)))?;
    }
    Ok(())
}

fn make(path: &Path, mode: u32, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = DirBuilder::new();
    builder.mode(mode);
    let made = match builder.create(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(parent, mode, sync)?;
            builder.create(path)
        }
        made => made,
    };
    match made {
        Ok(()) => sync(parent).inspect_err(|_| {
            // Otherwise the next caller would find the directory and assume that its name is on disk.
            let _ = fs::remove_dir(path);
        }),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Syncs the names in a directory to disk.
///
/// # Errors
///
/// If the directory cannot be opened or written; a retry may help.
pub fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::path::PathBuf;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn try_it(path: &Path) -> Result<(), String> {
        directory(path, 0o700, sync).map_err(|error| error.to_string())
    }

    #[test]
    fn a_lock_that_is_released_a_moment_later_is_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let other = file.reopen().unwrap();
        other.lock().unwrap();
        let release = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(other);
        });
        assert!(lock(file.path()).unwrap().is_some());
        release.join().unwrap();
    }

    #[test]
    fn another_users_directory_a_link_and_a_world_writable_directory_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("real")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        assert!(try_it(&at("link")).unwrap_err().contains("symbolic link"));
        fs::write(at("file"), "").unwrap();
        assert!(try_it(&at("file")).unwrap_err().contains("no directory"));
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("open"), Permissions::from_mode(0o777)).unwrap();
        let why = try_it(&at("open")).unwrap_err();
        assert!(why.contains("everybody can write"), "{why}");
        if geteuid().is_root() {
            fs::create_dir(at("theirs")).unwrap();
            chown(at("theirs"), Some(4711), Some(4711)).unwrap();
            let why = try_it(&at("theirs")).unwrap_err();
            assert!(why.contains("belongs to user 4711"), "{why}");
        } else {
            eprintln!("not root: not tested with a directory of another user");
        }
    }

    #[test]
    fn a_directory_is_created_or_narrowed_to_its_mode_and_its_name_is_on_disk() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        let mut synced: Vec<PathBuf> = Vec::new();
        let made = directory(&deep, 0o700, |parent| {
            synced.push(parent.to_owned());
            sync(parent)
        });
        made.unwrap();
        let parents = ["", "a", "a/b"].map(|name| root.path().join(name));
        assert_eq!(synced, parents);
        assert_eq!(mode(&deep), 0o700);
        fs::set_permissions(&deep, Permissions::from_mode(0o2770)).unwrap();
        directory(&deep, 0o711, |_| panic!("it was there")).unwrap();
        assert_eq!(mode(&deep), 0o2710);
    }

    #[test]
    fn a_directory_whose_name_cannot_be_synced_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a");
        let failed = directory(&path, 0o700, |_| Err(io::Error::other("the disk")));
        assert!(failed.is_err() && !path.exists());
    }
}
