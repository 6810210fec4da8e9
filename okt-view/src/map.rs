//! The map: a page that shows all objects on their graphs, live.
//!
//! | file | subject |
//! |---|---|
//! | `board` | where all objects are, and the moves since the map was started |
//! | `serve` | the page, the stream of changes, and who may read them |
//! | `page/` | the page itself, as a browser reads it |

mod board;
mod serve;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::select_all;
use jiff::Timestamp;
use kube::Client;
use kube::runtime::watcher;
use okt_wire::api_timeout::limit_answers;
use okt_wire::texts::watch_message;
use okt_wire::watch::PAGE;
use parking_lot::Mutex;

use self::board::Board;
pub use self::serve::MapError;
use super::kind::Kind;
use super::object::View;
use super::text::plain;

/// How often the map forgets watches that have failed and do not fail again.
const SETTLING: Duration = Duration::from_secs(15);

/// A live map of the objects of some kinds.
///
/// Whoever may read the page may read what the client of the map may read: see [`serve`](Self::serve).
///
/// ```no_run
/// use okt::view::{Kind, Map};
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let map = Map::new(client.clone(), Kind::all(&client).await?, []);
/// let (address, served) = map.serve("127.0.0.1:0".parse()?, None).await?;
/// println!("the map is at http://{address}/");
/// tokio::join!(map.watch(), served);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Map {
    client: Client,
    kinds: Arc<[Kind]>,
    namespaces: Arc<[String]>,
    board: Arc<Mutex<Board>>,
}

impl Map {
    /// Creates a map of the objects in these namespaces; none means all.
    pub fn new(
        client: Client,
        kinds: impl IntoIterator<Item = Kind>,
        namespaces: impl IntoIterator<Item = String>,
    ) -> Self {
        let kinds: Arc<[Kind]> = kinds.into_iter().collect();
        Self {
            client: limit_answers(client),
            board: Arc::new(Mutex::new(Board::of(&kinds))),
            kinds,
            namespaces: namespaces.into_iter().collect(),
        }
    }

    /// Watches the objects, as long as it is polled. Where a watch fails, the page shows that, and it is tried again.
    pub async fn watch(&self) {
        let mut watches = Vec::new();
        for (number, kind) in self.kinds.iter().enumerate() {
            let of_namespaces = if self.namespaces.is_empty() || !kind.is_namespaced {
                vec![None]
            } else {
                self.namespaces.iter().map(|it| Some(it.as_str())).collect()
            };
            for namespace in of_namespaces {
                let config = watcher::Config::default().page_size(PAGE);
                let events = kind.events(&self.client, namespace, config);
                let listed = HashSet::new();
                let place = (number, namespace, listed);
                let taken = events.scan(place, |place, event| {
                    let (number, namespace, listed) = place;
                    self.take(*number, *namespace, listed, event);
                    std::future::ready(Some(()))
                });
                watches.push(taken.boxed());
            }
        }
        let mut events = select_all(watches);
        let mut tick = tokio::time::interval(SETTLING);
        loop {
            tokio::select! {
                // None without a kind to watch.
                Some(()) = events.next() => {}
                _ = tick.tick() => self.board.lock().settle(Timestamp::now()),
            }
        }
    }

    /// Takes an event of a watch; `listed` are the objects of a list that is not complete.
    fn take(
        &self,
        number: usize,
        namespace: Option<&str>,
        listed: &mut HashSet<String>,
        event: watcher::Result<watcher::Event<kube::api::DynamicObject>>,
    ) {
        let kind = &self.kinds[number];
        let now = Timestamp::now();
        let mut board = self.board.lock();
        if event.is_ok() {
            board.trouble(&kind.id(), "", now);
        }
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                listed.extend(object.metadata.uid.clone());
                board.put(number, &View::of(kind, object), now);
            }
            Ok(watcher::Event::InitDone) => {
                board.keep(number, namespace, listed, now);
                listed.clear();
            }
            Ok(watcher::Event::Apply(object)) => board.put(number, &View::of(kind, object), now),
            Ok(watcher::Event::Delete(object)) => {
                board.remove(object.metadata.uid.as_deref().unwrap_or_default(), now);
            }
            Err(error) => {
                let why = plain(&watch_message(&error));
                let text = format!("{} cannot be watched: {why}; trying again", kind.id());
                board.trouble(&kind.id(), &text, now);
            }
        }
    }
}
