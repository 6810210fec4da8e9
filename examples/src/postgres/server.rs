//! One PostgreSQL on this machine: its directory, the scripts and the file of its agent.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The scripts that an agent runs, from `examples/postgres`.
const SCRIPTS: [(&str, &str); 10] = [
    ("where", include_str!("../../postgres/where")),
    ("make", include_str!("../../postgres/make")),
    ("configure", include_str!("../../postgres/configure")),
    ("archive", include_str!("../../postgres/archive")),
    ("fetch", include_str!("../../postgres/fetch")),
    ("back-up", include_str!("../../postgres/back-up")),
    ("restore", include_str!("../../postgres/restore")),
    ("remove", include_str!("../../postgres/remove")),
    ("nobody", include_str!("../../postgres/nobody")),
    ("prepare", include_str!("../../postgres/prepare")),
];

const CONFIGURATION: &str = include_str!("../../postgres/sidecar.yaml");

/// The directory of the PostgreSQL versions that a distribution installs.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Where the agent of a server finds things.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The directory of the server.
    pub home: &'a Path,
    /// The scripts that the agent runs.
    pub scripts: &'a Path,
    /// The programs of PostgreSQL.
    pub programs: &'a Path,
}

impl Places<'_> {
    /// Returns what the agent does, with commands as this user or as its own; `on_exit` says what happens to the server
    /// when the agent stops.
    pub fn configuration(&self, user: Option<&str>, on_exit: &str) -> String {
        let names_user = |line: &&str| line.trim() == "user: @USER@";
        let lines = CONFIGURATION.lines();
        let kept: Vec<&str> = lines
            .filter(|line| user.is_some() || !names_user(line))
            .collect();
        (kept.join("\n") + "\n")
            .replace("@HOME@", &self.home.to_string_lossy())
            .replace("@SCRIPTS@", &self.scripts.to_string_lossy())
            .replace("@PROGRAMS@", &self.programs.to_string_lossy())
            .replace("@USER@", user.unwrap_or_default())
            .replace("@ON_EXIT@", on_exit)
    }
}

/// One PostgreSQL on this machine, and its agent.
#[derive(Clone, Debug)]
pub struct Server {
    home: PathBuf,
}

impl Server {
    /// Creates the server with this name, somewhere below `home`.
    pub fn new(home: &Path, namespace: &str, name: &str) -> Self {
        Self {
            home: home.join(namespace).join(name),
        }
    }

    /// Writes all files that an agent needs; returns its configuration file.
    ///
    /// PostgreSQL refuses to run as root: for root it runs as the user `postgres`.
    ///
    /// # Errors
    ///
    /// When there is no PostgreSQL (`examples/postgres/install.sh` installs it), or the files cannot be written.
    pub fn lay_out(&self) -> io::Result<PathBuf> {
        let programs = programs()?;
        let scripts = self.home.join("scripts");
        for directory in [&scripts, &self.socket()] {
            fs::create_dir_all(directory)?;
        }
        for (name, text) in SCRIPTS {
            let script = scripts.join(name);
            fs::write(&script, text)?;
            fs::set_permissions(&script, Permissions::from_mode(0o755))?;
        }
        let user = if rustix::process::geteuid().is_root() {
            give(&self.home, "postgres")?;
            "postgres".to_owned()
        } else {
            output(Command::new("id").arg("-un"))?
        };
        let listen = format!("listen: unix:{}\n", self.agent().display());
        let data = format!("data: {}\n", self.home.join("agent").display());
        let places = Places {
            home: &self.home,
            scripts: &scripts,
            programs: &programs,
        };
        let configuration = listen + &data + &places.configuration(Some(&user), "leave");
        let file = self.home.join("sidecar.yaml");
        fs::write(&file, configuration)?;
        Ok(file)
    }

    /// Returns the socket of the agent.
    pub fn agent(&self) -> PathBuf {
        self.home.join("agent.sock")
    }

    /// Returns the directory of PostgreSQL's own socket.
    pub fn socket(&self) -> PathBuf {
        self.home.join("socket")
    }

    /// Returns the data directory.
    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// Returns the complete backups.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub fn backups(&self) -> io::Result<Vec<PathBuf>> {
        let mut backups = Vec::new();
        for entry in fs::read_dir(self.home.join("backups"))? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "new") {
                backups.push(path);
            }
        }
        backups.sort();
        Ok(backups)
    }

    /// Returns the lines that the agent's commands wrote when they began: the id of the action, the attempt, whether it
    /// was resumed, and the work.
    pub fn ledger(&self) -> Vec<String> {
        let ledger = fs::read_to_string(self.home.join("ledger")).unwrap_or_default();
        ledger.lines().map(str::to_owned).collect()
    }

    /// Returns the process of PostgreSQL, if its file names a running one.
    pub fn process(&self) -> Option<i32> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        let pid = file.lines().next()?.parse().ok()?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "postgres").then_some(pid)
    }
}

/// Returns the directory of PostgreSQL's programs: the one in `PATH`, else that of the newest version.
///
/// # Errors
///
/// When there is no PostgreSQL on this machine.
pub fn programs() -> io::Result<PathBuf> {
    let mut found: Vec<PathBuf> = (fs::read_dir(VERSIONS).into_iter().flatten().flatten())
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").is_file())
        .collect();
    found.sort_by_key(|bin| {
        let version = bin.parent().and_then(Path::file_name);
        version.and_then(|version| version.to_string_lossy().parse::<u32>().ok())
    });
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // If some programs are links, all of them are in the directory of the link targets.
    let in_path = std::env::split_paths(&paths)
        .find_map(|bin| bin.join("initdb").canonicalize().ok())
        .and_then(|initdb| Some(initdb.parent()?.to_owned()));
    in_path.or_else(|| found.pop()).ok_or_else(|| {
        let text =
            "there is no PostgreSQL on this machine; examples/postgres/install.sh installs it";
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Gives a directory and its content to a user.
fn give(directory: &Path, user: &str) -> io::Result<()> {
    output(Command::new("chown").arg("-R").arg(user).arg(directory)).map(drop)
}

fn output(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{command:?}: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
