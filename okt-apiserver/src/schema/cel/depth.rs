//! Limits the depth of an expression before it is parsed: the parser and the evaluator recurse without a
//! limit, and may need 40 kilobytes of the stack for each level.

/// The maximum depth of an expression; a server takes up to 250.
const LIMIT: usize = 40;

/// Checks that an expression goes no deeper than [`LIMIT`].
///
/// It counts open brackets and, in each of them, the operators in a row that nest (`a + b + c`, `a.b.c`, `a ? b : c`);
/// `&&`, `||` and commas do not nest. It may count some operators that do not nest, but it misses none.
///
/// # Errors
/// The exceeded limit, as a text for a refusal.
pub(super) fn check(source: &str) -> Result<(), String> {
    // The rows in front of each open bracket, and the row since the last one.
    let mut outer: Vec<Row> = Vec::new();
    let mut row = Row::default();
    let mut rest = source.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '"' | '\'' => skip_text(&mut rest, char),
            '(' | '[' | '{' => {
                row.members += 1;
                outer.push(row);
                row = Row::default();
            }
            ')' | ']' | '}' => row = outer.pop().unwrap_or_default(),
            ',' => row = Row::default(),
            '?' | ':' => row = row.choice(),
            '&' | '|' if rest.next_if_eq(&char).is_some() => row = row.term(),
            '=' | '!' | '<' | '>' => {
                rest.next_if_eq(&'=');
                row = row.operator();
            }
            '+' | '-' | '*' | '/' | '%' => row = row.operator(),
            '.' => row.members += 1,
            // The end of the operator `in`.
            'n' if rest.peek() == Some(&' ') => row = row.operator(),
            _ => {}
        }
        if outer.iter().chain([&row]).map(Row::depth).sum::<usize>() > LIMIT {
            return Err(format!(
                "more than {LIMIT} operators or brackets in each other"
            ));
        }
    }
    Ok(())
}

/// The operators that nest without brackets: choices, the operators of one of their parts, and the members of an
/// operand.
#[derive(Clone, Copy, Default)]
struct Row {
    choices: usize,
    operators: usize,
    members: usize,
}

impl Row {
    fn depth(&self) -> usize {
        self.choices + self.operators + self.members
    }

    fn choice(self) -> Self {
        Self {
            choices: self.choices + 1,
            ..Self::default()
        }
    }

    fn term(self) -> Self {
        Self {
            choices: self.choices,
            ..Self::default()
        }
    }

    fn operator(self) -> Self {
        Self {
            operators: self.operators + 1,
            members: 0,
            ..self
        }
    }
}

/// Skips a text to its end; the parser refuses an unterminated one.
fn skip_text(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char) {
    while let Some(char) = rest.next() {
        match char {
            '\\' => drop(rest.next()),
            '\n' => return,
            char if char == quote => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_counts_nesting_operators_only() {
        for deep in [
            format!("{}1{}", "(".repeat(LIMIT + 1), ")".repeat(LIMIT + 1)),
            format!("1{}", " + 1".repeat(LIMIT + 1)),
            format!("a{}", "[a]".repeat(LIMIT + 1)),
            format!("a{}", "[a.b".repeat(LIMIT / 2 + 1)),
            format!("{}true", "a ? b : ".repeat(LIMIT / 2 + 1)),
        ] {
            assert!(check(&deep).is_err(), "{deep}");
        }
        for flat in [
            format!("{}1{}", "(".repeat(LIMIT), ")".repeat(LIMIT)),
            format!("1{}", " + 1".repeat(LIMIT)),
            format!("a.b.c == '(((('{}", " || a.b.c == \"\\\"[\"".repeat(1000)),
            format!("[1{}]", ", -1".repeat(1000)),
            format!("a in [{}]", "'((((', ".repeat(1000)),
        ] {
            assert_eq!(check(&flat), Ok(()), "{flat}");
        }
    }
}
