//! The listeners of an agent: TCP addresses, and Unix sockets that their permissions protect.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use tokio::net::{TcpListener, UnixListener};

use super::error::ServeError;
use super::tls::TlsFiles;

/// An address or a socket that an agent listens on.
///
/// ```
/// use okt_agent::Listen;
///
/// let beside = Listen::unix("/run/notes/agent.sock");
/// let everywhere = Listen::tcp("0.0.0.0:7070".parse()?).tls("tls.crt", "tls.key");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen(pub(super) ListenPlace);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ListenPlace {
    Tcp {
        address: SocketAddr,
        tls: Option<TlsFiles>,
    },
    Unix {
        path: PathBuf,
        mode: u32,
    },
}

impl Listen {
    /// Returns a TCP address. Port 0 takes a free port.
    ///
    /// An address other than loopback needs a [token](super::Agent::token_file) or clients with
    /// [certificates](Self::mutual_tls).
    pub fn tcp(address: SocketAddr) -> Self {
        Self(ListenPlace::Tcp { address, tls: None })
    }

    /// Returns a Unix socket that only the agent's user can connect to. It asks for no token.
    ///
    /// If nothing listens on an existing socket of this name, the agent replaces it.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self(ListenPlace::Unix { path, mode: 0o600 })
    }

    /// Sets the permissions of a Unix socket; it has no effect on TCP.
    #[must_use]
    pub fn mode(mut self, permissions: u32) -> Self {
        match &mut self.0 {
            ListenPlace::Unix { mode, .. } => *mode = permissions & 0o777,
            ListenPlace::Tcp { .. } => {}
        }
        self
    }

    /// Enables TLS with a certificate (its chain) and a key, both as PEM files. The agent reads them again when they
    /// change.
    /// It has no effect on a Unix socket.
    #[must_use]
    pub fn tls(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        match &mut self.0 {
            ListenPlace::Tcp { tls, .. } => {
                *tls = Some(TlsFiles {
                    certificate: certificate.into(),
                    key: key.into(),
                    client_ca: None,
                });
            }
            ListenPlace::Unix { .. } => {}
        }
        self
    }

    /// Enables TLS that requires a client certificate signed by one of those in `client_ca`.
    ///
    /// A client without one cannot send a request, so no token is needed.
    /// The authority should sign certificates of operators only, because each of them may request work.
    #[must_use]
    pub fn mutual_tls(
        self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        client_ca: impl Into<PathBuf>,
    ) -> Self {
        let mut this = self.tls(certificate, key);
        if let ListenPlace::Tcp {
            tls: Some(files), ..
        } = &mut this.0
        {
            files.client_ca = Some(client_ca.into());
        }
        this
    }

    /// Returns whether another machine can connect.
    pub(super) fn is_exposed(&self) -> bool {
        match &self.0 {
            ListenPlace::Tcp { address, .. } => !address.ip().to_canonical().is_loopback(),
            ListenPlace::Unix { .. } => false,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ListenPlace::Tcp { address, .. } => address.fmt(f),
            ListenPlace::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An open listener.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(
        UnixListener,
        #[expect(dead_code, reason = "held until it is dropped")] SocketFile,
    ),
}

impl Listener {
    /// Opens the listener.
    pub(super) async fn open(listen: &Listen) -> Result<(Self, Listen), ServeError> {
        let failed = |source| ServeError::Listen {
            place: listen.to_string(),
            source,
        };
        let mut opened = listen.clone();
        let listener = match &mut opened.0 {
            ListenPlace::Tcp { address, .. } => {
                let listener = TcpListener::bind(*address).await.map_err(failed)?;
                *address = listener.local_addr().map_err(failed)?;
                Self::Tcp(listener)
            }
            ListenPlace::Unix { path, mode } => {
                let (listener, file) = unix(path, *mode).map_err(failed)?;
                Self::Unix(listener, file)
            }
        };
        Ok((listener, opened))
    }
}

/// The file of a Unix socket. Dropping it removes the file, unless another socket has replaced it.
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let own = fs::symlink_metadata(&self.path)
            .is_ok_and(|file| (file.dev(), file.ino()) == (self.device, self.inode));
        if own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unix(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            let error = "there is something that is no socket";
            return Err(io::Error::new(ErrorKind::AlreadyExists, error));
        }
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => {
                let error = "another process listens there";
                return Err(io::Error::new(ErrorKind::AddrInUse, error));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // The socket has another name until it is usable, so that there is always a usable one under `path`.
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    let own = PathBuf::from(own);
    let _ = fs::remove_file(&own);
    let opened = closed(&own, mode).and_then(|socket| {
        rustix::net::listen(&socket, BACKLOG)?;
        let file = fs::symlink_metadata(&own)?;
        fs::rename(&own, path)?;
        Ok((socket, file))
    });
    match opened {
        Ok((socket, file)) => Ok((
            UnixListener::from_std(socket.into())?,
            SocketFile {
                path: path.to_owned(),
                device: file.dev(),
                inode: file.ino(),
            },
        )),
        Err(error) => {
            let _ = fs::remove_file(&own);
            Err(error)
        }
    }
}

/// The number of connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// Creates a socket with its permissions that refuses connections, because it does not listen yet.
fn closed(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_takes_no_connection_before_it_has_its_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = closed(&path, 0o620).unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o620);
        let refused = UnixStream::connect(&path).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        rustix::net::listen(&socket, BACKLOG).unwrap();
        UnixStream::connect(&path).unwrap();
    }
}
