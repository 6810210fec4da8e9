//! This file is the demo: one function per part, in order, while a writer commits rows all the time.

use std::path::PathBuf;
use std::time::Duration;

use okt::VisitOutcome;
use okt_examples::desk::{Desk, Trouble, condition, position};
use okt_examples::postgres::life::{Postgres, PostgresState};
use okt_examples::postgres::server::Server;
use okt_examples::postgres::stage::Stage;
use okt_examples::postgres::writer::{Writer, connect};
use okt_examples::screen::{check, heading, note};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// The name of the object.
const NAME: &str = "orders";

/// How many commits a part waits for, so that a loss can show.
const COMMITS: usize = 100;

struct Demo<'a> {
    stage: &'a mut Stage,
    desk: &'a Desk<Postgres>,
    server: Server,
    file: PathBuf,
    writer: Writer,
}

/// Runs the whole demo.
pub(crate) async fn all(
    stage: &mut Stage,
    desk: &Desk<Postgres>,
    namespace: &str,
) -> Result<(), Trouble> {
    let server = stage.server(namespace, NAME);
    let file = server.lay_out()?;
    stage.start_agent(&file)?;
    let writer = Writer::start(&server.socket());
    let mut demo = Demo {
        stage,
        desk,
        server,
        file,
        writer,
    };
    demo.creation().await?;
    demo.backup().await?;
    demo.settings().await?;
    demo.restart().await?;
    demo.bad_settings().await?;
    demo.killed_postgres().await?;
    demo.killed_agent().await?;
    demo.killed_operator().await?;
    demo.restoration().await?;
    demo.hibernation().await?;
    demo.deletion().await
}

impl Demo<'_> {
    async fn creation(&self) -> Result<(), Trouble> {
        heading(
            1,
            "A server is created, and a client commits rows from its first second on",
        );
        self.desk.create(NAME, json!({})).await?;
        let postgres = self.desk.until_ready(NAME, PostgresState::Running).await?;
        let trail = position(&postgres).map_or("", |position| &position.trail);
        check(
            trail == ">Start>Starting>Reconfiguring>Running>",
            &format!("it walked {trail}"),
        );
        self.more_commits().await?;
        self.nothing_is_lost().await
    }

    async fn backup(&self) -> Result<(), Trouble> {
        heading(
            2,
            "A visit to Servicing: pg_basebackup, checked by pg_verifybackup, while rows are committed",
        );
        let before = self.writer.acknowledged();
        self.visit("Servicing", "nightly-1").await?;
        let during = self.writer.acknowledged() - before;
        check(
            during > 0,
            &format!("{during} rows were committed meanwhile"),
        );
        let backups = self.server.backups()?;
        check(
            backups.len() == 1,
            "one backup is there, under the id of its action",
        );
        self.nothing_is_lost().await
    }

    async fn settings(&self) -> Result<(), Trouble> {
        heading(
            3,
            "A setting is changed that PostgreSQL takes while it runs",
        );
        let started = self.server.process();
        self.set(json!({ "work_mem": "8MB" })).await?;
        self.until_set("work_mem", "8MB").await?;
        check(
            self.server.process() == started,
            "work_mem is 8MB, in the same process",
        );
        // Each of these characters has a special meaning in a PostgreSQL configuration file.
        let prefix = r"it's\new ";
        self.set(json!({ "log_line_prefix": prefix })).await?;
        self.until_set("log_line_prefix", prefix).await?;
        self.nothing_is_lost().await
    }

    async fn restart(&self) -> Result<(), Trouble> {
        heading(
            4,
            "A setting is changed for which PostgreSQL has to be restarted, as it says itself",
        );
        let started = self.server.process();
        self.set(json!({ "max_connections": "42" })).await?;
        self.until_set("max_connections", "42").await?;
        check(
            self.server.process() != started,
            "max_connections is 42, in another process",
        );
        self.nothing_is_lost().await
    }

    async fn bad_settings(&self) -> Result<(), Trouble> {
        heading(
            5,
            "A setting that PostgreSQL does not take stops nothing but itself",
        );
        self.set(json!({ "work_mem": "lots" })).await?;
        self.stalls_over(&["work_mem", "lots"]).await?;
        // It would run a program for every user who may write the object, and keep the commits out of the archive.
        self.set(json!({ "work_mem": "4MB", "archive_command": "true" }))
            .await?;
        self.stalls_over(&["archive_command"]).await?;
        self.more_commits().await?;
        check(true, "rows are committed all the same");
        self.set(json!({ "archive_command": null })).await?;
        self.desk.until_ready(NAME, PostgresState::Running).await?;
        self.nothing_is_lost().await
    }

    /// Waits until the object reports that it is stalled, with these words in its message.
    async fn stalls_over(&self, words: &[&str]) -> Result<(), Trouble> {
        let stalled = |postgres: &Postgres| {
            let stalled = condition(postgres, "Stalled");
            stalled.is_some_and(|it| words.iter().all(|word| it.message.contains(word)))
        };
        let what = format!("says that it stands still because of {words:?}");
        let postgres = self.desk.until(NAME, &what, stalled).await?;
        let why = condition(&postgres, "Stalled").map_or("", |it| &it.message);
        check(true, &format!("the condition says: {why}"));
        Ok(())
    }

    async fn killed_postgres(&self) -> Result<(), Trouble> {
        heading(6, "PostgreSQL is killed");
        let pid = self.kill_postgres()?;
        note(&format!("kill -9 {pid}"));
        self.desk
            .wait("another process serves", async || {
                Ok(self.server.process().filter(|other| *other != pid))
            })
            .await?;
        self.desk.until_ready(NAME, PostgresState::Running).await?;
        self.more_commits().await?;
        self.nothing_is_lost().await
    }

    async fn killed_agent(&mut self) -> Result<(), Trouble> {
        heading(
            7,
            "The agent is killed in the middle of a backup, which is repeatable",
        );
        let started = self.server.process();
        let backups = self.server.backups()?.len();
        self.begin_backup("nightly-2").await?;
        self.stage.kill_agent(&self.file)?;
        note("kill -9 of the agent; it is started again");
        self.stage.start_agent(&self.file)?;
        self.until_visited("nightly-2").await?;
        let made = self.server.backups()?.len() - backups;
        check(made == 1, "one more backup is there");
        check(
            self.server.process() == started,
            "PostgreSQL has noticed nothing of it",
        );
        self.nothing_is_lost().await
    }

    async fn killed_operator(&mut self) -> Result<(), Trouble> {
        heading(
            8,
            "The operator is killed in the middle of a backup, which goes on",
        );
        let backups = self.server.backups()?.len();
        self.begin_backup("nightly-3").await?;
        self.stage.kill_operator()?;
        note("kill -9 of the operator");
        self.desk
            .wait("the backup is there without it", async || {
                Ok((self.server.backups()?.len() > backups).then_some(()))
            })
            .await?;
        self.stage.start_operator()?;
        self.until_visited("nightly-3").await?;
        check(
            self.server.backups()?.len() == backups + 1,
            "the next operator took its result; it was made once",
        );
        self.nothing_is_lost().await
    }

    async fn restoration(&self) -> Result<(), Trouble> {
        heading(
            9,
            "The newest backup takes the place of the data; the archive gives what was committed since",
        );
        self.more_commits().await?;
        self.visit("Restoring", "restore-1").await?;
        self.more_commits().await?;
        self.nothing_is_lost().await
    }

    async fn hibernation(&self) -> Result<(), Trouble> {
        heading(10, "It hibernates, and wakes");
        self.desk
            .ask_for(NAME, json!({ "state": "Hibernated" }))
            .await?;
        self.desk
            .until_ready(NAME, PostgresState::Hibernated)
            .await?;
        check(self.server.process().is_none(), "no process runs");
        tokio::time::sleep(Duration::from_secs(3)).await;
        let asleep = self.desk.get(NAME).await?;
        check(
            condition(&asleep, "Ready").is_some_and(|c| c.status == "True"),
            "it stays so",
        );
        self.desk
            .ask_for(NAME, json!({ "state": "Running" }))
            .await?;
        self.desk.until_ready(NAME, PostgresState::Running).await?;
        self.more_commits().await?;
        self.nothing_is_lost().await
    }

    async fn deletion(&self) -> Result<(), Trouble> {
        heading(
            11,
            "The object is deleted: it is stopped, its data goes, its backups stay",
        );
        self.desk.delete(NAME).await?;
        check(self.server.process().is_none(), "no process runs");
        check(!self.server.data().exists(), "the data is gone");
        check(!self.server.backups()?.is_empty(), "the backups are there");
        Ok(())
    }

    /// Requests a visit.
    async fn ask_for(&self, state: &str, request: &str) -> Result<(), Trouble> {
        let visit = json!({ "visit": { "state": state, "request": request } });
        self.desk.ask_for(NAME, visit).await
    }

    /// Requests a backup and waits until the agent makes it. The state alone does not show that: it is written before
    /// the operator calls the agent.
    async fn begin_backup(&self, request: &str) -> Result<(), Trouble> {
        let begun = || {
            let ledger = self.server.ledger();
            ledger.iter().filter(|it| it.ends_with("back-up")).count()
        };
        let before = begun();
        self.ask_for("Servicing", request).await?;
        self.desk
            .wait("the agent makes the backup", async || {
                Ok((begun() > before).then_some(()))
            })
            .await
    }

    async fn until_visited(&self, request: &str) -> Result<(), Trouble> {
        let what = format!("has made the visit {request}");
        let made = |postgres: &Postgres| {
            let visit = position(postgres).and_then(|position| position.visit.as_ref());
            visit.is_some_and(|it| it.request == request && it.outcome == VisitOutcome::Reached)
        };
        self.desk.until(NAME, &what, made).await?;
        self.desk.until_ready(NAME, PostgresState::Running).await?;
        Ok(())
    }

    async fn visit(&self, state: &str, request: &str) -> Result<(), Trouble> {
        self.ask_for(state, request).await?;
        self.until_visited(request).await
    }

    /// Changes these settings.
    async fn set(&self, settings: serde_json::Value) -> Result<(), Trouble> {
        let patch = json!({ "spec": { "settings": settings } });
        self.desk.patch(NAME, patch).await
    }

    /// Waits until the server reports this value.
    async fn until_set(&self, name: &str, value: &str) -> Result<(), Trouble> {
        self.desk
            .wait(&format!("{name} is {value}"), async || {
                let Ok(client) = connect(&self.server.socket()).await else {
                    return Ok(None);
                };
                let shown = client.query_one(&format!("show {name}"), &[]).await;
                Ok(shown.ok().filter(|row| row.get::<_, &str>(0) == value))
            })
            .await?;
        self.desk.until_ready(NAME, PostgresState::Running).await?;
        Ok(())
    }

    fn kill_postgres(&self) -> Result<i32, Trouble> {
        let pid = self.server.process().ok_or("PostgreSQL does not run")?;
        let process = Pid::from_raw(pid).ok_or("no process")?;
        kill_process(process, Signal::KILL)?;
        Ok(pid)
    }

    /// Waits until more rows were committed.
    async fn more_commits(&self) -> Result<(), Trouble> {
        let before = self.writer.acknowledged();
        self.desk
            .wait("rows are committed", async || {
                Ok((self.writer.acknowledged() >= before + COMMITS).then_some(()))
            })
            .await
    }

    async fn nothing_is_lost(&self) -> Result<(), Trouble> {
        let acknowledged = self.writer.acknowledged();
        let lost = self
            .desk
            .wait("the server answers", async || {
                Ok(self.writer.lost().await.ok())
            })
            .await?;
        check(
            lost.is_empty(),
            &format!(
                "{acknowledged} commits acknowledged so far, {} lost",
                lost.len()
            ),
        );
        Ok(())
    }
}
