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
use kube::runtime::watcher;
use okt_view::{Kind, View, Why};
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::screen::{KeyAction, Screen};
use crate::error::Error;
use crate::select::{chosen, watch_and_tell};

/// Show all objects on their graphs, live, in the whole terminal.
#[derive(Args)]
#[command(after_help = "Keys:
  Up, Down, j, k     the object above, below        Tab        the next kind
  Left, Right, h, l  the graph, the objects         /          filter by text
  Enter              why an object is where it is   p          only those to look at
  Esc                back                           q, Ctrl-C  end
On the graph, Up and Down choose a state, whose objects are listed.")]
pub(crate) struct Top {
    /// Only objects of this type.
    #[arg(value_name = "TYPE")]
    kind: Option<String>,
    /// Objects of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

/// How often the times in a state are drawn anew.
const TICK: Duration = Duration::from_secs(1);

/// The shortest time between two drawings, so that many changes are drawn at once.
const PAUSE: Duration = Duration::from_millis(50);

/// How long an answer of the cluster may take, and how long news stays on the screen: watches that fail say so again
/// within half of it.
const PATIENCE: Duration = Duration::from_mins(1);

impl Top {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            return Err(Error::Failed(
                "top draws on a terminal; for a pipe there is `kubectl okt list -w`".to_owned(),
            ));
        }
        let kinds = chosen(client, self.kind.as_deref()).await?;
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
        let namespace = (!self.all_namespaces).then(|| client.default_namespace());
        let config = watcher::Config::default();
        let (tell, mut troubles) = mpsc::unbounded_channel();
        let mut changes = watch_and_tell(client, kinds, namespace, &config, move |trouble| {
            // The receiver lives as long as the watch.
            let _ = tell.send(trouble);
        });
        let mut keys = keys();
        let mut screen = Screen::new(kinds);
        let mut asked: Option<BoxFuture<'_, _>> = None;
        let mut tick = tokio::time::interval(TICK);
        loop {
            screen.forget_news(PATIENCE);
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
                            KeyAction::Why(uid) => {
                                if let Some(view) = screen.view(&uid).cloned() {
                                    let what = view.title();
                                    screen.tell(format!("reading why {what} is where it is …"));
                                    asked = Some(timeout(PATIENCE, why(client, view)).boxed());
                                }
                            }
                        },
                        Some(_) => {}
                        None => return Ok(()),
                    },
                    Some(answer) = OptionFuture::from(asked.as_mut()) => {
                        asked = None;
                        match answer {
                            Ok((view, why)) => screen.open(view, why),
                            Err(_) => screen.tell(format!("the cluster did not say why within {} s; Enter asks again", PATIENCE.as_secs())),
                        }
                    }
                    Some(trouble) = troubles.recv() => screen.tell(trouble),
                    change = changes.next() => {
                        let Some(change) = change else {
                            return Ok(());
                        };
                        take(&mut screen, change?);
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

fn take<'k>(
    screen: &mut Screen<'k>,
    (kind, event): (&'k Kind, watcher::Event<kube::api::DynamicObject>),
) {
    match event {
        watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
            screen.put(View::of(kind, object));
        }
        watcher::Event::Delete(object) => {
            screen.remove(object.metadata.uid.as_deref().unwrap_or_default());
        }
        watcher::Event::Init => screen.begin_list(kind),
        watcher::Event::InitDone => screen.end_list(kind),
    }
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
