//! rust-analyzer with one open file: the questions that an editor asks.

use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::lsp::Server;

/// An editor whose only file is `src/main.rs` of a crate that depends on the macros.
pub(crate) struct Editor {
    server: Server,
    file: String,
    text: String,
    version: u32,
}

/// A completion that is offered.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) label: String,
    /// The number of its kind, as in the protocol.
    pub(crate) kind: u64,
    /// The edit that it makes.
    pub(crate) edit: (Range<usize>, String),
}

/// Returns the editor, which all tests share; none if there is no rust-analyzer. In CI this is an error.
///
/// rust-analyzer ends with the test process, because its input is closed then.
pub(crate) fn open_or_skip() -> Option<MutexGuard<'static, Editor>> {
    static EDITOR: LazyLock<Option<Mutex<Editor>>> = LazyLock::new(|| match install() {
        Ok(()) => Some(Mutex::new(Editor::open())),
        Err(why) if !in_ci() => {
            // Also shown if the tests pass.
            let _ = writeln!(io::stderr(), "skipped: rust-analyzer in an editor: {why}");
            None
        }
        Err(why) => panic!("{why}"),
    });
    let editor = EDITOR.as_ref()?;
    // Each test begins with a text of its own, so a test that failed changes nothing for the others.
    Some(editor.lock())
}

/// Installs rust-analyzer, and the source of std that it reads, where they are missing.
fn install() -> Result<(), String> {
    let is_there = || {
        let version = Command::new("rust-analyzer").arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    if is_there() {
        return Ok(());
    }
    let installed = Command::new("rustup")
        .args(["component", "add", "rust-analyzer", "rust-src"])
        .output();
    match installed {
        Ok(_) if is_there() => Ok(()),
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            Err(format!("rustup cannot install rust-analyzer: {error}"))
        }
        Err(error) => Err(format!("there is no rust-analyzer, and no rustup: {error}")),
    }
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false")
}

/// Writes a crate that depends on the macros of this checkout and has its lock file; returns the directory.
fn write_crate() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("editor");
    let dependency = |name| format!("{name} = {{ path = '{}' }}\n", here.join(name).display());
    let manifest = format!(
        "[package]\nname = \"life\"\nedition = \"2024\"\n\n[dependencies]\n{}{}\n[workspace]\n",
        dependency("okt-core"),
        dependency("okt-macros"),
    );
    let lock = fs::read_to_string(here.join("Cargo.lock")).expect("a lock file");
    fs::create_dir_all(root.join("src")).expect("a directory");
    for (file, text) in [
        ("Cargo.toml", &*manifest),
        ("Cargo.lock", &lock),
        ("src/main.rs", "fn main() {}\n"),
    ] {
        let file = root.join(file);
        // A new file would make another test process load the crate again.
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(file, text).expect("a file");
    }
    root
}

impl Editor {
    fn open() -> Self {
        let root = write_crate();
        let log = fs::File::create(root.join("rust-analyzer.log")).expect("a log");
        let mut program = Command::new("rust-analyzer");
        program
            .current_dir(&root)
            // Cargo builds the macros here, once.
            .env("CARGO_TARGET_DIR", root.join("target"))
            // The settings of the user do not apply.
            .env("XDG_CONFIG_HOME", &root)
            .stderr(log);
        let mut server = Server::start(program).expect("rust-analyzer starts");
        let begun = server.request("initialize", &parameters(&root));
        let begun = begun.expect("rust-analyzer begins");
        assert_eq!(begun["capabilities"]["positionEncoding"], "utf-8");
        server.notify("initialized", &json!({}));
        let mut editor = Self {
            server,
            file: uri(&root.join("src/main.rs")),
            text: String::new(),
            version: 0,
        };
        editor.server.notify(
            "textDocument/didOpen",
            &json!({ "textDocument": {
                "uri": editor.file, "languageId": "rust", "version": 0, "text": "",
            } }),
        );
        editor.wait_until_macros_expand();
        editor
    }

    /// Waits until rust-analyzer has loaded the crate and expands its macros.
    fn wait_until_macros_expand(&mut self) {
        const TEXT: &str = "#[okt_macros::lifecycle_graph]\nenum Life {}\n";
        self.show(TEXT);
        let at = TEXT.find("lifecycle_graph").expect("it is there");
        loop {
            let status = self.server.wait_for("experimental/serverStatus");
            if status["quiescent"] == true {
                assert_eq!(status["health"], "ok", "{}", status["message"]);
                if !self.ask("rust-analyzer/expandMacro", at).is_null() {
                    return;
                }
            }
        }
    }

    /// Replaces the text of the file.
    pub(crate) fn show(&mut self, text: &str) {
        self.version += 1;
        text.clone_into(&mut self.text);
        self.server.notify(
            "textDocument/didChange",
            &json!({
                "textDocument": { "uri": self.file, "version": self.version },
                "contentChanges": [{ "text": text }],
            }),
        );
    }

    /// Returns the positions that "go to definition" leads to; none for each position in another file.
    pub(crate) fn definitions(&mut self, at: usize) -> Vec<Option<Range<usize>>> {
        let found = self.ask("textDocument/definition", at);
        let locations = found.as_array().into_iter().flatten();
        let locations = locations.map(|location| {
            let is_here = location["uri"] == *self.file;
            is_here.then(|| self.range(&location["range"]))
        });
        locations.collect()
    }

    /// Returns the text that is shown at a position, as Markdown.
    pub(crate) fn hover(&mut self, at: usize) -> String {
        let shown = self.ask("textDocument/hover", at);
        let shown = shown["contents"]["value"].as_str();
        shown.unwrap_or_default().to_owned()
    }

    /// Returns the references to what is at a position, without its definition.
    pub(crate) fn references(&mut self, at: usize) -> Vec<Range<usize>> {
        let context = json!({ "includeDeclaration": false });
        let found = self.ask_with("textDocument/references", at, "context", context);
        let references = found.as_array().into_iter().flatten();
        let references = references.inspect(|found| assert_eq!(found["uri"], *self.file));
        let references = references.map(|found| self.range(&found["range"]));
        let mut references: Vec<Range<usize>> = references.collect();
        references.sort_by_key(|at| at.start);
        references
    }

    /// Returns the edits that give a new name to what is at a position.
    pub(crate) fn rename(&mut self, at: usize, name: &str) -> Vec<(Range<usize>, String)> {
        let edit = self.ask_with("textDocument/rename", at, "newName", name.into());
        let changes = edit["documentChanges"].as_array().expect("a list");
        let mut edits: Vec<_> = changes
            .iter()
            .inspect(|change| assert_eq!(change["textDocument"]["uri"], *self.file))
            .flat_map(|change| change["edits"].as_array().expect("a list"))
            .map(|edit| self.edit(edit))
            .collect();
        edits.sort_by_key(|(at, _)| at.start);
        edits
    }

    /// Returns the completions for the name that ends at a position.
    pub(crate) fn completions(&mut self, at: usize) -> Vec<Offer> {
        let offered = self.ask("textDocument/completion", at);
        let offers = offered["items"].as_array().into_iter().flatten();
        let offers = offers.map(|item| Offer {
            label: item["label"].as_str().expect("a label").to_owned(),
            kind: item["kind"].as_u64().expect("a kind"),
            edit: self.edit(&item["textEdit"]),
        });
        offers.collect()
    }

    fn ask(&mut self, method: &str, at: usize) -> Value {
        self.ask_with(method, at, "context", Value::Null)
    }

    /// Asks about a position, with one more parameter.
    fn ask_with(&mut self, method: &str, at: usize, parameter: &str, value: Value) -> Value {
        let before = &self.text[..at];
        let line = before.matches('\n').count();
        let character = before.len() - before.rfind('\n').map_or(0, |end| end + 1);
        let mut params = json!({
            "textDocument": { "uri": self.file },
            "position": { "line": line, "character": character },
        });
        params[parameter] = value;
        let answer = self.server.request(method, &params);
        answer.unwrap_or_else(|error| {
            let line = self.text.lines().nth(line).unwrap_or_default();
            panic!("{method} at {character} of `{line}`: {error}")
        })
    }

    fn edit(&self, edit: &Value) -> (Range<usize>, String) {
        let text = edit["newText"].as_str().expect("a text");
        (self.range(&edit["range"]), text.to_owned())
    }

    fn range(&self, range: &Value) -> Range<usize> {
        let number = |value: &Value| {
            let number = value.as_u64().and_then(|number| number.try_into().ok());
            number.expect("a number")
        };
        let offset = |position: &Value| {
            let lines = self.text.split_inclusive('\n');
            let before: usize = lines.take(number(&position["line"])).map(str::len).sum();
            before + number(&position["character"])
        };
        offset(&range["start"])..offset(&range["end"])
    }
}

/// Returns the capabilities and the settings of the editor.
fn parameters(root: &Path) -> Value {
    json!({
        "processId": std::process::id(),
        "rootUri": uri(root),
        "capabilities": {
            "general": { "positionEncodings": ["utf-8"] },
            "experimental": { "serverStatusNotification": true },
            "textDocument": {
                "hover": { "contentFormat": ["markdown"] },
                "completion": {
                    "completionItem": {
                        "snippetSupport": true,
                        "resolveSupport": { "properties": ["additionalTextEdits"] },
                    },
                },
            },
        },
        // rust-analyzer does no other work than to answer.
        "initializationOptions": { "checkOnSave": false, "cachePriming": { "enable": false } },
    })
}

fn uri(path: &Path) -> String {
    let path = path.to_str().expect("the path is text");
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
