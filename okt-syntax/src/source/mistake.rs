//! A mistake with its place in a file, and its text in the layout of rustc.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Patch, Renderer, Snippet};

use okt_core::check::Rule;

/// One mistake, with its place in the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The rule that is broken; none for source that is not Rust.
    pub rule: Option<Rule>,
    /// What is wrong, as the compiler prints it.
    pub message: String,
    /// How to mend it; empty if nothing is known.
    pub help: String,
    /// The position of the token, in bytes.
    pub at: Range<usize>,
    pub(super) unknown: Option<Unknown>,
}

/// A name that is no variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unknown {
    pub(super) name: String,
    /// The variant that was probably meant.
    pub(super) meant: Option<String>,
    /// The name of the enum.
    pub(super) graph: String,
    /// The position of the head of the enum (e.g. `pub enum Life`), in bytes.
    pub(super) head: Range<usize>,
}

impl Mistake {
    /// Returns the mistake that a file cannot be read.
    pub fn of_file(error: &std::io::Error) -> Self {
        Self::of_rust(format!("the file cannot be read: {error}"), 0..0)
    }

    /// Returns a mistake that is not about a graph: the file is not Rust, or incomplete.
    pub(super) fn of_rust(message: String, at: Range<usize>) -> Self {
        Self {
            rule: None,
            message,
            help: String::new(),
            at,
            unknown: None,
        }
    }

    /// Returns the text of the error without its place, as the compiler prints it.
    pub fn text(&self) -> String {
        match self.rule {
            // rustc itself reports the first rule.
            Some(rule) if rule != Rule::UnknownTarget => rule.text(&self.message, &self.help),
            Some(_) | None => self.message.clone(),
        }
    }

    /// Returns the mistake as the compiler would print it, in this text of its file.
    ///
    /// The path is printed as it is given.
    pub fn render(&self, text: &str, path: &str, with_colours: bool) -> String {
        let renderer = if with_colours {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let source = || Snippet::source(text).path(path);
        let title = self.text();
        let title = Level::ERROR.primary_title(title.as_str());
        let at = AnnotationKind::Primary.span(self.at.clone());
        let Some(unknown) = &self.unknown else {
            return renderer.render(&[title.element(source().annotation(at))]);
        };
        // rustc reports an unknown variant itself.
        let title = title.id("E0599");
        let at = match unknown.meant {
            Some(_) => at,
            None => at.label(format!("variant not found in `{}`", unknown.graph)),
        };
        let name = format!("variant `{}` not found here", unknown.name);
        let graph = AnnotationKind::Context.span(unknown.head.clone());
        let mut groups = vec![title.element(source().annotation(at).annotation(graph.label(name)))];
        if let Some(meant) = &unknown.meant {
            let help = Level::HELP.secondary_title("there is a variant with a similar name");
            let source = Snippet::source(text).path(path);
            groups.push(help.element(source.patch(Patch::new(self.at.clone(), meant))));
        }
        renderer.render(&groups)
    }
}
