//! What is on the screen, and what keys do. Pure.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use kube::runtime::watcher;
use okt_core::StateId;
use okt_view::{Kind, View, Why};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::select::{KindEvent, OpenLists};

/// The objects, and what the user looks at.
#[derive(Default)]
pub(super) struct Screen<'k> {
    pub(super) kinds: &'k [Kind],
    views: HashMap<String, View<'k>>,
    listing: OpenLists,
    /// The index of the kind that is shown.
    pub(super) kind: usize,
    /// Whether the keys are for the graph, and not for the objects.
    pub(super) on_graph: bool,
    /// The state whose objects are listed; none for all.
    pub(super) state: Option<StateId>,
    /// The index of the chosen object.
    pub(super) row: usize,
    pub(super) filter: String,
    /// Whether keys are letters of the filter.
    pub(super) is_typing: bool,
    pub(super) only_stuck: bool,
    /// The object whose reasons are shown.
    pub(super) opened: Option<(View<'k>, Why)>,
    /// What the last line shows instead of the keys, and since when.
    notice: Option<(String, Instant)>,
}

/// What a key asks for.
pub(super) enum KeyAction<'k> {
    Nothing,
    End,
    /// Why this object is where it is.
    Why(Box<View<'k>>),
}

/// The objects of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Count {
    pub(super) all: usize,
    /// Those that a person should look at.
    pub(super) stuck: usize,
    pub(super) ready: usize,
}

impl<'k> Screen<'k> {
    pub(super) fn new(kinds: &'k [Kind]) -> Self {
        Self {
            kinds,
            ..Self::default()
        }
    }

    pub(super) fn show(&mut self, notice: String) {
        self.notice = Some((notice, Instant::now()));
    }

    pub(super) fn notice(&self) -> Option<&str> {
        self.notice.as_ref().map(|(notice, _)| notice.as_str())
    }

    pub(super) fn drop_notice(&mut self, age: Duration) {
        self.notice.take_if(|(_, since)| since.elapsed() >= age);
    }

    /// Takes what a watch found.
    pub(super) fn take(&mut self, (kind, event): KindEvent<'k>) {
        match event {
            watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                let view = View::of(kind, object);
                self.views.insert(self.listing.note(&view), view);
            }
            watcher::Event::Delete(object) => {
                let uid = object.metadata.uid.unwrap_or_default();
                self.views.remove(&uid);
            }
            watcher::Event::Init => self.listing.begin(kind),
            watcher::Event::InitDone => {
                let is_gone = self.listing.end(kind);
                self.views.retain(|uid, view| !is_gone(uid, view));
            }
        }
    }

    pub(super) fn open(&mut self, view: View<'k>, why: Why) {
        self.notice = None;
        self.opened = Some((view, why));
    }

    pub(super) fn shown_kind(&self) -> &'k Kind {
        &self.kinds[self.kind]
    }

    /// Returns the number of all objects of a kind, and of those that a person should look at.
    pub(super) fn of_kind(&self, kind: &Kind) -> Count {
        // Each view borrows its kind from the same list.
        let views = self.views.values();
        views
            .filter(|view| std::ptr::eq(view.kind, kind))
            .fold(Count::default(), Count::with)
    }

    /// Returns the objects in each state of the kind that is shown, by the name of the state.
    pub(super) fn counts(&self) -> BTreeMap<&str, Count> {
        let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
        for view in self.views.values().filter(|view| self.is_of_kind(view)) {
            let count = counts.entry(view.state().unwrap_or("(none)")).or_default();
            *count = count.with(view);
        }
        counts
    }

    fn is_of_kind(&self, view: &View<'_>) -> bool {
        std::ptr::eq(view.kind, self.shown_kind())
    }

    /// Returns the objects of the list: those that a person should look at come first.
    pub(super) fn rows(&self) -> Vec<&View<'k>> {
        let name = self
            .state
            .and_then(|id| Some(self.shown_kind().graph()?.name_of(id)));
        let filter = self.filter.to_lowercase();
        let mut rows: Vec<&View<'k>> = self
            .views
            .values()
            .filter(|view| self.is_of_kind(view))
            .filter(|view| name.is_none() || view.state() == name)
            .filter(|view| !self.only_stuck || view.is_stuck())
            .filter(|view| filter.is_empty() || text(view).contains(&filter))
            .collect();
        rows.sort_by(|a, b| key(a).cmp(&key(b)));
        rows
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> KeyAction<'k> {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Nothing;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return KeyAction::End;
        }
        if self.is_typing {
            self.typed(key.code);
            return KeyAction::Nothing;
        }
        match key.code {
            KeyCode::Char('q') => return KeyAction::End,
            KeyCode::Esc => self.back(),
            KeyCode::Enter if !self.on_graph => return self.why(),
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.on_graph = false;
            }
            KeyCode::Char('p') => self.only_stuck = !self.only_stuck,
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(self.kinds.len() - 1),
            KeyCode::Left | KeyCode::Char('h') => self.on_graph = true,
            KeyCode::Right | KeyCode::Char('l') => self.on_graph = false,
            KeyCode::Down | KeyCode::Char('j') => self.step(true),
            KeyCode::Up | KeyCode::Char('k') => self.step(false),
            KeyCode::Home | KeyCode::Char('g') => self.row = 0,
            KeyCode::End | KeyCode::Char('G') => self.row = usize::MAX,
            _ => {}
        }
        self.row = self.row.min(self.rows().len().saturating_sub(1));
        KeyAction::Nothing
    }

    fn typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.row = 0;
    }

    /// Goes back by one step: from the reasons, from a state, from a filter.
    fn back(&mut self) {
        if self.opened.take().is_some() {
            return;
        }
        if self.state.take().is_none() {
            self.filter.clear();
            self.only_stuck = false;
        }
        self.on_graph = false;
    }

    /// The reasons of the chosen object are asked for.
    fn why(&self) -> KeyAction<'k> {
        let rows = self.rows();
        let view = rows.get(self.row.min(rows.len().saturating_sub(1)));
        view.map_or(KeyAction::Nothing, |view| {
            KeyAction::Why(Box::new((*view).clone()))
        })
    }

    fn turn(&mut self, by: usize) {
        self.kind = (self.kind + by) % self.kinds.len();
        (self.state, self.row, self.opened) = (None, 0, None);
    }

    fn step(&mut self, is_down: bool) {
        if !self.on_graph {
            self.row = if is_down {
                self.row.saturating_add(1)
            } else {
                self.row.saturating_sub(1)
            };
            return;
        }
        let states = self
            .shown_kind()
            .graph()
            .map_or(0, |graph| graph.states.len());
        let at = self.state.map(StateId::index);
        let next = match (at, is_down) {
            (None, true) => Some(0),
            (None, false) => states.checked_sub(1),
            (Some(at), true) => Some(at + 1).filter(|at| *at < states),
            (Some(at), false) => at.checked_sub(1),
        };
        self.state = next.filter(|at| *at < states).map(StateId::at);
        self.row = 0;
    }
}

impl Count {
    fn with(self, view: &View<'_>) -> Self {
        Self {
            all: self.all + 1,
            stuck: self.stuck + usize::from(view.is_stuck()),
            ready: self.ready + usize::from(view.is_true("Ready")),
        }
    }
}

fn key<'v>(view: &'v View<'_>) -> (bool, Option<&'v str>, &'v str) {
    (!view.is_stuck(), view.namespace(), view.name())
}

/// Returns what a filter looks at.
fn text(view: &View<'_>) -> String {
    let (_, reason, message) = view.ready();
    let state = view.state().unwrap_or_default();
    format!("{} {state} {reason} {message}", view.title()).to_lowercase()
}
