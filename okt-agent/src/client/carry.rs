//! Driving an action to its end: request it, wait for it, acknowledge it, whatever is lost or restarted on the way.

use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Client, ClientError};
use crate::wire::{Acknowledgement, ActionId, ActionReport, ActionRequest, Code, Phase};

/// How long the agent is asked to wait for the end of an action before it answers.
const WAIT: Duration = Duration::from_secs(10);

/// An agent that answers sooner than this does not wait. The client then pauses between its requests.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The first and the longest pause between two requests of the same kind.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long the application may be in none of the states that a request names: the agent observes it again soon.
const WRONG_STATE: Duration = Duration::from_secs(30);

/// How often an acknowledgement is sent before it is left to a later action.
const ACKNOWLEDGEMENTS: u32 = 2;

/// An action that an agent should do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The id of the action.
    pub id: ActionId,
    /// The request.
    pub request: ActionRequest,
    /// The trace that the work belongs to, as in a `traceparent` header (W3C Trace Context).
    pub traceparent: Option<String>,
    /// Whether to begin another attempt if the last one has ended without success.
    ///
    /// If `false`, the end of an attempt that is not acknowledged yet is the result of the order.
    pub again: bool,
}

/// A report on the way to the end of an order.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// The action has not ended yet.
    Going(&'a ActionReport),
    /// A request failed, and is retried after a pause.
    Trouble(&'a ClientError),
}

/// The end of an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Carried {
    /// The action has ended.
    ///
    /// The end is acknowledged, unless its phase is [`Phase::Unknown`]. The agent keeps an unknown end until a caller
    /// decides on another attempt ([`Order::again`]), so that no crash begins one.
    Ended(ActionReport),
    /// The action was cancelled and nothing of it runs any more; `None` if the agent does not know it.
    Withdrawn(Option<ActionReport>),
}

impl Client {
    /// Drives an action to its end, or cancels it when `cancelled` returns.
    ///
    /// # Flow
    ///
    /// It requests the action until the agent has taken it, waits until it has ended, and acknowledges its end.
    /// If an older action of the same object runs, it cancels that one, because the object has moved on. It waits for
    /// an action of another object.
    /// It also acknowledges the ends of older actions, because they are no longer needed.
    ///
    /// # Guarantees
    ///
    /// Lost answers and restarts do not begin more attempts than the caller decided on.
    /// Dropping the future leaves the action alone; the next call with the same order finds it.
    ///
    /// # Caveats
    ///
    /// It keeps requesting an agent that does not answer, without end: set a timeout around it.
    ///
    /// # Errors
    ///
    /// An error that did not pass within the time that one call retries it.
    /// [`ClientError::retry_helps`] returns whether another call may succeed.
    pub async fn carry(
        &self,
        order: &Order,
        cancelled: impl Future<Output = ()>,
        news: impl FnMut(News<'_>),
    ) -> Result<Carried, ClientError> {
        self.carry_renewed(order, cancelled, news, || None).await
    }

    /// Does as [`carry`](Self::carry), and goes on with the client that `renewed` returns after a failed request, if any:
    /// an agent may get another address, token or certificate during its work.
    ///
    /// # Errors
    ///
    /// As for [`carry`](Self::carry).
    pub async fn carry_renewed(
        &self,
        order: &Order,
        cancelled: impl Future<Output = ()>,
        news: impl FnMut(News<'_>),
        renewed: impl FnMut() -> Option<Self>,
    ) -> Result<Carried, ClientError> {
        let carrier = Carrier {
            client: self.clone(),
            order,
            news,
            renewed,
            pause: PAUSES.0,
            again: order.again,
            since: Instant::now(),
        };
        carrier.carry(pin!(cancelled)).await
    }
}

struct Carrier<'a, N, R> {
    client: Client,
    order: &'a Order,
    news: N,
    renewed: R,
    /// The pause before the next request of the same kind.
    pause: Duration,
    again: bool,
    since: Instant,
}

impl<N: FnMut(News<'_>), R: FnMut() -> Option<Client>> Carrier<'_, N, R> {
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
            // It ended before this call, and the caller wants another attempt.
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

    /// Requests the action until the agent has taken it. Returns `None` if it was cancelled before.
    async fn ask(
        &mut self,
        mut cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<ActionReport>, ClientError> {
        let (id, request) = (&self.order.id, &self.order.request);
        let traceparent = self.order.traceparent.as_deref();
        self.pause = PAUSES.0;
        loop {
            // The request is not dropped half-way, because it might arrive after the one that cancels it.
            match self.client.ask(id, request, traceparent).await {
                Ok(asked) => {
                    if asked.began {
                        // The attempt is new, so there is no earlier end to acknowledge first.
                        self.again = false;
                        self.tidy().await;
                    }
                    return Ok(Some(asked.report));
                }
                Err(error) => {
                    if let Some(running) = in_the_way(&error) {
                        self.make_way(running).await;
                    }
                    // The request may have begun the wanted attempt, so the next end found is that attempt's.
                    self.again &= !may_have_arrived(&error);
                    self.trouble(error)?;
                }
            }
            if self.cancelled_meanwhile(cancelled.as_mut()).await {
                return Ok(None);
            }
        }
    }

    /// Waits until the action has ended. Returns `None` if it was cancelled before.
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
            if self.cancelled_meanwhile(cancelled.as_mut()).await {
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
            let answer = match self.client.cancel(id, epoch).await {
                Ok(report) if !report.phase.is_final() => self.client.report(id, WAIT).await,
                answer => answer,
            };
            match answer {
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

    /// Cancels the running action if it is an older one of the same object.
    ///
    /// An action of the same object is older, because otherwise the request would have been refused as stale.
    async fn make_way(&self, running: &ActionId) {
        let owner = &self.order.request.owner.uid;
        let Ok(status) = self.client.status().await else {
            return;
        };
        let is_ours = status.owner.is_some_and(|of| of.uid == *owner);
        let last = status.action.filter(|action| !action.phase.is_final());
        let runs = last.is_some_and(|action| action.id == *running);
        if is_ours && runs && *running != self.order.id {
            let epoch = self.order.request.fence.epoch;
            // The result does not matter, because the request is retried anyway.
            let _ = self.client.cancel(running, epoch).await;
        }
    }

    /// Acknowledges the ends of older actions, because their object has moved on.
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

    /// Acknowledges an end. If that fails, a later action acknowledges it.
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

    /// Acknowledges an end until it succeeds, because otherwise the agent begins no other attempt.
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

    /// Reports an error that a retry may fix, and returns any other error.
    fn trouble(&mut self, error: ClientError) -> Result<(), ClientError> {
        if passes(&error, self.since.elapsed()) {
            self.go_on_after(&error);
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Handles an error after the agent has taken the action, which continues whatever happens to requests.
    /// Only a newer operator or object ends the waiting.
    fn trouble_meanwhile(&mut self, error: ClientError) -> Result<(), ClientError> {
        if let Some(Code::Fenced | Code::ForeignOwner) = error.code() {
            return self.trouble(error);
        }
        self.go_on_after(&error);
        Ok(())
    }

    fn go_on_after(&mut self, error: &ClientError) {
        (self.news)(News::Trouble(error));
        if let Some(client) = (self.renewed)() {
            self.client = client;
        }
    }

    /// Pauses before the next request. Returns whether the order was cancelled meanwhile.
    async fn cancelled_meanwhile(&mut self, cancelled: Pin<&mut impl Future<Output = ()>>) -> bool {
        tokio::select! {
            biased;
            () = cancelled => true,
            () = sleep(self.next_pause()) => false,
        }
    }

    fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES.1);
        pause
    }
}

/// Returns the running action that made the agent refuse the request.
fn in_the_way(error: &ClientError) -> Option<&ActionId> {
    let busy = error.problem().filter(|problem| problem.code == Code::Busy);
    busy?.running.as_ref()
}

/// Returns whether the agent may have taken the request despite this error.
fn may_have_arrived(error: &ClientError) -> bool {
    match error {
        ClientError::Unanswered { .. } | ClientError::Foreign { .. } => true,
        error => error.code() == Some(Code::Overloaded),
    }
}

/// Returns whether to wait until an error passes. Other errors are returned to the caller.
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
