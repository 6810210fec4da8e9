//! `kubectl okt top`: the map in the terminal, live.

mod draw;
mod screen;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use futures::future::{BoxFuture, OptionFuture};
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kube::Client;
use okt_view::{Kind, View, Why};
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::screen::{KeyAction, Screen};
use crate::error::Error;
use crate::select::{KindScope, labelled, watch_with};

/// Show all objects on their graphs, live, in the whole terminal.
#[derive(Args)]
#[command(after_help = "Keys:
  Up, Down, j, k     the object above, below        Tab        the next kind
  Left, Right, h, l  the graph, the objects         /          filter by text
  Enter              why an object is where it is   p          only those to look at
  Esc                back                           q, Ctrl-C  end
On the graph, Up and Down choose a state, whose objects are listed.")]
pub(crate) struct Top {
    #[command(flatten)]
    scope: KindScope,
}

/// How often the times in a state are drawn anew.
const TICK: Duration = Duration::from_secs(1);

/// The shortest time between two drawings, so that many changes are drawn at once.
const PAUSE: Duration = Duration::from_millis(50);

/// How long an answer of the cluster may take, and how long news stays on the screen: watches that fail report it again
/// within half of it.
const PATIENCE: Duration = Duration::from_mins(1);

impl Top {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            return Err(Error::Failed(
                "top draws on a terminal; for a pipe there is `kubectl okt list -w`".to_owned(),
            ));
        }
        let kinds = self.scope.kinds(client).await?;
        let mut terminal = ratatui::init();
        let ended = self.follow(client, &kinds, &mut terminal).await;
        ratatui::restore();
        ended
    }

    /// Draws the objects until the user ends it.
    async fn follow(
        &self,
        client: &Client,
        kinds: &[Kind],
        terminal: &mut ratatui::DefaultTerminal,
    ) -> Result<(), Error> {
        let namespace = self.scope.namespace(client);
        let (sender, mut warnings) = mpsc::unbounded_channel();
        let mut changes = watch_with(client, kinds, namespace, labelled(None), move |warning| {
            // The receiver lives as long as the watch.
            let _ = sender.send(warning);
        });
        let mut keys = keys();
        let mut screen = Screen::new(kinds);
        let mut asked: Option<BoxFuture<'_, _>> = None;
        let mut tick = tokio::time::interval(TICK);
        loop {
            screen.drop_notice(PATIENCE);
            let drawn = terminal.draw(|frame| draw::draw(frame, &mut screen, Timestamp::now()));
            drawn.map_err(|error| Error::Failed(format!("cannot draw: {error}")))?;
            let until = tokio::time::Instant::now() + PAUSE;
            // A key is answered at once; of many changes the last ones are drawn.
            loop {
                tokio::select! {
                    key = keys.recv() => match key {
                        Some(Event::Key(key)) => match screen.key(key) {
                            KeyAction::Nothing => {}
                            KeyAction::End => return Ok(()),
                            KeyAction::Why(view) => {
                                screen.show(format!("reading why {} is where it is …", view.title()));
                                asked = Some(timeout(PATIENCE, why(client, *view)).boxed());
                            }
                        },
                        Some(_) => {}
                        None => return Ok(()),
                    },
                    Some(answer) = OptionFuture::from(asked.as_mut()) => {
                        asked = None;
                        match answer {
                            Ok((view, why)) => screen.open(view, why),
                            Err(_) => screen.show(format!("the cluster did not say why within {} s; Enter asks again", PATIENCE.as_secs())),
                        }
                    }
                    Some(warning) = warnings.recv() => screen.show(warning),
                    change = changes.next() => {
                        let Some(change) = change else {
                            return Ok(());
                        };
                        screen.take(change?);
                        if tokio::time::Instant::now() < until {
                            continue;
                        }
                    }
                    _ = tick.tick() => {}
                }
                break;
            }
        }
    }
}

async fn why<'k>(client: &Client, view: View<'k>) -> (View<'k>, Why) {
    let why = Why::of(client, &view, Timestamp::now()).await;
    (view, why)
}

/// Reads the keys in a thread of its own, which ends with the program.
fn keys() -> mpsc::UnboundedReceiver<Event> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    receiver
}
