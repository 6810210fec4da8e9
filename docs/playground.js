// The playground: the checker and the decisions of OKT, compiled to WebAssembly, and a page around them.
//
// `.ci/book` writes playground.wasm.js, which sets PLAYGROUND_WASM to the module as base64: the page works from a file too.
"use strict";

(() => {
  const START = `/// The life of a database server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseState {
    /// The data directory is made.
    #[entry]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Running)]
    Starting,

    /// Clients may connect.
    #[rest]
    #[condition(Available)]
    #[trigger(Starting)]
    #[child(BackingUp)]
    #[child(Stopping)]
    Running,

    /// A backup is made.
    #[visit]
    #[trigger(Failed, after = "30m")]
    #[child(Running)]
    BackingUp,

    /// Clients are asked to leave.
    #[child(Gone)]
    Stopping,

    /// A person has to look.
    #[rest(hold, idle)]
    #[child(Starting)]
    #[child(Stopping)]
    Failed,

    /// The server is gone.
    #[leaf(idle)]
    Gone,
}
`;
  const root = document.getElementById("okt-playground");
  const bytes = (text) => new TextEncoder().encode(text);

  /** Creates an element. */
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element[key] = value;
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  let wasm = null;
  async function load() {
    const binary = Uint8Array.from(atob(PLAYGROUND_WASM), (letter) => letter.charCodeAt(0));
    const module = await WebAssembly.compile(binary);
    return async () => (await WebAssembly.instantiate(module, {})).exports;
  }

  /** Calls a function of the module with a text; returns its answer. */
  function call(name, text) {
    for (const byte of bytes(text)) wasm.put(byte);
    const answer = new Uint8Array(wasm[name]());
    for (let at = 0; at < answer.length; at += 1) answer[at] = wasm.take(at);
    return JSON.parse(new TextDecoder().decode(answer));
  }

  const source = make("textarea", { spellcheck: "false", "aria-label": "The graph", autocomplete: "off" });
  const picture = make("div", { class: "picture", role: "img" });
  const verdict = make("div", { class: "whole", "aria-live": "polite" });
  const status = make("p", { class: "whole", role: "status" });
  const controls = make("div", { class: "whole" });
  const log = make("ol", { class: "log whole", "aria-label": "What happened" });

  let fresh = null;
  let graph = null;
  let steps = [];

  /** Checks the text, and plays the same steps again. */
  async function check() {
    const text = source.value;
    try {
      show(call("run_check", text));
    } catch (error) {
      // A text that is nested too deeply for the stack of a browser: the module is begun anew.
      wasm = await fresh();
      graph = null;
      verdict.replaceChildren(make("p", {}, `This text is too much for the page: ${error.message}`));
      play();
    }
  }

  function show({ mistakes, graphs }) {
    const chosen = graphs.find((it) => it.is_lifecycle) ?? graphs[0];
    graph = chosen?.is_lifecycle ? chosen.name : null;
    if (chosen) {
      picture.innerHTML = chosen.svg;
      picture.setAttribute("aria-label", `The graph ${chosen.name}`);
    }
    if (mistakes.length > 0) {
      const items = mistakes.map(({ text, line, start, end }) => make("li", {}, make("button", {
        type: "button",
        onclick: () => { source.focus(); source.setSelectionRange(start, end); },
      }, `line ${line}: ${text}`)));
      verdict.replaceChildren(make("ol", { class: "mistakes" }, ...items));
    } else {
      const words = graphs.length > 0 ? `${chosen.name} has no mistakes` : "there is no #[lifecycle_graph] in this text";
      verdict.replaceChildren(make("p", { class: graphs.length > 0 ? "fine" : "" }, words));
    }
    play();
  }

  /** What a person did, in words. */
  const words = ({ do: what, state, seconds }) => ({
    desire: `you ask for ${state ?? "the default"}`, visit: `you ask for a visit of ${state}`, request: "you ask once more",
    edit: "you change the spec", delete: "you delete the object", next: "the handler answers Next", stay: "the handler answers Stay",
    to: `the handler answers ${state}`, wait: "the handler answers Wait", fail: "the handler fails",
    failPermanently: "the handler fails permanently", crash: "a crash", observe: `the application is found in ${state}`,
    absent: "the application is gone", unreachable: "the application does not answer", pass: `${seconds / 60} minutes pass`,
  })[what];

  function step(what) {
    steps.push(what);
    play();
  }

  const button = (text, what, title = "") => make("button", { type: "button", title, onclick: () => step(what) }, text);

  /** A select that does something with the state that is chosen. */
  function chooser(label, states, what) {
    const select = make("select", { "aria-label": label }, make("option", { value: "" }, label), ...states.map((it) => make("option", {}, it)));
    select.onchange = () => { if (select.value) step({ do: what, state: select.value }); };
    return select;
  }

  function play() {
    for (const it of picture.querySelectorAll(".here")) it.classList.remove("here");
    if (!graph) {
      status.textContent = "";
      controls.replaceChildren();
      log.replaceChildren();
      return;
    }
    const played = call("run_play", JSON.stringify({ source: source.value, graph, steps }));
    if (played.error) {
      status.textContent = played.error;
      return;
    }
    const here = [...picture.querySelectorAll("g")].find((it) => it.querySelector("text")?.textContent === played.state);
    here?.classList.add("here");
    status.textContent = played.isGone ? "The object is gone." : `The object is in ${played.state}: ${played.doing}.`;
    const line = (name, ...children) => make("fieldset", {}, make("legend", {}, name), ...children);
    const lines = [];
    if (played.isWorking) {
      const answers = [...new Set(played.answers)].map((it) => button(it, { do: "to", state: it }));
      if (played.mayStay) answers.unshift(button("Stay", { do: "stay" }, "done, and the object stays"));
      if (played.hasNext) answers.unshift(button("Next", { do: "next" }, "done: on towards the desired state"));
      lines.push(line("The handler answers", ...answers, button("Wait", { do: "wait" }), button("error", { do: "fail" }), button("permanent error", { do: "failPermanently" })));
    }
    if (!played.isGone) {
      lines.push(
        line("You", chooser("ask for …", played.desired, "desire"), ...(played.visits.length > 0 ? [chooser("visit …", played.visits, "visit")] : []),
          button("ask again", { do: "request" }), button("change the spec", { do: "edit" }), button("delete", { do: "delete" })),
        line("The world", button("the operator crashes", { do: "crash" }), button("10 minutes", { do: "pass", seconds: 600 }),
          button("a day", { do: "pass", seconds: 86400 }), chooser("the application is in …", played.states, "observe"),
          button("it is gone", { do: "absent" }), button("it does not answer", { do: "unreachable" })),
      );
    }
    lines.push(make("p", {}, make("button", { type: "button", onclick: () => { steps.pop(); play(); } }, "one step back"), " ",
      make("button", { type: "button", onclick: () => { steps = []; play(); } }, "a new object")));
    const focused = document.activeElement?.textContent;
    controls.replaceChildren(...lines);
    // Whoever uses the keyboard stays where they were.
    if (focused && document.activeElement === document.body) {
      [...controls.querySelectorAll("button")].find((it) => it.textContent === focused)?.focus();
    }
    log.replaceChildren(...played.log.flatMap((texts, number) => [
      make("li", { class: "did" }, number === 0 ? "you create an object" : words(steps[number - 1])),
      ...texts.map((text) => make("li", {}, text)),
    ]));
    log.scrollTop = log.scrollHeight;
  }

  source.onkeydown = (event) => {
    // Tab leaves the text, as everywhere; mdBook's own keys do not turn the page while one writes.
    event.stopPropagation();
  };
  let later = null;
  source.oninput = () => { clearTimeout(later); later = setTimeout(check, 150); };

  source.value = START;
  root.append(source, picture, verdict, status, controls, log);
  load().then(async (instantiate) => {
    fresh = instantiate;
    wasm = await fresh();
    await check();
  }).catch((error) => { verdict.textContent = `The playground cannot start: ${error.message}`; });
})();
