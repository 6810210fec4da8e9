//! A program with 200 graphs whose names are awkward (keywords, single letters, 63 letters, other scripts), and a long
//! one whose states have every word that may be taken.
//!
//! The program denies every warning.

use std::fmt::Write;

use crate::rng::Rng;

const GRAPHS: usize = 200;

/// Returns the program, the same each time.
pub(crate) fn program() -> String {
    let mut dice = Rng(200);
    let mut program = HEAD.to_string();
    for number in 0..GRAPHS {
        program += &graph(&mut dice, number);
    }
    program += &every_word();
    program += "fn main() {\n    words::check();\n";
    for number in 0..GRAPHS {
        writeln!(program, "    g{number}::check();").expect("a String takes all");
    }
    program + "}\n"
}

/// The names of the user may be unusual, so the lint about them is off on each enum, and nowhere else.
///
/// trybuild allows dead code, unless a program denies it by name.
const HEAD: &str = "//! 200 graphs whose names are awkward.
#![deny(warnings, missing_docs, dead_code)]

/// Checks that the names of a graph are the declared ones.
fn names(graph: &okt_core::Graph<'_>, expected: &[&str]) {
    let names: Vec<&str> = graph.states.iter().map(|state| state.name).collect();
    assert_eq!(names, expected);
}

/// The context of every handler.
pub struct Given;

impl okt_core::Visited<u8, u16> for Given {
    fn args(&self) -> &u8 {
        &7
    }

    fn finish(&self, _: &u16) {}
}

/// Checks that a handler has all methods.
fn handled<H, S: okt_core::Dispatch<H>>(_: H) {}

";

/// A name as it is written.
#[derive(Clone)]
struct Name {
    /// The variant or the enum (e.g. `r#type`).
    ident: String,
    /// The handler method or the module, without `r#`.
    snake: String,
    /// The wire name, where the name itself cannot be one.
    rename: Option<&'static str>,
}

impl Name {
    fn new(ident: &str, snake: &str) -> Self {
        Self {
            ident: ident.to_string(),
            snake: snake.to_string(),
            rename: None,
        }
    }

    /// Returns the name without `r#`.
    fn plain(&self) -> &str {
        self.ident.trim_start_matches("r#")
    }

    fn wire(&self) -> &str {
        self.rename.unwrap_or(self.plain())
    }
}

/// The names of one kind.
type Family = fn(&mut Rng) -> Name;

const FAMILIES: [Family; 8] = [
    keyword, capital, letter, long, foreign, digits, taken, other,
];

/// The keywords of all editions that a raw identifier can be, and words that are keywords in some places.
const KEYWORDS: &str = "abstract as async auto await become box break const continue default do dyn else enum extern false final fn \
    for gen if impl in let loop macro macro_rules match mod move mut override priv pub raw ref return safe \
    static struct trait true try type typeof union unsafe unsized use virtual where while yield";

/// The words of the attributes, and the names of what the macro generates.
const WORDS: &str = "after attempts child condition conditions context cx deadline entry handler hold idle leaf message no_route \
    on_delete on_error over reason rest state status trigger was";

/// A keyword or a word of the attributes, as a raw identifier.
fn keyword(dice: &mut Rng) -> Name {
    let words = if dice.one_in(3) { WORDS } else { KEYWORDS };
    let word = dice.word(words);
    Name::new(&format!("r#{word}"), word)
}

/// A keyword with a capital letter, whose method is the keyword; sometimes raw although it need not be.
fn capital(dice: &mut Rng) -> Name {
    let word = dice.word(KEYWORDS);
    let raw = if dice.one_in(4) { "r#" } else { "" };
    Name::new(&format!("{raw}{}", camel(word)), word)
}

/// Spells a name in snake case with capital letters.
fn camel(name: &str) -> String {
    name.split('_')
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect()
}

fn letter(dice: &mut Rng) -> Name {
    let letter = char::from(b'a' + u8::try_from(dice.below(26)).expect("a letter"));
    let written = if dice.one_in(2) {
        letter.to_ascii_uppercase()
    } else {
        letter
    };
    Name::new(&written.to_string(), &letter.to_string())
}

/// 63 letters, of which the last differ.
fn long(dice: &mut Rng) -> Name {
    let tail = dice.word("Again Twice Never Later Today Early First");
    let mut ident = "WaitingForEverythingThatMightEverHappen".repeat(2);
    ident.truncate(58);
    Name::new(&format!("{ident}{tail}"), &snake(&format!("{ident}{tail}")))
}

/// Letters that a wire name cannot have.
fn foreign(dice: &mut Rng) -> Name {
    let (ident, snake, rename) = dice.pick(&[
        ("Läuft", "läuft", "Runs"),
        ("Größe", "größe", "Size"),
        ("ÜberLänge", "über_länge", "Length"),
        ("Été", "été", "Summer"),
        ("Žluťoučký", "žluťoučký", "Yellow"),
        ("Łódź", "łódź", "Boat"),
        ("Ærø", "ærø", "Aero"),
        ("ñ", "ñ", "n"),
        ("Жить", "жить", "Live"),
        ("Ωμέγα", "ωμέγα", "Omega"),
        ("状態", "状態", "State"),
        ("上", "上", "Up"),
        ("실행", "실행", "Run"),
        ("चालू", "चालू", "On"),
        ("פועל", "פועל", "Works"),
        ("يعمل", "يعمل", "Serves"),
        // Two letters and two marks, which the compiler composes.
        ("E\u{301}te\u{301}Bleu", "été_bleu", "Blue"),
    ]);
    Name {
        rename: Some(rename),
        ..Name::new(ident, snake)
    }
}

/// Names that differ only in digits, in underscores or in the case of a letter.
fn digits(dice: &mut Rng) -> Name {
    let (ident, snake) = dice.pick(&[
        ("V1", "v1"),
        ("V2", "v2"),
        ("V11", "v11"),
        ("V01", "v01"),
        ("V_1", "v_1"),
        ("V1_1", "v1_1"),
        ("Ab", "ab"),
        ("aB", "a_b"),
        ("HttpOk", "http_ok"),
        ("Httpok", "httpok"),
        ("HttPOk", "htt_p_ok"),
        ("Up_", "up"),
        ("uP", "u_p"),
        ("S3cr3t", "s3cr3t"),
        ("S3Cr3t", "s3_cr3t"),
    ]);
    Name::new(ident, snake)
}

/// Names that the prelude or the generated code has too.
const TAKEN: &str = "Ok Err Some None Option Result Error Context Answer Step State Handler Lifecycle Dispatch Successor Graph \
    Clone Copy Debug Default Drop Eq Future From Into Iterator PartialEq Send Sized Sync String Vec Box Core Std \
    Conditions AfterStart Work Cx OktCore OktMacros Serde U16 Str Bool Main";

/// More names of the prelude, of associated types and of generated items.
const OTHERS: &str = "Output Item Target Owned Key Value IntoFuture Spec Extra Resource ToOwned ToString FnMut FnOnce AsRef \
    AsMut Extend IntoIterator Ord PartialOrd TryFrom TryInto FromIterator Display Hash PassDispatch Delegate \
    Delegated Id FromId Name FromName Kind StateId Trigger Cause Mark Marks Declared NoRoute Stretch0 \
    AfterFirst NamesHandler Names Action Failure Okt Pending Map Expect Unwrap";

/// A graph in which each word leads to the next: keywords of every edition, and names that the prelude or the generated
/// code has.
fn every_word() -> String {
    let mut names = vec!["First".to_string()];
    for word in [KEYWORDS, TAKEN, OTHERS].join(" ").split(' ') {
        let name = camel(word);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.push("Last".to_string());
    let mut text = "/// Every word.
pub mod words {
    /// A long lifecycle.
    #[okt_macros::lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Names {
        #[entry]
"
    .to_string();
    for pair in names.windows(2) {
        let [name, next] = pair else { continue };
        text += &format!("        /// A state.\n        #[child({next})]\n        {name},\n\n");
    }
    text + &format!(
        "        /// A state.
        #[leaf]
        Last,
    }}

    /// Checks it.
    pub fn check() {{
        crate::names(<Names as okt_core::Lifecycle>::GRAPH, &{names:?});
    }}
}}

"
    )
}

fn taken(dice: &mut Rng) -> Name {
    let ident = dice.word(TAKEN);
    Name::new(ident, &snake(ident))
}

fn other(dice: &mut Rng) -> Name {
    let family = dice.pick(&FAMILIES[..7]);
    family(dice)
}

/// Spells the name of a module or of a method as it must be written.
fn raw(word: &str) -> String {
    let is_keyword = KEYWORDS.split(' ').any(|keyword| keyword == word);
    let raw = if is_keyword { "r#" } else { "" };
    format!("{raw}{word}")
}

/// Spells a name with capital letters in snake case.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Returns names of one kind whose methods differ; takes names of other kinds where there are not enough.
fn states(dice: &mut Rng, family: Family, count: usize) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    let mut rolls = 0;
    while names.len() < count {
        rolls += 1;
        let name = if rolls < 60 {
            family(dice)
        } else {
            other(dice)
        };
        let differs = |other: &Name| other.snake != name.snake && other.wire() != name.wire();
        if names.iter().all(differs) {
            names.push(name);
        }
    }
    names
}

/// The forms of graphs, by line: `{0}` is a state, `{C}` a condition type; `@` is an attribute of the enum.
const FORMS: [&str; 6] = [
    // The smallest one.
    "#[entry]
    #[child({1})]
    {0}
    #[leaf]
    {1}",
    // Without work.
    "#[entry]
    #[rest(idle)]
    #[child({1})]
    #[child({2})]
    {0}
    #[rest(idle)]
    #[child({0})]
    #[child({2})]
    {1}
    #[leaf(idle)]
    {2}",
    // A holding state, to which only triggers lead.
    r#"#[entry]
    #[trigger({2}, after = "10m", on_error(attempts = 3))]
    #[child({1})]
    {0}
    #[rest]
    #[condition({C})]
    #[trigger({2}, on_error)]
    #[child({3})]
    {1}
    #[rest(hold)]
    #[condition({C}, status = "False", message = "\"{}\" \\ 无")]
    #[no_route({1}, reason = "it \"broke\" {} \u{7121}")]
    #[child({3})]
    {2}
    #[child({4})]
    {3}
    #[leaf]
    {4}"#,
    // Every attribute.
    r#"@#[deadline({5}, after = "4h", over({0}, {2}))]
    #[entry]
    #[condition("a-b.c.dev/X_y.z-1", status = "Unknown", message = "still reading")]
    #[trigger({5}, after = "1h30m", on_error(attempts = 5))]
    #[trigger({6}, on_delete)]
    #[child({1})]
    {0}
    #[rest]
    #[was("Former1")]
    #[was("Former_2")]
    #[condition("a-b.c.dev/X_y.z-1", reason = "R")]
    #[condition({C})]
    #[trigger({5}, on_error(attempts = 3))]
    #[trigger({3}, on_change)]
    #[no_route({6}, reason = "only deletion drains")]
    #[child({2})]
    #[child({4})]
    #[child({3})]
    {1}
    #[visit(args = u8, result = u16)]
    #[trigger({4})]
    #[trigger({1}, on_abort)]
    #[child({1})]
    {2}
    #[no_transit]
    #[child({0})]
    #[child({6})]
    {3}
    #[rest(idle)]
    #[no_route({6}, reason = "only deletion drains")]
    #[child({1})]
    {4}
    #[rest(hold, idle)]
    #[condition({C}, status = "False")]
    #[no_route({1}, {2}, {4}, reason = "it is broken")]
    #[no_route({6}, reason = "only deletion drains")]
    #[child({3})]
    {5}
    #[leaf]
    {6}"#,
    // Variants and edges that are there in some builds.
    r#"#[entry]
    #[child({1})]
    {0}
    #[rest]
    #[cfg_attr(any(), child({3}))]
    #[cfg_attr(all(), trigger({2}, after = "1h"))]
    #[child({4})]
    {1}
    #[cfg_attr(all(), child({4}))]
    {2}
    #[cfg(any())]
    #[child(Nowhere)]
    {3}
    #[cfg(not(all()))]
    #[child({3})]
    {2}
    #[cfg(all())]
    #[leaf(idle)]
    {4}"#,
    // A pass.
    PASS,
];

const PASS: &str = "#[entry]
    #[trigger({4})]
    #[trigger({3}, on_delete)]
    #[child({1})]
    {0}
    #[condition({C})]
    #[trigger({4}, on_error)]
    #[child({2})]
    {1}
    #[trigger({4})]
    #[child({5})]
    {2}
    #[child({5})]
    {3}
    #[trigger({5}, on_give_up)]
    #[child({5})]
    {4}
    #[leaf(idle)]
    {5}";

const CONDITIONS: [&str; 7] = [
    "Loop",
    "A",
    "r#type",
    "r#Fn",
    "\"okt.dev/Self\"",
    "\"1-a_b.C\"",
    "WaitingForEverythingThatMightEverHappenAndForWhatNobodyExpectsX",
];

const DOCS: [&str; 6] = [
    "A state.",
    "Quotes \"\", 'a, \\, braces {} {0}, \\[brackets\\] and [`links`](crate).",
    "Ümläute, 状態 and פועל.",
    "<b>Tags</b>, `code` and */ comments /*.",
    "#\\[attributes\\], r#raw and $names.",
    "A first line.\n    ///\n    /// ```text\n    /// A second one.\n    /// ```",
];

/// Writes one graph, in a module of its own or in a function.
fn graph(dice: &mut Rng, number: usize) -> String {
    let form = FORMS[number / FAMILIES.len() % FORMS.len()];
    let family = FAMILIES[number % FAMILIES.len()];
    let count = (0..9)
        .filter(|state| form.contains(&format!("{{{state}}}")))
        .count();
    let states = states(dice, family, count);
    let name = family(dice);
    let (options, module, handler) = options(dice, form, &name);
    let (attributes, variants, present) = variants(dice, form, &states);
    let vis = dice.pick(&["pub ", "pub(crate) ", "pub(super) ", ""]);
    let doc = dice.pick(&DOCS);
    let ident = &name.ident;
    let mut text = format!(
        "    /// {doc}
    #[::okt_macros::lifecycle_graph({options})]
    {attributes}#[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[allow(non_camel_case_types)]
    {vis}enum {ident} {{
{variants}    }}
"
    );
    let wire: Vec<String> = present
        .iter()
        .map(|(state, _)| format!("{:?}", state.wire()))
        .collect();
    let mut check = format!(
        "crate::names(<{ident} as ::okt_core::Lifecycle>::GRAPH, &[{}]);",
        wire.join(", ")
    );
    if form != PASS && number.is_multiple_of(3) {
        text += &handlers(&module, &handler, &present);
        check += &format!("\n        crate::handled::<App, {ident}>(App);");
    }
    placed(dice, number, &text, &check)
}

/// Returns the options of the attribute, and the names of the module and of the trait.
fn options(dice: &mut Rng, form: &str, name: &Name) -> (String, String, String) {
    let mut options = "crate(::okt_core)".to_string();
    if form == PASS {
        options += ", pass";
    }
    let mut module = name.snake.clone();
    // An enum that is called like its module needs another one.
    if name.plain() == module || dice.one_in(4) {
        let names: Vec<Name> = (0..9).map(|_| other(dice)).collect();
        let free = names.iter().find(|other| other.snake != name.plain());
        module.clone_from(&free.expect("one of nine").snake);
        options += &format!(", module = {module:?}");
    }
    let mut handler = format!("{}Handler", name.plain());
    if dice.one_in(5) {
        handler = dice.word("Lives dyn H größe Sync").to_string();
        if handler == module || handler == name.plain() {
            handler += "_";
        }
        options += &format!(", handler = {handler:?}");
    }
    (options, raw(&module), raw(&handler))
}

/// A variant that is there, with its attributes.
type Present<'n> = (&'n Name, String);

/// Returns the attributes of the enum, its variants, and those of them that are there.
fn variants<'n>(
    dice: &mut Rng,
    form: &str,
    states: &'n [Name],
) -> (String, String, Vec<Present<'n>>) {
    let mut filled = form.replace("{C}", dice.pick(&CONDITIONS));
    for (index, state) in states.iter().enumerate() {
        filled = filled.replace(&format!("{{{index}}}"), &state.ident);
    }
    let (mut attributes, mut variants, mut present) = (String::new(), String::new(), Vec::new());
    let mut own = String::new();
    for line in filled.lines().map(str::trim) {
        if let Some(line) = line.strip_prefix('@') {
            attributes += &format!("{line}\n    ");
        } else if line.starts_with("#[") {
            own += &format!("        {line}\n");
        } else {
            let doc = dice.pick(&DOCS);
            let state = states.iter().find(|state| state.ident == line);
            let state = state.expect("a form has a line for each state");
            let rename = state
                .rename
                .map(|name| format!("        #[serde(rename = {name:?})]\n"));
            variants += &format!(
                "        /// {doc}\n{own}{}        {line},\n",
                rename.unwrap_or_default()
            );
            if !(own.contains("cfg(any())") || own.contains("cfg(not(all()))")) {
                present.push((state, own.clone()));
            }
            own.clear();
        }
    }
    (attributes, variants, present)
}

/// Writes a handler of all states that have work.
fn handlers(module: &str, handler: &str, present: &[Present<'_>]) -> String {
    let mut text = format!(
        "
    /// An application.
    pub struct App;

    impl {handler} for App {{
        type Context = crate::Given;
        type Error = u8;
"
    );
    for (state, attributes) in present {
        if attributes.contains("(idle)") || attributes.contains(", idle)") {
            continue;
        }
        let mut args = "";
        let (answer, value) = if attributes.contains("#[leaf") {
            ("()".to_string(), "()".to_string())
        } else {
            let after = format!("{module}::After{}", state.plain());
            if attributes.contains("args = ") {
                args = ", _: &u8";
                (format!("{after}<u16>"), format!("{after}::Next(7)"))
            } else {
                (after.clone(), format!("{after}::Next"))
            }
        };
        text += &format!(
            "
        async fn {}(&self, _: &crate::Given{args}) -> ::core::result::Result<{answer}, u8> {{
            Ok({value})
        }}
",
            raw(&state.snake)
        );
    }
    text + "    }\n"
}

/// Puts a graph into a module, into modules with awkward names, or into a function.
fn placed(dice: &mut Rng, number: usize, text: &str, check: &str) -> String {
    let graph = match number % 4 {
        0 | 1 => {
            format!("{text}\n    /// Checks it.\n    pub fn check() {{\n        {check}\n    }}\n")
        }
        2 => {
            format!("    /// Checks it.\n    pub fn check() {{\n{text}\n        {check}\n    }}\n")
        }
        _ => {
            let (outer, inner) = (raw(&other(dice).snake), raw(&other(dice).snake));
            format!(
                "    /// Outer.\n    pub mod {outer} {{\n    /// Inner.\n    pub mod {inner} {{\n{text}
    /// Checks it.\n    pub fn check() {{\n        {check}\n    }}\n    }}\n    }}\n    pub use {outer}::{inner}::check;\n"
            )
        }
    };
    format!("/// Graph {number}.\npub mod g{number} {{\n{graph}}}\n\n")
}

impl Rng {
    /// Picks one of the words between spaces.
    fn word(&mut self, words: &'static str) -> &'static str {
        let words: Vec<&str> = words.split(' ').collect();
        self.pick(&words)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}
