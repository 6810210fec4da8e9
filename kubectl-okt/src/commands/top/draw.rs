//! Draws the screen.

use jiff::Timestamp;
use okt_core::draw::{EdgeKind, roles};
use okt_core::{Graph, StateId};
use okt_view::{View, Why, age};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

use super::screen::{Count, Screen};

const GOOD: Style = Style::new().fg(Color::Green);
const BUSY: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// How many signs a state has for its objects.
const SIGNS: usize = 12;

/// The width below which a list has no room for all columns.
const NARROW: u16 = 64;

/// Draws everything; `now` is for the times in a state.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen<'_>, now: Timestamp) {
    let [title, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(kinds(screen), title);
    let [graph, list] =
        Layout::horizontal([Constraint::Percentage(42), Constraint::Percentage(58)]).areas(body);
    draw_graph(frame, screen, graph);
    match &screen.opened {
        Some((view, why)) => frame.render_widget(reasons(view, why, now), list),
        None => draw_list(frame, screen, list, now),
    }
    frame.render_widget(keys(screen), foot);
}

/// The kinds, with the number of their objects.
fn kinds(screen: &Screen<'_>) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, kind) in screen.kinds.iter().enumerate() {
        let Count { all, stuck, .. } = screen.of_kind(kind);
        let style = if number == screen.kind { CHOSEN } else { FAINT };
        let name = &kind.resource.kind;
        spans.push(Span::styled(format!(" {name} {all} "), style));
        if stuck > 0 {
            spans.push(Span::styled(format!("✕{stuck} "), BAD));
        }
    }
    Line::from(spans)
}

fn draw_graph(frame: &mut Frame<'_>, screen: &Screen<'_>, area: Rect) {
    let kind = screen.shown_kind();
    let counts = screen.counts();
    let mut lines = Vec::new();
    if let Some(graph) = kind.graph() {
        for (id, _) in graph.iter() {
            let count = counts.get(graph.name_of(id)).copied().unwrap_or_default();
            lines.extend(state(graph, id, count, screen.state == Some(id)));
        }
        let has = |name: &str| graph.states.iter().any(|state| state.name == name);
        for (name, count) in counts.iter().filter(|(name, _)| !has(name)) {
            lines.push(objects(Span::styled((*name).to_owned(), BAD), *count));
        }
    } else {
        if let Err(why) = &kind.graph {
            lines.push(Line::styled(format!("The graph is left out: {why}"), FAINT));
        }
        for (name, count) in &counts {
            lines.push(objects(Span::styled((*name).to_owned(), BOLD), *count));
        }
    }
    let block = Block::bordered().title(" Graph ");
    let style = if screen.on_graph { BOLD } else { FAINT };
    let paragraph = Paragraph::new(lines).block(block.border_style(style));
    // The chosen state is in sight; each state has two lines.
    let at = screen.state.map_or(0, StateId::index).saturating_mul(2);
    let room = usize::from(area.height).saturating_sub(4);
    let scroll = u16::try_from(at.saturating_sub(room)).unwrap_or(u16::MAX);
    frame.render_widget(paragraph.scroll((scroll, 0)), area);
}

/// A state: its name and its objects, and below it where it leads.
fn state(graph: &Graph<'_>, id: StateId, count: Count, is_chosen: bool) -> [Line<'static>; 2] {
    let name = graph.name_of(id).to_owned();
    let name = Span::styled(name, if is_chosen { CHOSEN } else { BOLD });
    let edges = graph.edges(id).into_iter().map(|edge| {
        let arrow = match edge.kind {
            EdgeKind::Trigger => "⇢",
            EdgeKind::Next | EdgeKind::Child => "→",
        };
        format!("{arrow} {}", edge.text(graph))
    });
    let mut words: Vec<String> = edges.collect();
    let roles = graph.get(id).map(|state| roles(state).join(", "));
    words.extend(
        roles
            .filter(|roles| !roles.is_empty())
            .map(|roles| format!("[{roles}]")),
    );
    [
        objects(name, count),
        Line::styled(format!("  {}", words.join("  ")), FAINT),
    ]
}

/// The objects of a state: a sign for each, those to look at first.
fn objects(name: Span<'static>, count: Count) -> Line<'static> {
    let Count { all, stuck, ready } = count;
    let mut spans = vec![name];
    if all == 0 {
        return Line::from(spans);
    }
    spans.push(Span::raw(format!("  {all}  ")));
    let stuck_shown = stuck.min(SIGNS);
    let busy_shown = all.saturating_sub(stuck + ready).min(SIGNS - stuck_shown);
    let ready_shown = ready.min(SIGNS - stuck_shown - busy_shown);
    spans.push(Span::styled("✕".repeat(stuck_shown), BAD));
    spans.push(Span::styled("○".repeat(busy_shown), BUSY));
    spans.push(Span::styled("●".repeat(ready_shown), GOOD));
    if all > SIGNS {
        spans.push(Span::styled("…", FAINT));
    }
    Line::from(spans)
}

fn draw_list(frame: &mut Frame<'_>, screen: &mut Screen<'_>, area: Rect, now: Timestamp) {
    let rows = screen.rows();
    let number = rows.len();
    let shows_namespaces = rows
        .iter()
        .any(|view| view.namespace() != rows[0].namespace());
    let table_rows: Vec<Row<'static>> = rows
        .iter()
        .map(|view| row(view, shows_namespaces, now))
        .collect();
    screen.row = screen.row.min(number.saturating_sub(1));
    let titles = ["NAME", "STATE", "FOR", "DESIRED", "READY", "REASON"];
    // Where there is little room, the state counts for more than what it is to be, which Enter shows too.
    let rest = if area.width < NARROW {
        Constraint::Length(0)
    } else {
        Constraint::Fill(2)
    };
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(6),
        rest,
        Constraint::Length(8),
        rest,
    ];
    let graph = screen.shown_kind().graph();
    let state = graph.zip(screen.state).map(|(graph, at)| graph.name_of(at));
    let title = match (&*screen.filter, screen.only_stuck) {
        ("", false) => match state {
            Some(state) => format!(" {number} in {state} "),
            None => format!(" {number} objects "),
        },
        ("", true) => format!(" {number} to look at "),
        (filter, _) => format!(" {number} with “{filter}” "),
    };
    let style = if screen.on_graph { FAINT } else { BOLD };
    let table = Table::new(table_rows, widths)
        .header(Row::new(titles).style(FAINT))
        .row_highlight_style(CHOSEN)
        .block(Block::bordered().title(title).border_style(style));
    let mut chosen = TableState::default().with_selected((number > 0).then_some(screen.row));
    frame.render_stateful_widget(table, area, &mut chosen);
}

fn row(view: &View<'_>, shows_namespaces: bool, now: Timestamp) -> Row<'static> {
    let (ready, reason, _) = view.ready();
    let style = match ready {
        "True" => GOOD,
        _ if view.is_stuck() => BAD,
        _ => BUSY,
    };
    let name = match view.namespace().filter(|_| shows_namespaces) {
        Some(namespace) => format!("{namespace}/{}", view.name()),
        None => view.name().to_owned(),
    };
    let sign = if view.is_stuck() { "✕ " } else { "" };
    let desired = if view.is_deleting() {
        "deletion"
    } else {
        view.pending_visit()
            .or_else(|| view.desired())
            .unwrap_or("")
    };
    Row::new([
        Cell::new(format!("{sign}{name}")),
        Cell::new(view.state().unwrap_or("(none)").to_owned()),
        Cell::new(view.time_in_state(now).map(age).unwrap_or_default()),
        Cell::new(desired.to_owned()),
        Cell::new(Span::styled(ready.to_owned(), style)),
        Cell::new(reason.to_owned()),
    ])
}

/// Why an object is where it is.
fn reasons(view: &View<'_>, why: &Why, now: Timestamp) -> Paragraph<'static> {
    let mut lines = vec![Line::from(format!("It {}.", why.place(view, now)))];
    if let Some(way) = view.way() {
        lines.push(Line::from(format!("The route: {way}")));
    }
    for cause in &why.causes {
        lines.push(Line::default());
        lines.push(Line::styled(cause.what.clone(), BOLD));
        let remedies = cause.remedies.iter();
        lines.extend(remedies.map(|remedy| Line::from(format!("  → {remedy}"))));
    }
    if let Some(position) = view
        .position()
        .filter(|position| !position.trail.is_empty())
    {
        lines.push(Line::default());
        lines.push(Line::styled(format!("Trail: {}", position.trail), FAINT));
    }
    let others = why.events.iter().map(String::clone);
    let unread = why.unread.iter().map(|it| format!("Not looked at: {it}"));
    for text in others.chain(unread) {
        lines.push(Line::styled(text, FAINT));
    }
    let block = Block::bordered().title(format!(" {} ", view.title()));
    Paragraph::new(lines)
        .block(block.border_style(BOLD))
        .wrap(Wrap { trim: false })
}

fn keys(screen: &Screen<'_>) -> Line<'static> {
    if screen.is_typing {
        return Line::from(format!(" /{}█   Enter keep   Esc clear", screen.filter));
    }
    if let Some(notice) = screen.notice() {
        return Line::styled(format!(" {notice}"), BUSY);
    }
    let keys = if screen.opened.is_some() {
        " q end   Esc back"
    } else if screen.on_graph {
        " q end   ↑↓ state   → objects   Tab kind   Esc back"
    } else {
        " q end   ↑↓ object   Enter why   ← graph   Tab kind   / filter   p to look at   Esc back"
    };
    Line::styled(keys, FAINT)
}
