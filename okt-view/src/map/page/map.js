// The map: each graph is drawn once and stays where it is; each object is a point on its state.
//
// All texts of objects go into the page as text nodes, never as HTML.

const MOVE_MS = 700; // How long a point flies from one state to the next.
const ROWS = 200; // How many objects the list shows.
const CELL = 10; // The room of a point, in pixels.
const NAME = 26; // The room of the name of a state above its points.
const FOOT = 16; // The room of the count below them.
const MOVES = 50_000; // How many moves are remembered.
const LIST_MS = 250; // The list is built at most this often.

const $ = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** @type {{id: string, kind: string, graph: object|null, why: string, view: MapView}[]} */
let kinds = [];
/** Objects by uid. */
const points = new Map();
/** Moves in order of time: `{at, uid, from, to}`; `to` is null where the object is gone. */
let moves = [];
let isUnsorted = false;
/** The time that is shown; null is now. */
let shownAt = null;
/** The difference between the clock of the server and this one. */
let ahead = 0;

const now = () => Date.now() + ahead;

/** Creates an element with attributes and children. */
function make(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "text", "path", "defs", "marker", "title"].includes(name);
  const element = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Returns a duration as kubectl prints an age. */
function age(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

const objects = (number) => (number === 1 ? "1 object" : `${number} objects`);

/** How a point looks: `stuck`, `ready` or `busy`. */
const look = (point) => (point.stuck ? "stuck" : point.ready === "True" ? "ready" : "busy");
const title = (point) => (point.namespace ? `${point.namespace}/${point.name}` : point.name);

/** Returns the state of each object at the time that is shown. */
function placed() {
  const states = new Map();
  for (const [uid, point] of points) states.set(uid, point.state);
  if (shownAt === null) return states;
  for (let i = moves.length - 1; i >= 0 && moves[i].at > shownAt; i--) {
    if (points.has(moves[i].uid)) states.set(moves[i].uid, moves[i].from);
  }
  for (const [uid, point] of points) if (point.created > shownAt) states.delete(uid);
  return states;
}

// ---- Filters ----

const filter = { text: "", kind: "", namespace: "", state: "", condition: "" };

function passes(point, state) {
  if (filter.kind && kinds[point.kind].id !== filter.kind) return false;
  if (filter.namespace && point.namespace !== filter.namespace) return false;
  if (filter.state && state !== filter.state) return false;
  const is = {
    stuck: point.stuck, unready: point.ready !== "True", ready: point.ready === "True",
    paused: point.paused, deleting: point.deleting,
  };
  if (filter.condition && !is[filter.condition]) return false;
  if (!filter.text) return true;
  const text = `${kinds[point.kind].kind} ${title(point)} ${state} ${point.reason} ${point.message}`;
  return text.toLowerCase().includes(filter.text);
}

/** Makes the options of a select again, if they have changed. */
function options(select, values) {
  const wanted = ["", ...values];
  const present = [...select.options].map((option) => option.value);
  if (wanted.join("\n") === present.join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...wanted.map((value) => new Option(value || "all", value)));
  select.value = wanted.includes(chosen) ? chosen : "";
}

// ---- The map of one kind ----

class MapView {
  constructor(number, kind) {
    this.number = number;
    this.kind = kind;
    this.flights = [];
    this.slots = [];
    this.section = make("section", { class: "map", "aria-label": `Map of ${kind.kind}` });
    this.heading = make("h2", {}, kind.kind, " ", make("small"));
    this.box = make("div", { class: "graph" });
    this.section.append(this.heading, this.box);
    if (kind.why) this.section.append(make("p", {}, `The graph is left out: ${kind.why}`));
    this.areas = new Map();
    this.draw(kind.graph ?? { width: 0, height: 0, states: [], lines: [], labels: [] });
  }

  /** Draws the graph. States that only objects have are added below it. */
  draw(graph) {
    this.graph = graph;
    const pad = 8;
    const [width, height] = [graph.width + 2 * pad, graph.height + 2 * pad];
    // The style sheet makes it as large as fits.
    this.box.style.setProperty("--wide", width);
    this.box.style.setProperty("--high", height);
    this.svg = make("svg", { viewBox: `${-pad} ${-pad} ${width} ${height}`, role: "group", "aria-label": `States of ${this.kind.kind}` });
    const head = `head-${this.number}`;
    this.svg.append(make("defs", {}, make("marker", { id: head, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, make("path", { d: "M0 0 8 4 0 8z" }))));
    for (const line of graph.lines) {
      this.svg.append(make("path", { d: line.path, class: line.trigger ? "trigger" : "child", "marker-end": `url(#${head})` }));
    }
    for (const [x, y, text] of graph.labels) {
      this.svg.append(make("text", { class: "cause", x, y }, text));
    }
    this.areas.clear();
    for (const state of graph.states) this.addState(state);
    this.canvas = make("canvas", { "aria-hidden": "true" });
    const scale = devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [width * scale, height * scale];
    this.pen = this.canvas.getContext("2d");
    this.pen.scale(scale, scale);
    this.pen.translate(pad, pad);
    this.size = [width, height, pad];
    this.box.replaceChildren(this.svg, this.canvas);
    this.box.onclick = (event) => this.clicked(event);
  }

  addState(state) {
    const { x, y, width, height, name } = state;
    const count = make("text", { class: "count", x: x + 8, y: y + height - 6 });
    const rx = state.roles.includes("entry") ? 18 : 7;
    const group = make("g", { role: "button", tabindex: 0, "aria-pressed": "false", "data-state": name, class: state.roles.join(" ") },
      make("rect", { x, y, width, height, rx }, make("title", {}, state.doc || name)),
      make("text", { class: "name", x: x + 8, y: y + 18 }, name), count);
    group.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(this.kind.id, name);
    };
    this.svg.append(group);
    this.areas.set(name, { ...state, group, count });
  }

  /** Adds boxes for states that the graph does not have: nobody may be invisible. */
  ensure(states) {
    const strange = [...states].filter((name) => !this.areas.has(name)).sort();
    if (!strange.length) return;
    const [width, height] = [176, 76];
    let { width: right, height: bottom } = this.graph;
    const all = [...this.graph.states];
    strange.forEach((name, number) => {
      const column = number % 4;
      if (column === 0) bottom += height + 24;
      right = Math.max(right, (column + 1) * (width + 16));
      all.push({ name, x: column * (width + 16), y: bottom - height, width, height, roles: ["strange"], doc: "The graph does not have this state." });
    });
    this.draw({ ...this.graph, width: right, height: bottom, states: all });
  }

  /** Puts each point on its state; those that a person should look at come first. */
  place(groups) {
    this.ensure(groups.keys());
    this.slots = [];
    this.where = new Map();
    let all = 0;
    for (const [name, area] of this.areas) {
      const here = groups.get(name) ?? [];
      all += here.length;
      const stuck = here.filter((point) => point.stuck).length;
      const columns = Math.max(1, Math.floor((area.width - 12) / CELL));
      const rows = Math.max(1, Math.floor((area.height - NAME - FOOT) / CELL));
      const order = { stuck: 0, busy: 1, ready: 2 };
      const shown = [...here].sort((a, b) => order[look(a)] - order[look(b)]).slice(0, columns * rows);
      shown.forEach((point, slot) => {
        const at = [area.x + 8 + CELL / 2 + (slot % columns) * CELL, area.y + NAME + CELL / 2 + Math.floor(slot / columns) * CELL];
        this.slots.push({ point, at });
        this.where.set(point.uid, at);
      });
      const words = here.length ? `${objects(here.length)}${stuck ? `, ${stuck} to look at` : ""}` : "";
      if (area.count.textContent !== words) area.count.textContent = words;
      const chosen = filter.state === name && (!filter.kind || filter.kind === this.kind.id);
      area.group.classList.toggle("chosen", chosen);
      area.group.setAttribute("aria-pressed", String(chosen));
    }
    this.heading.lastElementChild.textContent = objects(all);
  }

  /** Returns the place of an object, or of its state. */
  spot(uid, state) {
    const area = this.areas.get(state);
    return this.where?.get(uid) ?? (area && [area.x + area.width / 2, area.y + area.height / 2]);
  }

  fly(uid, kind, from, to) {
    if (!from || !to || still.matches || document.hidden) return;
    this.flights.push({ uid, kind, from, to, begun: performance.now() });
  }

  /** Draws the points; returns whether one still flies. */
  paint(time) {
    const { pen, size: [width, height, pad] } = this;
    pen.clearRect(-pad, -pad, width, height);
    this.flights = this.flights.filter((flight) => time - flight.begun < MOVE_MS);
    const flying = new Set(this.flights.map((flight) => flight.uid));
    const paths = { stuck: new Path2D(), busy: new Path2D(), ready: new Path2D() };
    const dot = (kind, [x, y], radius) => {
      if (kind === "stuck") return paths.stuck.rect(x - radius, y - radius, 2 * radius, 2 * radius);
      paths[kind].moveTo(x + radius, y);
      paths[kind].arc(x, y, radius, 0, 7);
    };
    for (const { point, at } of this.slots) if (!flying.has(point.uid)) dot(look(point), at, 3.6);
    for (const { kind, from, to, begun } of this.flights) {
      const part = Math.max(0, (time - begun) / MOVE_MS);
      const eased = part * part * (3 - 2 * part);
      dot(kind, [from[0] + (to[0] - from[0]) * eased, from[1] + (to[1] - from[1]) * eased], 5);
    }
    const colour = colours();
    pen.fillStyle = colour.ready;
    pen.fill(paths.ready);
    pen.strokeStyle = colour.busy;
    pen.lineWidth = 2;
    pen.stroke(paths.busy);
    pen.fillStyle = colour.stuck;
    pen.fill(paths.stuck);
    return this.flights.length > 0;
  }

  clicked(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const [width, , pad] = this.size;
    const shrunk = width / bounds.width;
    const [x, y] = [(event.clientX - bounds.left) * shrunk - pad, (event.clientY - bounds.top) * shrunk - pad];
    const near = this.slots.find(({ at }) => Math.hypot(at[0] - x, at[1] - y) <= CELL / 2 + 1);
    if (near) return open(near.point.uid);
    for (const [name, area] of this.areas) {
      if (x >= area.x && x <= area.x + area.width && y >= area.y && y <= area.y + area.height) {
        return choose(this.kind.id, name);
      }
    }
  }
}

let known = null;
/** Returns the colours of the present theme. */
function colours() {
  if (!known) {
    const style = getComputedStyle(document.documentElement);
    known = Object.fromEntries(["ready", "busy", "stuck"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return known;
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { known = null; changed(); });

// ---- Showing ----

let isDirty = false;
let isDrawing = false;
let listed = -LIST_MS; // The first list waits for nothing.

/** Shows what has changed, with the next frame. */
function changed() {
  isDirty = true;
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(frame);
}

function frame(time) {
  if (isDirty) {
    isDirty = false;
    arrange();
  }
  const flies = kinds.map((kind) => kind.view.paint(time)).some(Boolean);
  isDrawing = flies || isDirty;
  if (isDrawing) requestAnimationFrame(frame);
}

let later = null;
/** Puts all points on their states, and lists them. */
function arrange() {
  settle();
  const states = placed();
  const groups = kinds.map(() => new Map());
  const shown = [];
  for (const point of points.values()) {
    if (!states.has(point.uid)) continue;
    const state = states.get(point.uid) ?? "(none)";
    if (!passes(point, state)) continue;
    shown.push([point, state]);
    const group = groups[point.kind];
    if (!group.has(state)) group.set(state, []);
    group.get(state).push(point);
  }
  kinds.forEach((kind, number) => {
    kind.view.section.hidden = Boolean(filter.kind) && filter.kind !== kind.id;
    kind.view.place(groups[number]);
  });
  const list = () => {
    later = null;
    listed = performance.now();
    rows(shown);
  };
  clearTimeout(later);
  const wait = LIST_MS - (performance.now() - listed);
  if (wait <= 0) list();
  else later = setTimeout(list, wait);
}

const MORE = "narrow the filters to see them";

/** The rows of the list by uid. Each stays the same element: a click is lost where its element is replaced before the mouse is up. */
let listRows = new Map();

function newRow(point) {
  const button = make("button", { type: "button", "data-uid": point.uid });
  button.onclick = () => open(point.uid);
  return make("tr", {}, make("td", {}, button), ...Array.from({ length: 5 }, () => make("td")));
}

function fillRow(row, point, state) {
  const desired = point.deleting ? "deletion" : point.visit ? `${point.visit} (visit)` : point.desired ?? "";
  const texts = [`${kinds[point.kind].kind} ${title(point)}`, state, point.since ? age(now() - point.since) : "", desired,
    `${point.stuck ? "✕ " : ""}${point.ready}`, point.reason];
  [...row.cells].forEach((cell, number) => {
    const place = cell.firstElementChild ?? cell;
    if (place.textContent !== texts[number]) place.textContent = texts[number];
  });
  row.cells[4].className = `${look(point)}-text`;
}

/** Makes elements the children of another, and leaves those in place that are. */
function inOrder(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let next = parent.firstElementChild;
  for (const child of children) {
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
}

function rows(shown) {
  const key = ([point]) => `${point.stuck ? 0 : 1}${kinds[point.kind].kind} ${title(point)}`;
  const sorted = shown.map((entry) => [key(entry), entry]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  const focused = document.activeElement;
  const top = sorted.slice(0, ROWS).map(([, entry]) => entry);
  listRows = new Map(top.map(([point]) => [point.uid, listRows.get(point.uid) ?? newRow(point)]));
  for (const [point, state] of top) fillRow(listRows.get(point.uid), point, state);
  inOrder($("rows"), [...listRows.values()]);
  // An element that has changed its place is focused no longer.
  if (focused !== document.activeElement && $("rows").contains(focused)) focused.focus();
  $("more").textContent = shown.length > ROWS ? `and ${shown.length - ROWS} more; ${MORE}` : shown.length ? "" : "no objects";
  const stuck = shown.filter(([point]) => point.stuck).length;
  const words = `${shown.length} of ${objects(points.size)}; ${stuck} to look at`;
  if ($("summary").textContent !== words) $("summary").textContent = words;
  options($("kind"), kinds.map((kind) => kind.id));
  options($("namespace"), [...new Set([...points.values()].map((point) => point.namespace).filter(Boolean))].sort());
  const names = kinds.filter((kind) => !filter.kind || kind.id === filter.kind).flatMap((kind) => [...kind.view.areas.keys()]);
  options($("state"), [...new Set(names)]);
  slider();
}

/** Chooses a state of a kind, or no longer. */
function choose(kind, state) {
  const again = filter.state === state && filter.kind === kind;
  filter.kind = again ? "" : kind;
  filter.state = again ? "" : state;
  $("kind").value = filter.kind;
  $("state").value = filter.state;
  changed();
}

for (const id of ["kind", "namespace", "state", "condition"]) {
  $(id).onchange = () => { filter[id] = $(id).value; changed(); };
}
$("text").oninput = () => { filter.text = $("text").value.trim().toLowerCase(); changed(); };
$("size").onchange = () => { $("maps").className = $("size").value; };
$("filters").onsubmit = (event) => event.preventDefault();
$("filters").onreset = () => {
  for (const id of Object.keys(filter)) filter[id] = "";
  changed();
};

// ---- Time ----

const STEPS = 1000;
let range = [now(), now()];

/** Shows from when to when the slider goes. */
function slider() {
  if (shownAt !== null) return;
  const earliest = moves[0]?.at ?? now();
  range = [Math.min(earliest - 1000, now() - 60_000), now()];
  $("at").setAttribute("aria-valuetext", "now");
}

$("at").oninput = () => {
  const step = Number($("at").value);
  if (shownAt === null) range[1] = now();
  shownAt = step >= STEPS ? null : range[0] + ((range[1] - range[0]) * step) / STEPS;
  $("live").hidden = shownAt === null;
  const words = shownAt === null ? "now" : `${age(range[1] - shownAt)} ago, ${new Date(shownAt).toLocaleTimeString()}`;
  $("when").textContent = words;
  $("at").setAttribute("aria-valuetext", words);
  changed();
};
$("live").onclick = () => {
  $("at").value = STEPS;
  $("at").oninput();
};

// ---- One object ----

async function open(uid) {
  const point = points.get(uid);
  if (!point) return;
  $("details-title").textContent = `${kinds[point.kind].kind} ${title(point)}`;
  $("details-body").replaceChildren(make("p", {}, "reading …"));
  $("details").dataset.uid = uid;
  if (!$("details").open) $("details").showModal();
  let body;
  try {
    const answer = await fetch(`objects/${encodeURIComponent(uid)}`);
    body = answer.ok ? about(await answer.json()) : [make("p", {}, await answer.text())];
  } catch (error) {
    body = [make("p", {}, `The map cannot be reached: ${error.message}`)];
  }
  // Another object may have been opened meanwhile.
  if ($("details").dataset.uid === uid) $("details-body").replaceChildren(...body);
}

function about({ details, conditions, why }) {
  const facts = make("dl");
  const fact = (name, text) => {
    if (text !== null && text !== undefined && text !== "") facts.append(make("dt", {}, name), make("dd", {}, String(text)));
  };
  const lifecycle = details.lifecycle ?? {};
  const action = lifecycle.action;
  const time = (text) => (text ? `${age(now() - Date.parse(text))} ago, ${text}` : "");
  fact("State", details.state ?? "none yet");
  fact("Since", time(lifecycle.since));
  fact("Desired", details.desired);
  fact("Visit", details.visit);
  fact("Route", details.route.length ? [details.state, ...details.route].join(" → ") : "");
  fact("Deadline", details.deadline ? `${details.deadline.to} at ${details.deadline.at}` : "");
  fact("Work", action ? `${action.phase}, attempt ${action.attempt}${action.message ? `: ${action.message}` : ""}` : "");
  fact("Failure", action?.failure ? `${action.failure.reason}: ${action.failure.message}` : "");
  fact("Trail", lifecycle.trail);
  fact("Transitions", lifecycle.transition);
  fact("Paused", details.paused ? "yes" : "");
  fact("Deletion", details.deleting ? "requested" : "");
  const causes = why.causes.map((cause) => make("li", {}, cause.what,
    make("ul", {}, ...cause.remedies.map((remedy) => make("li", {}, remedy)))));
  const parts = [facts, make("h2", {}, "Why it is here"), make("ul", {}, ...causes)];
  const list = (name, texts) => {
    if (texts.length) parts.push(make("h2", {}, name), make("ul", {}, ...texts.map((text) => make("li", {}, text))));
  };
  list("Conditions", conditions.map((it) => `${it.type}: ${it.status}, ${it.reason}${it.message ? `: ${it.message}` : ""}`));
  const history = [...(lifecycle.history ?? [])].reverse();
  list("Last transitions", history.map((it) => `${it.at}: ${it.from ?? "·"} → ${it.to} (${it.cause}${it.changed ? ` of ${it.changed}` : ""})`));
  list("Warnings", why.events);
  list("Not looked at", why.unread);
  return parts;
}

// ---- The server ----

const troubles = new Map();
function trouble(what, text) {
  if (text) troubles.set(what, text);
  else troubles.delete(what);
  const words = [...troubles.values()].join(" · ");
  if ($("trouble").textContent !== words) $("trouble").textContent = words;
}

function snapshot(message) {
  ahead = message.now - Date.now();
  kinds = message.kinds;
  kinds.forEach((kind, number) => { kind.view = new MapView(number, kind); });
  $("maps").replaceChildren(...kinds.map((kind) => kind.view.section));
  points.clear();
  for (const point of message.points) points.set(point.uid, point);
  moves = message.moves;
  troubles.clear();
  for (const [kind, text] of Object.entries(message.troubles)) trouble(kind, text);
  trouble("kinds", kinds.length ? "" : "the cluster has no kind of an OKT operator");
  changed();
}

/** Puts moves in order, because the clocks of operators differ, and forgets the oldest ones as the server does. */
function settle() {
  if (!isUnsorted) return;
  isUnsorted = false;
  moves.sort((a, b) => a.at - b.at);
  if (moves.length > MOVES) moves.splice(0, moves.length - MOVES);
}

function set(point) {
  const before = points.get(point.uid);
  points.set(point.uid, point);
  if (before?.state === point.state || shownAt !== null) return;
  const view = kinds[point.kind].view;
  if (before && passes(point, point.state)) {
    view.fly(point.uid, look(point), view.spot(point.uid, before.state), view.spot(null, point.state));
  }
}

function connect() {
  const events = new EventSource("events");
  events.addEventListener("snapshot", (event) => { snapshot(JSON.parse(event.data)); });
  events.addEventListener("change", (event) => {
    const { set: point, gone, moved, trouble: told } = JSON.parse(event.data);
    if (moved?.length) {
      moves.push(...moved);
      isUnsorted = true;
      // A page that nobody sees draws nothing.
      if (moves.length > 2 * MOVES) settle();
    }
    if (point) set(point);
    if (gone) points.delete(gone);
    if (told) trouble(told.kind, told.text);
    changed();
  });
  events.onerror = () => {
    trouble("connection", "the connection is lost; trying again");
    // A browser gives up after an answer that is an error.
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  };
}

connect();
// Ages grow without an event.
setInterval(changed, 10_000);
