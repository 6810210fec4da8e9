//! Mistakes as text, with their source lines, in the layout of rustc.

use annotate_snippets::{AnnotationKind, Level, Patch, Renderer, Snippet};

use super::Mistake;

impl Mistake {
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
