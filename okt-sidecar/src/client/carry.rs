//! An action, carried to its end: asked for, waited for, taken, whatever is lost or restarted on the way.

use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Client, ClientError};
use crate::wire::{Acknowledgement, ActionId, ActionReport, ActionRequest, Code, Phase};

/// How long the agent is asked to wait for the end of an action before it answers.
const WAIT: Duration = Duration::from_secs(10);

/// An agent that answers sooner does not wait, and is asked at a pace of our own.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The first and the longest pause between two requests for the same.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long an application may be in none of the states that a request names: it is looked at again soon.
const WRONG_STATE: Duration = Duration::from_secs(30);

/// How often an acknowledgement is sent before it is left to the next action.
const ACKNOWLEDGEMENTS: u32 = 2;

/// A piece of work for an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// Its name.
    pub id: ActionId,
    /// What is asked for.
    pub request: ActionRequest,
    /// Whether another attempt is wanted, after an end that was taken before.
    ///
    /// Without it the end of an attempt that is not acknowledged is what comes of the order: nobody has taken it.
    pub again: bool,
}

/// What is heard of an order on the way.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// How the action goes.
    Going(&'a ActionReport),
    /// Something is in the way, and the request is sent again after a while.
    Trouble(&'a ClientError),
}

/// How an order ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Carried {
    /// The action has ended.
    ///
    /// The end is acknowledged, unless it is unknown: that stays with the agent until somebody has decided to
    /// have another attempt ([`Order::again`]), so that no crash makes one by itself.
    Ended(ActionReport),
    /// It was cancelled and nothing of it runs any more; none where the agent knows of no such action.
    Withdrawn(Option<ActionReport>),
}

impl Client {
    /// Carries an action to its end, or cancels it when `cancelled` ends.
    ///
    /// # Flow
    ///
    /// The action is asked for until the agent has taken it, waited for until it has ended, and its end is
    /// acknowledged.
    /// An older action of the same object that is in the way is cancelled, since whoever asks has moved on; for
    /// that of another object this waits.
    /// Ends of older actions that nobody has acknowledged are acknowledged too: they are of no use any more.
    ///
    /// # Guarantees
    ///
    /// Whatever answer is lost, and whoever restarts, the action is begun no more often than it was decided.
    /// Dropped, this leaves the action alone: whoever carries the same order next finds it.
    ///
    /// # Caveats
    ///
    /// It goes on asking an agent that does not answer, without end: put a limit around it.
    ///
    /// # Errors
    ///
    /// What asking again does not mend within the patience that one call has;
    /// [`ClientError::retry_helps`] says whether another call may.
    pub async fn carry(
        &self,
        order: &Order,
        cancelled: impl Future<Output = ()>,
        news: impl FnMut(News<'_>),
    ) -> Result<Carried, ClientError> {
        let carrier = Carrier {
            client: self,
            order,
            news,
            pause: PAUSES.0,
            again: order.again,
            since: Instant::now(),
        };
        carrier.carry(pin!(cancelled)).await
    }
}

struct Carrier<'a, N> {
    client: &'a Client,
    order: &'a Order,
    news: N,
    /// How long before the next request for the same.
    pause: Duration,
    again: bool,
    since: Instant,
}

impl<N: FnMut(News<'_>)> Carrier<'_, N> {
    async fn carry(
        mut self,
        mut cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Carried, ClientError> {
        loop {
            let Some(asked) = self.ask(cancelled.as_mut()).await? else {
                return self.withdraw().await;
            };
            let Some(report) = self.wait(asked, cancelled.as_mut()).await? else {
                return self.withdraw().await;
            };
            // Taken before, and meanwhile another attempt was decided.
            if std::mem::take(&mut self.again) && report.phase != Phase::Succeeded {
                self.acknowledge_surely(&report).await?;
                continue;
            }
            if report.phase != Phase::Unknown {
                self.acknowledge(&report.id, report.attempt).await;
            }
            return Ok(Carried::Ended(report));
        }
    }

    /// Asks until the agent has taken the action; none where it was cancelled before.
    async fn ask(
        &mut self,
        mut cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<ActionReport>, ClientError> {
        let (id, request) = (&self.order.id, &self.order.request);
        self.pause = PAUSES.0;
        loop {
            // Not broken off half-way: the request might still arrive after the one that cancels it.
            match self.client.ask(id, request).await {
                Ok(asked) => {
                    if asked.began {
                        // What it began is new: nothing that ended before is left to be taken.
                        self.again = false;
                        self.tidy().await;
                    }
                    return Ok(Some(asked.report));
                }
                Err(error) => {
                    if let Some(running) = in_the_way(&error) {
                        self.make_way(running).await;
                    }
                    // It may have begun the attempt that was decided: what is found ended next is that one.
                    self.again &= !may_have_arrived(&error);
                    self.trouble(error)?;
                }
            }
            if self.rest(cancelled.as_mut()).await.is_break() {
                return Ok(None);
            }
        }
    }

    /// Waits until the action has ended; none where it was cancelled before.
    async fn wait(
        &mut self,
        mut report: ActionReport,
        mut cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<ActionReport>, ClientError> {
        self.pause = PAUSES.0;
        while !report.phase.is_final() {
            (self.news)(News::Going(&report));
            let asked = Instant::now();
            let answer = tokio::select! {
                biased;
                () = cancelled.as_mut() => return Ok(None),
                answer = self.client.report(&report.id, WAIT) => answer,
            };
            match answer {
                Ok(next) => {
                    report = next;
                    if report.phase.is_final() || asked.elapsed() >= AT_ONCE {
                        self.pause = PAUSES.0;
                        continue;
                    }
                }
                Err(error) if error.code() == Some(Code::NoSuchAction) => {
                    return Err(ClientError::Forgotten { id: report.id });
                }
                Err(error) => self.trouble_meanwhile(error)?,
            }
            if self.rest(cancelled.as_mut()).await.is_break() {
                return Ok(None);
            }
        }
        Ok(Some(report))
    }

    /// Cancels the action, and waits until nothing of it runs any more.
    async fn withdraw(mut self) -> Result<Carried, ClientError> {
        let (id, epoch) = (&self.order.id, self.order.request.fence.epoch);
        self.pause = PAUSES.0;
        loop {
            let told = match self.client.cancel(id, epoch).await {
                Ok(report) if !report.phase.is_final() => self.client.report(id, WAIT).await,
                told => told,
            };
            match told {
                Ok(report) if report.phase.is_final() => {
                    self.acknowledge(id, report.attempt).await;
                    return Ok(Carried::Withdrawn(Some(report)));
                }
                Ok(_) => {}
                Err(error) if error.code() == Some(Code::NoSuchAction) => {
                    return Ok(Carried::Withdrawn(None));
                }
                Err(error) => self.trouble_meanwhile(error)?,
            }
            sleep(self.next_pause()).await;
        }
    }

    /// Cancels the action that is in the way, if it is an older one of the same object.
    ///
    /// It is older if it is the same object's, because the request was not refused as the older one.
    async fn make_way(&self, running: &ActionId) {
        let owner = &self.order.request.owner.uid;
        let Ok(status) = self.client.status().await else {
            return;
        };
        let is_ours = (status.owner.as_ref()).is_some_and(|of| of.uid == *owner);
        let runs = (status.action.as_ref())
            .is_some_and(|action| action.id == *running && !action.phase.is_final());
        if is_ours && runs && *running != self.order.id {
            // Whatever comes of it, the request is sent again, and tells.
            let _ = (self.client)
                .cancel(running, self.order.request.fence.epoch)
                .await;
        }
    }

    /// Acknowledges the ends of older actions: their object is further, so nobody takes them any more.
    async fn tidy(&self) {
        let Ok(actions) = self.client.actions().await else {
            return;
        };
        for action in actions {
            if action.id != self.order.id && action.phase.is_final() && !action.acknowledged {
                self.acknowledge(&action.id, action.attempt).await;
            }
        }
    }

    /// Acknowledges an end; where that does not succeed it is left to the action after the next.
    async fn acknowledge(&self, id: &ActionId, attempt: u32) {
        let epoch = self.order.request.fence.epoch;
        for _ in 0..ACKNOWLEDGEMENTS {
            let taken = Acknowledgement { attempt, epoch };
            match self.client.acknowledge(id, &taken).await {
                Err(error) if error.retry_helps() => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Acknowledges an end, without which there is no other attempt.
    async fn acknowledge_surely(&mut self, report: &ActionReport) -> Result<(), ClientError> {
        let taken = Acknowledgement {
            attempt: report.attempt,
            epoch: self.order.request.fence.epoch,
        };
        loop {
            match self.client.acknowledge(&report.id, &taken).await {
                Ok(_) => return Ok(()),
                Err(error) => self.trouble(error)?,
            }
            sleep(self.next_pause()).await;
        }
    }

    /// Tells of an error that asking again may mend, and returns another one.
    fn trouble(&mut self, error: ClientError) -> Result<(), ClientError> {
        if passes(&error, self.since.elapsed()) {
            (self.news)(News::Trouble(&error));
            Ok(())
        } else {
            Err(error)
        }
    }

    /// The same where the agent has taken the action, which goes on whatever is wrong with the requests for it:
    /// only a newer operator, or object, ends the waiting.
    fn trouble_meanwhile(&mut self, error: ClientError) -> Result<(), ClientError> {
        if let Some(Code::Fenced | Code::ForeignOwner) = error.code() {
            return self.trouble(error);
        }
        (self.news)(News::Trouble(&error));
        Ok(())
    }

    /// Waits before the next request; breaks where the order was cancelled.
    async fn rest(
        &mut self,
        cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> std::ops::ControlFlow<()> {
        tokio::select! {
            biased;
            () = cancelled => std::ops::ControlFlow::Break(()),
            () = sleep(self.next_pause()) => std::ops::ControlFlow::Continue(()),
        }
    }

    fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES.1);
        pause
    }
}

/// The action that a request was refused for.
fn in_the_way(error: &ClientError) -> Option<&ActionId> {
    let problem = error.problem()?;
    (problem.code == Code::Busy)
        .then_some(problem.running.as_ref())
        .flatten()
}

/// Whether the request may have been taken although this is what came back.
fn may_have_arrived(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Unanswered { .. } | ClientError::Foreign { .. }
    ) || error.code() == Some(Code::Overloaded)
}

/// Whether an error is waited out; other ones are shown to whoever can mend them.
fn passes(error: &ClientError, waited: Duration) -> bool {
    match error {
        ClientError::Unanswered { .. } | ClientError::Foreign { .. } => true,
        ClientError::Refused(problem) => match problem.code {
            Code::Busy | Code::NotEnded | Code::Stopping | Code::Overloaded | Code::TooSlow => true,
            Code::WrongState => waited < WRONG_STATE,
            _ => false,
        },
        ClientError::NoCommonVersion { .. }
        | ClientError::Forgotten { .. }
        | ClientError::Unsendable { .. }
        | ClientError::Endpoint(_) => false,
    }
}
