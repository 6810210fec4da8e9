//! A writer that commits rows all the time, and records which commits were acknowledged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls};

/// How long a connection or a commit may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How long the writer waits after a failure.
const AGAIN: Duration = Duration::from_millis(50);

/// The commits of a writer.
#[derive(Debug, Default)]
pub struct Diary {
    /// The rows whose commit was acknowledged.
    pub kept: BTreeSet<i64>,
    /// The rows whose commit had no answer: they may exist.
    pub unheard: BTreeSet<i64>,
}

/// Commits rows until it is dropped.
#[derive(Debug)]
pub struct Writer {
    socket: PathBuf,
    diary: Arc<Mutex<Diary>>,
    task: JoinHandle<()>,
}

impl Writer {
    /// Starts to commit rows to the server with its socket in this directory, whether or not it answers.
    pub fn start(socket: &Path) -> Self {
        let socket = socket.to_owned();
        let diary = Arc::default();
        let task = tokio::spawn(write(socket.clone(), Arc::clone(&diary)));
        Self {
            socket,
            diary,
            task,
        }
    }

    /// Returns how many commits were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        locked(&self.diary).kept.len()
    }

    /// Returns the rows that were acknowledged before this call and do not exist.
    ///
    /// # Errors
    ///
    /// When the server does not answer; a retry may help.
    pub async fn lost(&self) -> Result<Vec<i64>, tokio_postgres::Error> {
        let kept = locked(&self.diary).kept.clone();
        let client = connect(&self.socket).await?;
        let rows = client.query("select id from entries", &[]).await?;
        let there: BTreeSet<i64> = rows.iter().map(|row| row.get(0)).collect();
        Ok(kept.difference(&there).copied().collect())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(diary: &Mutex<Diary>) -> MutexGuard<'_, Diary> {
    diary.lock()
}

/// Connects through the socket in a directory.
///
/// # Errors
///
/// When the server does not answer; a retry may help.
pub async fn connect(socket: &Path) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = Config::new()
        .host_path(socket)
        .user("postgres")
        .dbname("postgres")
        .connect_timeout(LIMIT)
        .connect(NoTls)
        .await?;
    // It ends when the client is dropped, or with an error that the client reports too.
    tokio::spawn(connection);
    Ok(client)
}

async fn write(socket: PathBuf, diary: Arc<Mutex<Diary>>) {
    let mut next = 1;
    loop {
        if let Ok(client) = connect(&socket).await {
            let table = "create table if not exists entries (id bigint primary key)";
            if client.batch_execute(table).await.is_ok() {
                commit_rows(&client, &diary, &mut next).await;
            }
        }
        sleep(AGAIN).await;
    }
}

/// Commits one row after the other until one is not acknowledged.
async fn commit_rows(client: &Client, diary: &Mutex<Diary>, next: &mut i64) {
    loop {
        let id = *next;
        *next += 1;
        locked(diary).unheard.insert(id);
        let insert = async {
            let row: [&(dyn ToSql + Sync); 1] = [&id];
            client
                .execute("insert into entries values ($1)", &row)
                .await
        };
        let Ok(Ok(_)) = timeout(LIMIT, insert).await else {
            return;
        };
        let mut diary = locked(diary);
        diary.unheard.remove(&id);
        diary.kept.insert(id);
    }
}
