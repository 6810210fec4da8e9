//! The killer of processes: of the operator and the servers in one loop, the API server in another.

use std::time::Instant;

use okt_testing::{Kubernetes, KubernetesError};
use tokio::time::sleep;

use crate::stage::Stage;
use okt_examples::dice::Dice;

/// How many restarts of the API server are tried before this is a failure.
const TRIES: usize = 5;

/// How often each process was killed, and processes that had ended on their own.
#[derive(Debug, Default)]
pub(crate) struct Kills {
    pub(crate) operator: u64,
    pub(crate) servers: u64,
    pub(crate) api_server: u64,
    pub(crate) broken: Vec<String>,
}

/// The target of a kill.
#[derive(Clone, Copy)]
enum Victim {
    Operator,
    Server,
}

/// Kills the operator or a server every few seconds; the operator runs afterwards.
pub(crate) async fn kill_processes(stage: &Stage, mut dice: Dice, end: Instant) -> Kills {
    let mut kills = Kills::default();
    while Instant::now() < end {
        sleep(dice.millis(500, 5_000)).await;
        match dice.weighted(&[(1, Victim::Operator), (1, Victim::Server)]) {
            Victim::Operator => {
                kills.broken.extend(stage.kill_operator().err());
                kills.operator += 1;
                // Most operators restart at once, some after a while.
                if dice.between(0, 3) == 0 {
                    sleep(dice.millis(0, 5_000)).await;
                }
                stage.start_operator();
            }
            Victim::Server => {
                let names = stage.names();
                let Some(name) = dice.pick(&names) else {
                    continue;
                };
                // A server that is just starting has not written its pid, and survives.
                if let Ok(true) = stage.instance(name).kill().await {
                    kills.servers += 1;
                }
            }
        }
    }
    kills
}

/// Kills the API server now and then; it runs afterwards.
pub(crate) async fn kill_api_server(
    kubernetes: &mut Kubernetes,
    mut dice: Dice,
    end: Instant,
) -> Kills {
    let mut kills = Kills::default();
    while Instant::now() < end {
        sleep(dice.millis(3_000, 20_000)).await;
        kubernetes.kill().expect("it was started here");
        kills.api_server += 1;
        sleep(dice.millis(0, 3_000)).await;
        start_again(kubernetes).await;
    }
    kills
}

/// Restarts the API server; on a busy machine one attempt may come too late, and another one follows.
async fn start_again(kubernetes: &mut Kubernetes) {
    for _ in 1..TRIES {
        match kubernetes.restart().await {
            Err(KubernetesError::Late { .. }) => {}
            outcome => return outcome.expect("the same server"),
        }
    }
    kubernetes.restart().await.expect("the same server");
}
