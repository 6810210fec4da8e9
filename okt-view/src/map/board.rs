//! Where all objects are, and the moves since the map was started.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use jiff::Timestamp;
use okt_core::draw::{Places, roles};
use okt_core::{Graph, Mark};
use okt_wire::clock::after;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::kind::Kind;
use crate::object::View;

/// How many moves are remembered.
const MOVES: usize = 50_000;

/// How long a watch that fails is shown as such after its last error, in milliseconds: longer than any wait between two
/// tries. One that works again delivers nothing where its objects do not change.
const TROUBLED: i64 = 150_000;

/// How many changes a slow page may be behind before it gets everything anew.
const BEHIND: usize = 4096;

/// How long pages that open get the same.
const SHARED: Duration = Duration::from_secs(2);

/// Where all objects are.
pub(super) struct Board {
    /// The kinds, as the page draws them.
    kinds: Vec<Value>,
    points: HashMap<String, Point>,
    /// The moves by their time, and by a number for moves of the same time.
    moves: BTreeMap<(i64, u64), Move>,
    /// The number of the next move.
    number: u64,
    /// What cannot be watched, and why and when it failed last.
    troubles: BTreeMap<String, (String, i64)>,
    changes: broadcast::Sender<Arc<str>>,
    /// How many changes there were.
    changed: u64,
    opened: Option<Opened>,
}

/// Everything, as the last page that opened got it.
struct Opened {
    /// Until when others get it.
    until: Instant,
    /// How many changes there had been.
    changed: u64,
    event: Bytes,
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
    /// The number of its transitions.
    transitions: u64,
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
            moves: BTreeMap::new(),
            number: 0,
            troubles: BTreeMap::new(),
            changes: broadcast::Sender::new(BEHIND),
            changed: 0,
            opened: None,
        }
    }

    /// Returns an object.
    pub(super) fn point(&self, uid: &str) -> Option<&Point> {
        self.points.get(uid)
    }

    /// Returns an event with everything, and the changes from then on; or when it can be had, if others have just got
    /// one: readers that never read hold few different ones.
    pub(super) fn open(
        &mut self,
        now: Timestamp,
    ) -> Result<(Bytes, broadcast::Receiver<Arc<str>>), Instant> {
        if let Some(opened) = self.opened.as_ref().filter(|it| Instant::now() < it.until) {
            if opened.changed != self.changed {
                return Err(opened.until);
            }
            return Ok((opened.event.clone(), self.changes.subscribe()));
        }
        let (all, changes) = self.subscribe(now);
        let event = Bytes::from(format!("event: snapshot\ndata: {all}\n\n"));
        self.opened = Some(Opened {
            until: after(SHARED),
            changed: self.changed,
            event: event.clone(),
        });
        Ok((event, changes))
    }

    /// Returns everything as text, and the changes from then on.
    fn subscribe(&self, now: Timestamp) -> (String, broadcast::Receiver<Arc<str>>) {
        let all = json!({
            "now": now.as_millisecond(),
            "kinds": self.kinds,
            "points": self.points.values().collect::<Vec<_>>(),
            "moves": self.moves.values().collect::<Vec<_>>(),
            "troubles": self.troubles.iter().map(|(what, (text, _))| (what, text)).collect::<BTreeMap<_, _>>(),
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
        let seen = before.map_or(0, |before| before.transitions);
        let from = before.map(|before| before.state.clone());
        let mut moved = recorded(view, &point.uid, seen);
        // Another program than an operator has changed the state.
        if let Some(from) = from.filter(|from| moved.is_empty() && *from != point.state) {
            let at = point.since.unwrap_or_else(|| now.as_millisecond());
            moved.push(Move::of(at, &point.uid, from, point.state.clone()));
        }
        self.publish(&json!({ "set": point, "moved": moved }));
        for it in moved {
            self.remember(it);
        }
        self.points.insert(point.uid.clone(), point);
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, uid: &str, now: Timestamp) {
        let Some((uid, point)) = self.points.remove_entry(uid) else {
            return;
        };
        let moved = Move::of(now.as_millisecond(), &uid, point.state, None);
        self.publish(&json!({ "gone": uid, "moved": [moved] }));
        self.remember(moved);
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
        let points = self.points.values().filter(|point| of_list(point));
        let gone_points = points.filter(|point| !listed.contains(&point.uid));
        let gone: Vec<String> = gone_points.map(|point| point.uid.clone()).collect();
        for uid in gone {
            self.remove(&uid, now);
        }
    }

    /// Publishes what cannot be watched; an empty text ends it.
    pub(super) fn trouble(&mut self, what: &str, text: &str, now: Timestamp) {
        let before = if text.is_empty() {
            self.troubles.remove(what)
        } else {
            let last = (text.to_owned(), now.as_millisecond());
            self.troubles.insert(what.to_owned(), last)
        };
        if before.as_ref().map_or("", |(before, _)| before) != text {
            self.publish(&json!({ "trouble": { "kind": what, "text": text } }));
        }
    }

    /// Ends the troubles of watches that have not failed again.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let ended = |last: i64| now.as_millisecond() - last >= TROUBLED;
        let ended = self.troubles.iter().filter(|(_, (_, last))| ended(*last));
        for what in ended.map(|(what, _)| what.clone()).collect::<Vec<_>>() {
            self.trouble(&what, "", now);
        }
    }

    /// Remembers a move, and forgets the oldest one if there are too many.
    fn remember(&mut self, moved: Move) {
        self.moves.insert((moved.at, self.number), moved);
        self.number = self.number.wrapping_add(1);
        if self.moves.len() > MOVES {
            self.moves.pop_first();
        }
    }

    fn publish(&mut self, change: &Value) {
        self.changed = self.changed.wrapping_add(1);
        // Nobody may look at the map.
        let _ = self.changes.send(change.to_string().into());
    }
}

impl Move {
    fn of(at: i64, uid: &str, from: Option<String>, to: Option<String>) -> Self {
        let uid = uid.to_owned();
        Self { at, uid, from, to }
    }
}

/// Returns the moves that a status records, after the transition of this number.
fn recorded(view: &View<'_>, uid: &str, after: u64) -> Vec<Move> {
    let history = view
        .position()
        .map_or(&[][..], |position| &position.history);
    let new = history.iter().filter(|it| it.transition > after);
    let moves = new.filter_map(|it| {
        let from = Some(it.from.clone()).filter(|from| !from.is_empty());
        let at = it.at?.as_millisecond();
        Some(Move::of(at, uid, from, Some(it.to.clone())))
    });
    moves.collect()
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
            transitions: view.position().map_or(0, |position| position.transition),
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
        let marks = [
            (Mark::Entry, "entry"),
            (Mark::Rest, "rest"),
            (Mark::Hold, "hold"),
            (Mark::Visit, "visit"),
            (Mark::Leaf, "leaf"),
        ];
        let classes = marks.iter().filter(|(mark, _)| state.is(*mark));
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
    let lines = lines
        .iter()
        .map(|line| json!({ "path": line.path, "trigger": line.is_trigger }));
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
        let lifecycle = json!({
            "state": state, "since": since, "transition": 1, "jumps": 0, "trail": "",
        });
        put_as(board, kind, name, &lifecycle);
    }

    fn put_as(board: &mut Board, kind: &Kind, name: &str, lifecycle: &Value) {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "demo.okt.dev/v1", "kind": "Lamp",
            "metadata": { "name": name, "namespace": "home", "uid": name },
            "status": { "lifecycle": lifecycle },
        }))
        .expect("an object");
        let view = View::of(kind, object);
        assert_eq!(view.unreadable, None);
        board.put(0, &view, "2026-11-26T00:00:00Z".parse().expect("a time"));
    }

    #[test]
    fn a_watch_that_failed_is_shown_until_it_has_not_failed_for_a_while() {
        let mut board = Board::of(&[kind()]);
        let at = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
        let (_, mut changes) = board.subscribe(at(0));
        board.trouble("lamps", "no answer", at(0));
        board.trouble("lamps", "no answer", at(60));
        board.settle(at(209));
        assert!(board.subscribe(at(209)).0.contains("no answer"));
        board.settle(at(210));
        let published = published(&mut changes);
        let texts: Vec<_> = published.iter().map(|it| &it["trouble"]["text"]).collect();
        assert_eq!(texts, ["no answer", ""]);
    }

    fn published(changes: &mut broadcast::Receiver<Arc<str>>) -> Vec<Value> {
        let mut all = Vec::new();
        while let Ok(change) = changes.try_recv() {
            all.push(serde_json::from_str(&change).expect("JSON"));
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn pages_that_open_within_two_seconds_share_one_text_and_miss_nothing() {
        let kind = kind();
        let now = "2026-11-26T00:00:00Z".parse().expect("a time");
        let mut board = Board::of(std::slice::from_ref(&kind));
        put(&mut board, &kind, "hall", "Lit", "2026-11-25T00:00:00Z");
        let (first, _) = board.open(now).expect("nobody else has opened");
        let (second, mut changes) = board.open(now).expect("nothing has changed");
        assert_eq!(first.as_ptr(), second.as_ptr());
        put(&mut board, &kind, "hall", "Dark", "2026-11-26T00:00:00Z");
        assert_eq!(published(&mut changes).len(), 1);
        let later = board.open(now).expect_err("the last text lacks the change");
        assert_eq!(later - Instant::now(), SHARED);
        tokio::time::advance(SHARED).await;
        let (third, _) = board.open(now).expect("it is time");
        let text = String::from_utf8_lossy(&third);
        assert!(text.starts_with("event: snapshot\ndata: {") && text.ends_with("}\n\n"));
        assert!(text.contains("Dark"));
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
        assert_eq!(
            published(&mut changes),
            [Value::Null; 0],
            "nothing has changed"
        );
        put(&mut board, &kind, "hall", "Dark", "2026-11-26T00:00:00Z");
        let moved = &published(&mut changes)[0]["moved"][0];
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
        assert_eq!(published(&mut changes)[0]["gone"], "hall");
        assert!(board.point("hall").is_none());
    }

    #[test]
    fn the_moves_that_a_status_records_are_remembered_each_once_and_in_order() {
        let kind = kind();
        let mut board = Board::of(std::slice::from_ref(&kind));
        let lifecycle = |transitions: &[(u64, &str, &str, &str)]| {
            let history = transitions.iter().map(|(number, from, to, at)| {
                json!({ "transition": number, "from": from, "to": to, "at": at, "cause": "Handler" })
            });
            let (last, _, state, since) = transitions[transitions.len() - 1];
            json!({
                "state": state, "since": since, "transition": last, "jumps": 0, "trail": "",
                "history": history.collect::<Vec<_>>(),
            })
        };
        let first = [
            (1, "Start", "Lit", "2026-11-25T01:00:00Z"),
            (2, "Lit", "Low", "2026-11-25T03:00:00Z"),
        ];
        put_as(&mut board, &kind, "hall", &lifecycle(&first));
        let other = [(1, "Start", "Dark", "2026-11-25T02:00:00Z")];
        put_as(&mut board, &kind, "attic", &lifecycle(&other));
        // Two moves between two events.
        let later = [
            first[1],
            (3, "Low", "Lit", "2026-11-25T04:00:00Z"),
            (4, "Lit", "Dark", "2026-11-25T05:00:00Z"),
        ];
        put_as(&mut board, &kind, "hall", &lifecycle(&later));
        let moves: Vec<(&str, &str)> = board
            .moves
            .values()
            .map(|it| (&*it.uid, it.to.as_deref().unwrap_or_default()))
            .collect();
        let expected = [
            ("hall", "Lit"),
            ("attic", "Dark"),
            ("hall", "Low"),
            ("hall", "Lit"),
            ("hall", "Dark"),
        ];
        assert_eq!(moves, expected);
    }

    #[test]
    fn the_oldest_moves_are_forgotten() {
        let kind = kind();
        let now = "2026-11-26T00:00:00Z".parse().expect("a time");
        let mut board = Board::of(std::slice::from_ref(&kind));
        for number in 0..=MOVES + 1 {
            let state = if number % 2 == 0 { "Dark" } else { "Lit" };
            put(&mut board, &kind, "hall", state, "2027-01-01T00:00:00Z");
        }
        assert_eq!(board.moves.len(), MOVES);
        let (all, _) = board.subscribe(now);
        assert!(all.len() < 200 * MOVES, "{}", all.len());
    }
}
