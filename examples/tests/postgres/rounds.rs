//! Kills of PostgreSQL, its agent and its operator at random moments, round by round.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::PostParams;
use okt::sidecar::{Client, Endpoint};
use okt::{VisitOutcome, crd};
use okt_agent::wire::{ActionReport, Phase};
use okt_examples::desk::{Desk, Trouble, condition, position};
use okt_examples::dice::Dice;
use okt_examples::postgres::life::{Postgres, PostgresState};
use okt_examples::postgres::server::Server;
use okt_examples::postgres::stage::Stage;
use okt_examples::postgres::writer::Writer;
use okt_testing::{ApiServer, Seed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::sleep;

use crate::record::Record;

const NAMESPACE: &str = "default";
const NAME: &str = "orders";

/// How many rounds there are by default.
const ROUNDS: u64 = 20;

/// The longest wait for anything: a PostgreSQL that was killed in the middle of a recovery begins it again.
const PATIENCE: Duration = Duration::from_mins(10);

/// The target of a kill.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Victim {
    Postgres,
    Agent,
    Operator,
}

/// The change of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Backup,
    Restoration,
    Setting,
    Restart,
    Sleep,
    Nothing,
}

struct Round<'a> {
    stage: &'a mut Stage,
    desk: &'a Desk<Postgres>,
    server: &'a Server,
    file: &'a PathBuf,
    dice: &'a mut Dice,
    killed: &'a mut BTreeMap<Victim, u32>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL; run with --include-ignored"]
async fn no_commit_is_lost_however_often_anything_is_killed() {
    if !crate::is_here() {
        return;
    }
    let seed = Seed::from_env_or_fresh().number();
    let rounds = std::env::var("OKT_POSTGRES_ROUNDS").map_or(ROUNDS, |rounds| {
        rounds.parse().expect("OKT_POSTGRES_ROUNDS is a number")
    });
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let api_server = ApiServer::new();
    let served = api_server.serve().await.expect("it is served");
    served.write_kubeconfig(&kubeconfig).expect("it is written");
    let crds = Api::all(api_server.client());
    let definition = crd::<Postgres>().expect("a CRD");
    let made = crds.create(&PostParams::default(), &definition).await;
    made.expect("the CRD is accepted");
    let desk = Desk {
        api: Api::namespaced(api_server.client(), NAMESPACE),
        patience: PATIENCE,
    };
    let mut stage = Stage::set(crate::PROGRAM.into(), &kubeconfig).expect("a stage");
    let outcome = live(&mut stage, &desk, seed, rounds).await;
    let printed = if outcome.is_err() {
        stage.said(60)
    } else {
        String::new()
    };
    drop(stage);
    served.shutdown().await;
    if let Err(error) = outcome {
        panic!("seed {seed}: {error}\n{printed}");
    }
}

async fn live(
    stage: &mut Stage,
    desk: &Desk<Postgres>,
    seed: u64,
    rounds: u64,
) -> Result<(), Trouble> {
    let since = Instant::now();
    let mut dice = Dice::new(seed);
    let mut killed = BTreeMap::new();
    let server = stage.server(NAMESPACE, NAME);
    let file = server.lay_out()?;
    stage.start_agent(&file)?;
    let writer = Writer::start(&server.socket());
    desk.create(NAME, json!({})).await?;
    desk.until_ready(NAME, PostgresState::Running).await?;
    // A restoration needs a backup.
    ask(desk, "Servicing", "the-first").await?;
    until_visited(desk, "the-first").await?;
    for number in 1..=rounds {
        let mut round = Round {
            stage,
            desk,
            server: &server,
            file: &file,
            dice: &mut dice,
            killed: &mut killed,
        };
        let desired = round.ask_for(number).await?;
        round.kill().await?;
        round.arrive(number, desired).await?;
        let lost = desk
            .wait("the server answers", async || Ok(writer.lost().await.ok()))
            .await?;
        if !lost.is_empty() {
            return Err(format!(
                "round {number}, {desired:?}: {} commits lost: {lost:?}",
                lost.len()
            )
            .into());
        }
        accounted_for(desk, &server).await?;
    }
    desk.delete(NAME).await?;
    let ledger = server.ledger();
    let begun = begun_as_decided(&ledger)?;
    let record = Record::read(&stage.agents_said())?;
    record.accounts_for(ledger.iter().filter_map(|line| line.split(' ').next()))?;
    println!(
        "seed {seed}: {rounds} rounds in {:.0} s, killed with SIGKILL: {killed:?}; {} commits acknowledged, none lost; {begun} commands begun, none without a decision; {} actions done, none twice",
        since.elapsed().as_secs_f64(),
        writer.acknowledged(),
        record.done(),
    );
    if server.process().is_some() || server.data().exists() {
        return Err("something is left of a server that was deleted".into());
    }
    Ok(())
}

impl Round<'_> {
    /// Requests a random change.
    async fn ask_for(&mut self, number: u64) -> Result<Change, Trouble> {
        let desired = self.dice.weighted(&[
            (4, Change::Backup),
            (3, Change::Restoration),
            (2, Change::Setting),
            (2, Change::Restart),
            (3, Change::Sleep),
            (2, Change::Nothing),
        ]);
        let request = format!("round-{number}");
        match desired {
            Change::Backup => ask(self.desk, "Servicing", &request).await?,
            Change::Restoration => ask(self.desk, "Restoring", &request).await?,
            Change::Setting => {
                let memory = format!("{}MB", self.dice.between(1, 64));
                self.set(json!({ "work_mem": memory })).await?;
            }
            Change::Restart => {
                let connections = self.dice.between(30, 60).to_string();
                self.set(json!({ "max_connections": connections })).await?;
            }
            Change::Sleep => {
                let desired = json!({ "state": "Hibernated" });
                self.desk.ask_for(NAME, desired).await?;
            }
            Change::Nothing => {}
        }
        Ok(desired)
    }

    async fn set(&self, settings: serde_json::Value) -> Result<(), Trouble> {
        let patch = json!({ "spec": { "settings": settings } });
        self.desk.patch(NAME, patch).await
    }

    /// Kills one or more processes, and restarts those that no other process restarts.
    async fn kill(&mut self) -> Result<(), Trouble> {
        for _ in 0..self.dice.between(1, 3) {
            sleep(self.dice.millis(0, 1200)).await;
            let victims = [Victim::Postgres, Victim::Agent, Victim::Operator];
            let victim = self.dice.pick(&victims).copied().unwrap_or(Victim::Agent);
            match victim {
                Victim::Postgres => {
                    let Some(process) = self.server.process().and_then(Pid::from_raw) else {
                        continue;
                    };
                    // The process may have ended meanwhile.
                    let _ = kill_process(process, Signal::KILL);
                }
                Victim::Agent => {
                    self.stage.kill_agent(self.file)?;
                    sleep(self.dice.millis(0, 500)).await;
                    self.stage.start_agent(self.file)?;
                }
                Victim::Operator => {
                    self.stage.kill_operator()?;
                    sleep(self.dice.millis(0, 500)).await;
                    self.stage.start_operator()?;
                }
            }
            *self.killed.entry(victim).or_default() += 1;
        }
        Ok(())
    }

    /// Waits until the change is done, and then until the object is ready in Running.
    async fn arrive(&self, number: u64, desired: Change) -> Result<(), Trouble> {
        let made = match desired {
            Change::Backup | Change::Restoration => {
                until_visited(self.desk, &format!("round-{number}")).await
            }
            Change::Sleep => self
                .desk
                .until_ready(NAME, PostgresState::Hibernated)
                .await
                .map(drop),
            Change::Setting | Change::Restart | Change::Nothing => Ok(()),
        };
        let running = async {
            made?;
            self.desk
                .ask_for(NAME, json!({ "state": "Running" }))
                .await?;
            self.desk
                .until_ready(NAME, PostgresState::Running)
                .await
                .map(drop)
        };
        running
            .await
            .map_err(|error: Trouble| format!("round {number}, {desired:?}: {error}").into())
    }
}

/// Returns how many commands began; fails if an attempt began twice without being resumed.
fn begun_as_decided(ledger: &[String]) -> Result<usize, Trouble> {
    let mut begun: Vec<_> = ledger
        .iter()
        .filter(|line| line.contains(" false "))
        .collect();
    begun.sort();
    for two in begun.windows(2) {
        if let [one, other] = two
            && one == other
        {
            return Err(format!("begun twice: {one}").into());
        }
    }
    Ok(ledger.len())
}

async fn ask(desk: &Desk<Postgres>, state: &str, request: &str) -> Result<(), Trouble> {
    let visit = json!({ "visit": { "state": state, "request": request } });
    desk.ask_for(NAME, visit).await
}

/// Waits until a visit is over: made, or overtaken by the trigger of a killed server.
async fn until_visited(desk: &Desk<Postgres>, request: &str) -> Result<(), Trouble> {
    let over = |postgres: &Postgres| {
        let visit = position(postgres).and_then(|position| position.visit.as_ref());
        visit.is_some_and(|it| it.request == request && it.outcome != VisitOutcome::Pending)
    };
    let what = format!("has made the visit {request}");
    desk.until(NAME, &what, over).await.map(drop)
}

/// Waits until the object is at rest: the agent has no work under way, and its last work is the last recorded work.
async fn accounted_for(desk: &Desk<Postgres>, server: &Server) -> Result<(), Trouble> {
    let agent = Client::new(&Endpoint::unix(server.agent()))?;
    let what = "the records of the object and of the agent agree";
    desk.wait(what, async || {
        // An agent that just started may not listen yet.
        let Ok(status) = agent.status().await else {
            return Ok(None);
        };
        let postgres = desk.get(NAME).await?;
        let is_ready = condition(&postgres, "Ready").is_some_and(|c| c.status == "True");
        let recorded = position(&postgres).map(|position| position.transition);
        // Running has no work, so the last work is that of the transition before.
        let is_last = recorded == Some(status.fence.transition + 1);
        let is_done =
            |action: ActionReport| action.phase == Phase::Succeeded && action.acknowledged;
        let agree = is_ready && is_last && status.action.is_some_and(is_done);
        Ok(agree.then_some(()))
    })
    .await
}
