//! Nothing is lost however often the operator, its servers and the API server are killed.
//!
//! Everything is real: processes that are killed with SIGKILL at any moment, a kube-apiserver, documents on a disk.
//! `OKT_KILLS_MINUTES` sets how long the killing lasts, `OKT_SEED` repeats the choices; the timing depends on the
//! machine.

mod history;
mod killer;
mod ledger;
mod stage;
mod user;
mod verdict;
mod witness;

use std::env;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, PostParams};
use okt::crd;
use okt_examples::notes::Observed;
use okt_examples::notes_operator::Notes;
use okt_testing::{Kubernetes, Seed};
use tokio::time::sleep;

use crate::history::{History, text};
use crate::killer::{Kills, kill_api_server, kill_processes};
use crate::stage::{NAMESPACE, Stage};
use crate::user::{Diary, NAME, STATE, User};
use crate::verdict::{Kept, left, unrest};
use okt_examples::dice::Dice;

/// How long the killing goes on by default, in minutes: enough for each kind of kill, several times.
const MINUTES: f64 = 1.25;

/// The longest wait for rest: kube waits up to half a minute before it watches again.
const PATIENCE: Duration = Duration::from_mins(10);

/// The silence that counts as rest: writes other than transitions come every 10 s, and kube waits up to half a minute
/// before it watches again.
const SILENCE: Duration = Duration::from_secs(35);

/// How often rest may end again: an agent that does not answer for a while is told, and so is its answer.
const WAKINGS: usize = 3;

/// How often the user checks whether a notebook needs another request.
const AGAIN: Duration = Duration::from_secs(2);

const POLL: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn nothing_is_lost_however_often_anything_is_killed() {
    let what = "kills of the operator, of its servers and of the API server";
    let Some(mut kubernetes) = Kubernetes::start_or_skip(what).await.expect("a server") else {
        return;
    };
    let seed = Seed::from_env_or_fresh().number();
    let crds: Api<CustomResourceDefinition> = Api::all(kubernetes.client());
    let definition = crd::<Notes>().expect("a CRD");
    let defined = crds.create(&PostParams::default(), &definition).await;
    defined.expect("the CRD is accepted");

    let stage = Stage::set(kubernetes.kubeconfig());
    let history = History::new();
    let resource = ApiResource::erase::<Notes>(&());
    let raw = Api::namespaced_with(kubernetes.client(), NAMESPACE, &resource);
    let api = Api::namespaced(kubernetes.client(), NAMESPACE);
    let mut user = User::new(&stage, &history, api, Dice::new(seed));
    let run = async {
        let minutes = env::var("OKT_KILLS_MINUTES").map_or(MINUTES, |minutes| {
            minutes.parse().expect("OKT_KILLS_MINUTES is a number")
        });
        let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
        let (processes, api_server, ()) = tokio::join!(
            kill_processes(&stage, Dice::new(seed.wrapping_add(1)), end),
            kill_api_server(&mut kubernetes, Dice::new(seed.wrapping_add(2)), end),
            user.live(end),
        );
        judge(seed, minutes, &mut user, processes, api_server).await
    };
    let broken = tokio::select! {
        broken = run => broken,
        () = witness::watch(&raw, &history) => unreachable!("it watches for ever"),
    };
    kubernetes.stop().await;
    let output = if broken.is_empty() {
        String::new()
    } else {
        stage.output()
    };
    let last: Vec<_> = output.lines().rev().take(400).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    assert!(
        broken.is_empty(),
        "{}\n\nthe operators said last:\n{}",
        broken.join("\n"),
        last.join("\n")
    );
}

/// Returns why notebooks are not in their desired states, or their servers are not.
async fn restless_now(user: &User<'_>) -> Vec<String> {
    let notebooks: Vec<_> = user.history.seen().alive.values().cloned().collect();
    let mut restless = Vec::new();
    for notebook in notebooks {
        restless.extend(unrest(&notebook));
        let name = text(&notebook, NAME);
        let seen = user.stage.instance(name).status().await;
        let runs = matches!(seen, Ok(Observed::Answering(_)));
        match text(&notebook, STATE) {
            "Running" if !runs => {
                restless.push(format!("{name} runs by the record only: {seen:?}"));
            }
            "End" if runs => {
                restless.push(format!("{name} ended by the record only: {seen:?}"));
            }
            _ => {}
        }
    }
    restless
}

/// Returns the broken rules, once all notebooks are at rest and then once all are deleted.
async fn judge(
    seed: u64,
    minutes: f64,
    user: &mut User<'_>,
    processes: Kills,
    api_server: Kills,
) -> Vec<String> {
    let (stage, history) = (user.stage, user.history);
    let since = Instant::now();
    let mut broken = processes.broken;
    let mut asked = 0;
    let last_change = || history.seen().last_change;
    let is_quiet = || last_change().max(since).elapsed() > SILENCE;
    let mut restless = restless_now(user).await;
    let mut rested = last_change();
    for waking in 0..=WAKINGS {
        while !(restless.is_empty() && is_quiet()) && since.elapsed() < PATIENCE {
            asked += user.let_go_on().await;
            sleep(AGAIN).await;
            restless = restless_now(user).await;
        }
        rested = last_change();
        sleep(SILENCE).await;
        if last_change() == rested || !restless.is_empty() {
            break;
        }
        if waking == WAKINGS {
            broken.push("something is still written although all is at rest".to_owned());
        }
    }
    let rested = rested.saturating_duration_since(since);
    broken.extend(restless);
    let alive = history.seen().alive.len();
    Kept::observe(stage).documents(&user.diary, &mut broken);

    user.delete_all().await;
    let since = Instant::now();
    while !history.seen().alive.is_empty() && since.elapsed() < PATIENCE {
        sleep(POLL).await;
    }
    broken.extend(stage.kill_operator().err());
    // Processes that end let go of their notebooks first.
    let since = Instant::now();
    while !left(stage).is_empty() && since.elapsed() < SILENCE {
        sleep(POLL).await;
    }
    broken.extend(left(stage));
    let kept = Kept::observe(stage);
    let documents = kept.documents(&user.diary, &mut broken);
    let seen = history.seen();
    let actions = kept.actions(&seen.backups, &mut broken);
    for notebook in seen.alive.values() {
        broken.push(format!(
            "{} is not gone: {}",
            notebook["metadata"]["name"], notebook["status"]
        ));
    }
    broken.extend(seen.broken.iter().cloned());
    let output = stage.output();
    let odd = output.lines().filter(|line| {
        // An API server that starts refuses what it cannot check yet with 403.
        let is_error = line.contains("ERROR") && !line.contains("not yet ready to handle request");
        line.contains("panicked") || is_error && line.contains("okt_")
    });
    broken.extend(odd.map(str::to_owned));
    let Diary {
        kept,
        unheard,
        created,
        deleted,
        changed,
        unanswered,
    } = &user.diary;
    let count = |what| broken.iter().filter(|line| line.ends_with(what)).count();
    let report = format!(
        "kills: seed {seed}, {minutes} minutes
  killed with SIGKILL: operator {}, servers {}, API server {}
  user: {created} notebooks created, {deleted} deletions, {changed} changes; {unanswered} requests without an answer
  documents: {} acknowledged, {} lost; {} without an answer, of which {} are there
  history: {} versions judged, {} not seen; {} transitions, {} jumps, {} backups on record
  agents: {actions} actions done, {} of them twice
  at rest {:.1} s after the killing ended ({alive} notebooks, {asked} asked again), then silent; then all deleted
  rules broken: {}",
        processes.operator, processes.servers, api_server.api_server,
        kept.len(),
        count("is lost"),
        unheard.len(),
        documents.saturating_sub(kept.len() as u64),
        seen.versions, seen.unseen, seen.transitions, seen.jumps, seen.backups.len(),
        count("was done twice"),
        rested.as_secs_f64(),
        broken.len(),
    );
    drop(seen);
    // This bypasses the capture of test output: a long run is for the figures.
    let _ = writeln!(io::stderr(), "{report}");
    broken
}
