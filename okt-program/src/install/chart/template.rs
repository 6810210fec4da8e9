//! Objects with expressions of helm in them.

use serde_json::Value;

use crate::install::generated::yaml;

/// What stands in the objects of a chart for the namespace of the release.
pub(crate) const RELEASE_NAMESPACE: &str = "okt-release-namespace";
/// What stands in them for the name of the service account.
pub(crate) const ACCOUNT_NAME: &str = "okt-account-name";
/// What stands in them for a namespace that the operator is limited to.
pub(crate) const WATCHED_NAMESPACE: &str = "okt-watched-namespace";

/// What an indented block is to be replaced with: the number of spaces of its content.
const INDENT: &str = "INDENT";

/// The expressions in some objects. In an object a plain word stands for each, so that it is printed as it is; the words
/// come after all names in a map.
#[derive(Default)]
pub(super) struct HelmTemplate {
    expressions: Vec<String>,
}

impl HelmTemplate {
    /// Returns a value that is printed as an expression.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        self.word(expression.to_owned()).into()
    }

    /// Adds lines to a map or to a list.
    pub(super) fn add(&mut self, to: &mut Value, lines: &str) {
        let word = self.word(lines.trim_end().to_owned());
        match to {
            Value::Array(list) => list.push(word.into()),
            map => map[&word] = Value::from(word.as_str()),
        }
    }

    /// Adds an entry to a map if its value is not empty.
    pub(super) fn with(&mut self, to: &mut Value, name: &str, value: &str) {
        self.add(
            to,
            &format!("{{{{- with {value} }}}}\n{name}: {{{{- toYaml . | nindent {INDENT} }}}}\n{{{{- end }}}}"),
        );
    }

    /// Adds the entries of another map.
    pub(super) fn spread(&mut self, to: &mut Value, value: &str) {
        self.add(
            to,
            &format!("{{{{- range $name, $value := {value} }}}}\n{{{{ $name | quote }}}}: {{{{ $value | quote }}}}\n{{{{- end }}}}"),
        );
    }

    fn word(&mut self, expression: String) -> String {
        self.expressions.push(expression);
        format!("zz-okt-{:03}", self.expressions.len() - 1)
    }

    /// Returns the objects as documents, each of which begins with a line `---`.
    ///
    /// # Errors
    ///
    /// If an object cannot be written as YAML.
    pub(super) fn print<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Result<String, String> {
        let mut printed = String::new();
        for object in objects {
            // What helm takes for an expression is none in what users wrote.
            let mut text = yaml(object)?.replace("{{", "{{ \"{{\" }}");
            for (word, expression) in [
                (RELEASE_NAMESPACE, "$.Release.Namespace"),
                (ACCOUNT_NAME, "$.Values.serviceAccount.name"),
                (WATCHED_NAMESPACE, "."),
            ] {
                // A name such as `on` or `12` is a text as well.
                let whole = format!(": {{{{ {expression} | quote }}}}\n");
                text = text.replace(&format!(": {word}\n"), &whole);
                text = text.replace(word, &format!("{{{{ {expression} }}}}"));
            }
            printed.push_str("---\n");
            for line in text.lines() {
                self.print_line(line, &mut printed);
            }
        }
        Ok(printed)
    }

    fn print_line(&self, line: &str, to: &mut String) {
        let content = line.trim_start();
        let (indent, _) = line.split_at(line.len() - content.len());
        for (index, expression) in self.expressions.iter().enumerate() {
            let word = format!("zz-okt-{index:03}");
            if content == format!("- {word}") || content == format!("{word}: {word}") {
                let nested = (indent.len() + 2).to_string();
                for line in expression.lines() {
                    to.push_str(indent);
                    to.push_str(&line.replace(INDENT, &nested));
                    to.push('\n');
                }
                return;
            }
            if let Some(start) = line.strip_suffix(&word) {
                to.push_str(start);
                to.push_str(expression);
                to.push('\n');
                return;
            }
        }
        to.push_str(line);
        to.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{HelmTemplate, RELEASE_NAMESPACE};

    #[test]
    fn what_users_wrote_is_a_text_and_what_the_chart_adds_an_expression() {
        let mut template = HelmTemplate::default();
        let mut object = json!({
            "about": "a {{ b }} c",
            "in": RELEASE_NAMESPACE,
            "said": format!("in {RELEASE_NAMESPACE}."),
            "list": ["x"],
        });
        object["value"] = template.value("{{ .Values.a }}");
        template.add(
            &mut object["list"],
            "{{- range .b }}\n- {{ . }}\n{{- end }}",
        );
        template.with(&mut object, "map", ".Values.c");
        let printed = template.print([&object]).expect("YAML");
        let about = printed.lines().find(|line| line.starts_with("about:"));
        assert!(
            about.is_some_and(|line| line.contains("a {{ \"{{\" }} b }} c")),
            "{printed}"
        );
        for wanted in [
            "\nin: {{ $.Release.Namespace | quote }}\n",
            "\nlist:\n- x\n{{- range .b }}\n- {{ . }}\n{{- end }}\n",
            "\nsaid: in {{ $.Release.Namespace }}.\n",
            "\nvalue: {{ .Values.a }}\n",
            "\n{{- with .Values.c }}\nmap: {{- toYaml . | nindent 2 }}\n{{- end }}\n",
        ] {
            assert!(printed.contains(wanted), "{wanted} of {printed}");
        }
    }
}
