//! Where all objects are, and the moves since the map was started.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use okt_core::draw::{Places, roles};
use okt_core::{Graph, Mark};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::view::kind::Kind;
use crate::view::object::View;

/// How many moves are remembered.
const MOVES: usize = 50_000;

/// How many changes a slow page may be behind before it gets everything anew.
const BEHIND: usize = 4096;

/// Where all objects are.
pub(super) struct Board {
    /// The kinds, as the page draws them.
    kinds: Vec<Value>,
    points: HashMap<String, Point>,
    moves: VecDeque<Move>,
    /// What cannot be watched, and why.
    troubles: BTreeMap<String, String>,
    changes: broadcast::Sender<Arc<str>>,
}

/// An object on the map. All times are milliseconds since 1970.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Point {
    uid: String,
    /// The index of its kind.
    pub(super) kind: usize,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    state: Option<String>,
    since: Option<i64>,
    created: Option<i64>,
    desired: Option<String>,
    visit: Option<String>,
    ready: String,
    reason: String,
    message: String,
    /// Whether a person should look.
    stuck: bool,
    deleting: bool,
    paused: bool,
}

/// A move of an object; to no state when it is gone.
#[derive(Clone, Debug, Serialize)]
struct Move {
    at: i64,
    uid: String,
    from: Option<String>,
    to: Option<String>,
}

impl Board {
    pub(super) fn of(kinds: &[Kind]) -> Self {
        Self {
            kinds: kinds.iter().map(drawn).collect(),
            points: HashMap::new(),
            moves: VecDeque::new(),
            troubles: BTreeMap::new(),
            changes: broadcast::Sender::new(BEHIND),
        }
    }

    /// Returns an object.
    pub(super) fn point(&self, uid: &str) -> Option<&Point> {
        self.points.get(uid)
    }

    /// Returns everything as text, and the changes from then on.
    pub(super) fn subscribe(&self, now: Timestamp) -> (String, broadcast::Receiver<Arc<str>>) {
        let all = json!({
            "now": now.as_millisecond(),
            "kinds": self.kinds,
            "points": self.points.values().collect::<Vec<_>>(),
            "moves": self.moves,
            "troubles": self.troubles,
        });
        (all.to_string(), self.changes.subscribe())
    }

    /// Puts an object where it is.
    pub(super) fn put(&mut self, kind: usize, view: &View<'_>, now: Timestamp) {
        let point = Point::of(kind, view);
        let before = self.points.get(&point.uid);
        if before == Some(&point) {
            return;
        }
        let from = before.map(|before| before.state.clone());
        let moved = from.filter(|from| *from != point.state).map(|from| {
            let at = point.since.unwrap_or_else(|| now.as_millisecond());
            self.moved(at, point.uid.clone(), from, point.state.clone())
        });
        self.tell(&json!({ "set": point, "moved": moved }));
        self.points.insert(point.uid.clone(), point);
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, uid: &str, now: Timestamp) {
        let Some((uid, point)) = self.points.remove_entry(uid) else {
            return;
        };
        let moved = self.moved(now.as_millisecond(), uid.clone(), point.state, None);
        self.tell(&json!({ "gone": uid, "moved": moved }));
    }

    /// Removes the objects of a kind that a list lacks.
    pub(super) fn keep(
        &mut self,
        kind: usize,
        namespace: Option<&str>,
        listed: &HashSet<String>,
        now: Timestamp,
    ) {
        let of_list = |point: &Point| {
            point.kind == kind && (namespace.is_none() || point.namespace.as_deref() == namespace)
        };
        let gone = self.points.values().filter(|point| of_list(point));
        let gone = gone.filter(|point| !listed.contains(&point.uid));
        let gone: Vec<String> = gone.map(|point| point.uid.clone()).collect();
        for uid in gone {
            self.remove(&uid, now);
        }
    }

    /// Says what cannot be watched; an empty text ends it.
    pub(super) fn trouble(&mut self, what: &str, text: &str) {
        if self.troubles.get(what).map_or("", String::as_str) == text {
            return;
        }
        if text.is_empty() {
            self.troubles.remove(what);
        } else {
            self.troubles.insert(what.to_owned(), text.to_owned());
        }
        self.tell(&json!({ "trouble": { "kind": what, "text": text } }));
    }

    /// Remembers a move, and returns it. Moves are in order of time, whatever the clocks of operators say.
    fn moved(&mut self, at: i64, uid: String, from: Option<String>, to: Option<String>) -> Move {
        let last = self.moves.back().map_or(at, |last| last.at);
        let moved = Move {
            at: at.max(last),
            uid,
            from,
            to,
        };
        if self.moves.len() == MOVES {
            self.moves.pop_front();
        }
        self.moves.push_back(moved.clone());
        moved
    }

    fn tell(&self, change: &Value) {
        // Nobody may look at the map.
        let _ = self.changes.send(change.to_string().into());
    }
}

impl Point {
    fn of(kind: usize, view: &View<'_>) -> Self {
        let (ready, reason, message) = view.ready();
        let created = view.meta.creation_timestamp.as_ref();
        let since = view.position().and_then(|position| position.since);
        Self {
            uid: view.meta.uid.clone().unwrap_or_default(),
            kind,
            namespace: view.namespace().map(str::to_owned),
            name: view.name().to_owned(),
            state: view.state().map(str::to_owned),
            since: since.map(Timestamp::as_millisecond),
            created: created.map(|created| created.0.as_millisecond()),
            desired: view.desired().map(str::to_owned),
            visit: view.pending_visit().map(str::to_owned),
            ready: ready.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            stuck: view.is_stuck(),
            deleting: view.is_deleting(),
            paused: view.is_paused(),
        }
    }
}

/// Returns a kind as the page draws it.
fn drawn(kind: &Kind) -> Value {
    json!({
        "id": kind.id(),
        "kind": kind.resource.kind,
        "graph": kind.graph().map(laid_out),
        "why": kind.graph.as_ref().err(),
    })
}

fn laid_out(graph: &'static Graph<'static>) -> Value {
    let Places {
        width,
        height,
        states,
        lines,
        labels,
    } = graph.places();
    let states = graph.states.iter().zip(states).map(|(state, area)| {
        let classes = [
            (Mark::Entry, "entry"),
            (Mark::Rest, "rest"),
            (Mark::Hold, "hold"),
            (Mark::Visit, "visit"),
            (Mark::Leaf, "leaf"),
        ];
        let classes = classes.iter().filter(|(mark, _)| state.is(*mark));
        let doc = match (state.doc, roles(state).join(", ")) {
            ("", roles) => roles,
            (doc, roles) if roles.is_empty() => doc.to_owned(),
            (doc, roles) => format!("{doc} ({roles})"),
        };
        json!({
            "name": state.name, "doc": doc,
            "roles": classes.map(|(_, class)| class).collect::<Vec<_>>(),
            "x": area.x, "y": area.y, "width": area.width, "height": area.height,
        })
    });
    let lines = lines.iter().map(
        |line| json!({ "path": line.path, "trigger": line.is_trigger, "head": line.has_head }),
    );
    json!({
        "width": width, "height": height,
        "states": states.collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "labels": labels,
    })
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;

    use super::*;

    fn kind() -> Kind {
        let crd = serde_json::from_value(json!({
            "metadata": { "name": "lamps.demo.okt.dev" },
            "spec": {
                "group": "demo.okt.dev", "scope": "Namespaced", "names": { "kind": "Lamp", "plural": "lamps" },
                "versions": [{ "name": "v1", "served": true, "storage": true }],
            },
        }));
        Kind::of_crd(&crd.expect("a definition")).expect("it is served")
    }

    fn put(board: &mut Board, kind: &Kind, name: &str, state: &str, since: &str) {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "demo.okt.dev/v1", "kind": "Lamp",
            "metadata": { "name": name, "namespace": "home", "uid": name },
            "status": { "lifecycle": {
                "state": state, "since": since, "transition": 1, "jumps": 0, "trail": "",
            } },
        }))
        .expect("an object");
        let view = View::of(kind, object);
        assert_eq!(view.unreadable, None);
        board.put(0, &view, "2026-11-26T00:00:00Z".parse().expect("a time"));
    }

    fn told(changes: &mut broadcast::Receiver<Arc<str>>) -> Vec<Value> {
        let mut all = Vec::new();
        while let Ok(change) = changes.try_recv() {
            all.push(serde_json::from_str(&change).expect("JSON"));
        }
        all
    }

    #[test]
    fn a_page_that_opens_gets_everything_and_then_each_change_once() {
        let kind = kind();
        let now = "2026-11-26T00:00:00Z".parse().expect("a time");
        let mut board = Board::of(std::slice::from_ref(&kind));
        put(&mut board, &kind, "hall", "Lit", "2026-11-25T00:00:00Z");
        let (all, mut changes) = board.subscribe(now);
        let all: Value = serde_json::from_str(&all).expect("JSON");
        assert_eq!(all["points"][0]["state"], "Lit");
        put(&mut board, &kind, "hall", "Lit", "2026-11-25T00:00:00Z");
        assert_eq!(told(&mut changes), [Value::Null; 0], "nothing has changed");
        put(&mut board, &kind, "hall", "Dark", "2026-11-26T00:00:00Z");
        let moved = &told(&mut changes)[0]["moved"];
        assert_eq!(
            (&moved["from"], &moved["to"]),
            (&json!("Lit"), &json!("Dark"))
        );
        // A list that lacks it: its deletion was missed.
        board.keep(0, Some("elsewhere"), &HashSet::new(), now);
        assert!(
            board.point("hall").is_some(),
            "the list was of another namespace"
        );
        board.keep(0, None, &HashSet::new(), now);
        assert_eq!(told(&mut changes)[0]["gone"], "hall");
        assert!(board.point("hall").is_none());
    }

    #[test]
    fn moves_are_in_order_whatever_the_clocks_of_operators_say_and_the_oldest_are_forgotten() {
        let kind = kind();
        let now = "2026-11-26T00:00:00Z".parse().expect("a time");
        let mut board = Board::of(std::slice::from_ref(&kind));
        put(&mut board, &kind, "hall", "Lit", "2026-11-25T00:00:00Z");
        put(&mut board, &kind, "hall", "Dark", "2027-01-01T00:00:00Z");
        put(&mut board, &kind, "hall", "Lit", "2026-01-01T00:00:00Z");
        let times: Vec<i64> = board.moves.iter().map(|it| it.at).collect();
        assert!(times.is_sorted() && times.len() == 2, "{times:?}");
        for number in 0..MOVES {
            let state = if number % 2 == 0 { "Dark" } else { "Lit" };
            put(&mut board, &kind, "hall", state, "2027-01-01T00:00:00Z");
        }
        assert_eq!(board.moves.len(), MOVES);
        let (all, _) = board.subscribe(now);
        assert!(all.len() < 200 * MOVES, "{}", all.len());
    }
}
