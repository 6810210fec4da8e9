//! The items between the parentheses of an attribute: names, texts and options, each with its token.

use darling::ast::NestedMeta;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Token, Type};

use crate::report::{ErrorReport, Spot};

/// One item between commas.
#[derive(Debug)]
pub(crate) struct Item {
    /// Its first token.
    pub(crate) spot: Spot,
    pub(crate) content: ItemContent,
}

/// The content of an item.
#[derive(Debug)]
pub(crate) enum ItemContent {
    /// A path (e.g. `Failed`, `on_delete`).
    Name(syn::Path),
    /// A literal (e.g. `"Old"`).
    Literal(Lit),
    /// A word and its value (e.g. `after = "30m"`).
    Value { word: String, value: Value },
    /// A word and a list (e.g. `on_error(attempts = 3)`).
    List { word: String, items: TokenStream },
}

/// The right side of an option.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) spot: Spot,
    literal: Option<Lit>,
    tokens: TokenStream,
}

/// Returns the items of an attribute's list, empty for `#[word]` alone; reports `#[word = ..]` and returns none.
pub(crate) fn of_attribute(report: &mut ErrorReport, attr: &Attribute) -> Option<Vec<Item>> {
    match &attr.meta {
        Meta::Path(_) => Some(Vec::new()),
        Meta::List(list) => Some(parse(report, list.tokens.clone())),
        Meta::NameValue(pair) => {
            let word = spell(&pair.path);
            let spot = report.spot_of(&pair.value);
            report.bad_option(
                spot,
                format!("`#[{word} = ..]` has no meaning"),
                format!("write `#[{word}(..)]`"),
            );
            None
        }
    }
}

/// Reads each item separately, so that an unreadable item does not affect the others.
pub(crate) fn parse(report: &mut ErrorReport, tokens: TokenStream) -> Vec<Item> {
    between_commas(tokens)
        .into_iter()
        .filter_map(|tokens| item(report, tokens))
        .collect()
}

fn between_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut chunks = vec![TokenStream::new()];
    // A comma of a type (e.g. `BTreeMap<String, u32>`) separates no items.
    let mut angles = 0_usize;
    for token in tokens {
        if let TokenTree::Punct(punct) = &token {
            match punct.as_char() {
                '<' => angles += 1,
                '>' => angles = angles.saturating_sub(1),
                _ => {}
            }
        }
        let last = chunks.last_mut().expect("begins with one");
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' && angles == 0 => {
                if last.is_empty() {
                    // An empty item between two commas is reported at the second comma.
                    last.extend([TokenTree::Punct(punct)]);
                }
                chunks.push(TokenStream::new());
            }
            token => last.extend([token]),
        }
    }
    // A trailing comma is allowed.
    if chunks.last().is_some_and(TokenStream::is_empty) {
        chunks.pop();
    }
    chunks
}

fn item(report: &mut ErrorReport, tokens: TokenStream) -> Option<Item> {
    let spot = report.spot_of(&tokens);
    let content = match syn::parse2(tokens.clone()) {
        Ok(NestedMeta::Meta(Meta::Path(path))) => ItemContent::Name(path),
        Ok(NestedMeta::Lit(literal)) => ItemContent::Literal(literal),
        Ok(NestedMeta::Meta(Meta::NameValue(pair))) => ItemContent::Value {
            word: spell(&pair.path),
            value: Value {
                spot: report.spot_of(&pair.value),
                tokens: pair.value.to_token_stream(),
                literal: match pair.value {
                    Expr::Lit(ExprLit { lit, .. }) => Some(lit),
                    _ => None,
                },
            },
        },
        Ok(NestedMeta::NameValueInvalidExpr(pair)) => ItemContent::Value {
            word: spell(&pair.path),
            value: Value {
                spot: report.spot_of(&pair.value),
                tokens: pair.value,
                literal: None,
            },
        },
        Ok(NestedMeta::Meta(Meta::List(list))) => ItemContent::List {
            word: spell(&list.path),
            items: list.tokens,
        },
        Err(error) => {
            let Ok((word, r#type)) = typed.parse2(tokens) else {
                let spot = report.spot(error.span());
                report.bad_option(
                    spot,
                    format!("cannot be read: {error}"),
                    "write names, texts and options (`word = value`), with commas between them",
                );
                return None;
            };
            ItemContent::Value {
                word: name(&word),
                value: Value {
                    spot: report.spot_of(&r#type),
                    tokens: r#type.to_token_stream(),
                    literal: None,
                },
            }
        }
    };
    Some(Item { spot, content })
}

/// Reads `word = type`, where the type has a comma: darling reads other types.
fn typed(input: ParseStream<'_>) -> syn::Result<(Ident, Type)> {
    let word = input.call(Ident::parse_any)?;
    input.parse::<Token![=]>()?;
    Ok((word, input.parse()?))
}

impl Item {
    /// Returns the word of an option, with or without a value (e.g. `after` of `after = "30m"`).
    pub(crate) fn word(&self) -> Option<String> {
        match &self.content {
            ItemContent::Name(path) => Some(spell(path)),
            ItemContent::Value { word, .. } | ItemContent::List { word, .. } => Some(word.clone()),
            ItemContent::Literal(_) => None,
        }
    }

    /// Returns whether this is the option `word`, which takes no value; reports a value, but still returns true.
    pub(crate) fn is_flag(&self, report: &mut ErrorReport, word: &str) -> bool {
        if self.word().as_deref() != Some(word) {
            return false;
        }
        if !matches!(self.content, ItemContent::Name(_)) {
            report.bad_option(
                self.spot,
                format!("`{word}` takes no value"),
                format!("write `{word}` alone"),
            );
        }
        true
    }

    /// Returns whether the option occurs for the first time among those `seen`; reports a repeated one.
    pub(crate) fn once(&self, report: &mut ErrorReport, seen: &mut Vec<String>) -> bool {
        let word = self.word().unwrap_or_default();
        let is_new = !seen.contains(&word);
        if is_new {
            seen.push(word);
        } else {
            report.bad_option(self.spot, format!("`{word}` stands twice"), "keep one");
        }
        is_new
    }

    /// Returns the value of an option, if it is a literal, and the token where it stands or is missing.
    fn value(&self) -> (Option<&Lit>, Spot) {
        match &self.content {
            ItemContent::Value { value, .. } => (value.literal.as_ref(), value.spot),
            ItemContent::Name(_) | ItemContent::List { .. } | ItemContent::Literal(_) => {
                (None, self.spot)
            }
        }
    }

    /// Returns the text of the option `word` (e.g. of `reason = "Broken"`); reports any other value.
    pub(crate) fn text(&self, report: &mut ErrorReport, word: &str) -> Option<(String, Spot)> {
        let (value, spot) = self.value();
        if let Some(Lit::Str(text)) = value {
            return Some((text.value(), spot));
        }
        report.bad_option(
            spot,
            format!("`{word}` takes a text"),
            format!("write `{word} = \"..\"`"),
        );
        None
    }

    /// Returns the number of the option `word` (e.g. of `attempts = 3`); reports any other value.
    pub(crate) fn number(&self, report: &mut ErrorReport, word: &str) -> Option<(u32, Spot)> {
        let (value, spot) = self.value();
        if let Some(Lit::Int(number)) = value
            && let Ok(number) = number.base10_parse()
        {
            return Some((number, spot));
        }
        report.bad_option(
            spot,
            format!("`{word}` takes a whole number from 1 to {}", u32::MAX),
            format!("write `{word} = 3`"),
        );
        None
    }

    /// Returns the type of the option `word` (e.g. of `args = RestoreArgs`); reports any other value.
    pub(crate) fn r#type(&self, report: &mut ErrorReport, word: &str) -> Option<Type> {
        if let ItemContent::Value { value, .. } = &self.content
            && let Ok(read) = syn::parse2(value.tokens.clone())
        {
            return Some(read);
        }
        let (_, spot) = self.value();
        report.bad_option(
            spot,
            format!("`{word}` takes a type"),
            format!("write the name of a type, `{word} = ..`"),
        );
        None
    }

    /// Reports an unknown option, with the similar option that was probably meant.
    pub(crate) fn unknown(&self, report: &mut ErrorReport, known: &[&str]) {
        let what = match self.word() {
            Some(word) => format!("unknown option `{word}`"),
            None => "a literal has no meaning here".to_string(),
        };
        let help = match (self.word().and_then(|word| similar(&word, known)), known) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, []) => "there are no options here; remove it".to_string(),
            (None, [only]) => format!("the only option here is `{only}`"),
            (None, [most @ .., last]) => {
                let most: Vec<String> = most.iter().map(|word| format!("`{word}`")).collect();
                format!("the options here are {} and `{last}`", most.join(", "))
            }
        };
        report.bad_option(self.spot, what, help);
    }
}

/// Returns the word of `known` that was probably meant.
pub(crate) fn similar<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), *candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// Returns the text of `word = ".."`.
pub(crate) fn text_of<'m>(meta: &'m Meta, word: &str) -> Option<&'m LitStr> {
    match meta {
        Meta::NameValue(pair) if pair.path.is_ident(word) => text(&pair.value),
        Meta::NameValue(_) | Meta::Path(_) | Meta::List(_) => None,
    }
}

/// Returns the text that an expression is.
pub(crate) fn text(value: &Expr) -> Option<&LitStr> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text),
        _ => None,
    }
}

/// Returns a path as text.
pub(crate) fn spell(path: &syn::Path) -> String {
    let names: Vec<String> = path
        .segments
        .iter()
        .map(|segment| name(&segment.ident))
        .collect();
    names.join("::")
}

/// Returns an identifier without `r#`.
pub(crate) fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}
