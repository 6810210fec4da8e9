//! The wire names from serde's attributes, in serde's spelling.

use darling::ast::NestedMeta;
use okt_core::check::Rule;
use proc_macro2::TokenStream;
use syn::{Attribute, LitStr, Meta};

use crate::items;
use crate::report::ErrorReport;

/// Returns the name in `#[serde(rename = "..")]`.
pub(crate) fn rename(report: &mut ErrorReport, attr: &Attribute) -> Option<String> {
    option(report, attr, "rename")
}

/// Returns the case in `#[serde(rename_all = "..")]`.
pub(crate) fn rename_all(report: &mut ErrorReport, attrs: &[Attribute]) -> Option<String> {
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident("serde"))
        .filter_map(|attr| option(report, attr, "rename_all"))
        .last()
}

/// Converts a variant's name into one of serde's cases; serde itself reports an unknown case.
///
/// For serde every upper-case letter begins a word, whereas heck keeps acronyms together.
pub(crate) fn in_case(case: &str, variant: &str) -> String {
    let snake = || {
        let mut snake = String::new();
        for (index, letter) in variant.char_indices() {
            if index > 0 && letter.is_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
        }
        snake
    };
    match case {
        "lowercase" => variant.to_ascii_lowercase(),
        "UPPERCASE" => variant.to_ascii_uppercase(),
        "camelCase" => {
            let mut letters = variant.chars();
            let first = letters.next().map(|letter| letter.to_ascii_lowercase());
            first.into_iter().chain(letters).collect()
        }
        "snake_case" => snake(),
        "SCREAMING_SNAKE_CASE" => snake().to_ascii_uppercase(),
        "kebab-case" => snake().replace('_', "-"),
        "SCREAMING-KEBAB-CASE" => snake().to_ascii_uppercase().replace('_', "-"),
        _ => variant.to_string(),
    }
}

/// Returns the text of `word = ".."` or `word(serialize = "..")`; ignores everything else.
fn option(report: &mut ErrorReport, attr: &Attribute, word: &str) -> Option<String> {
    let Meta::List(list) = &attr.meta else {
        return None;
    };
    let mut found = None;
    for item in metas(list.tokens.clone()) {
        if !item.path().is_ident(word) {
            continue;
        }
        match &item {
            Meta::NameValue(pair) => found = items::text(&pair.value).map(LitStr::value).or(found),
            Meta::List(list) => {
                let side = |side: &str| {
                    let sides = metas(list.tokens.clone());
                    let side = sides.iter().find(|meta| meta.path().is_ident(side));
                    side.and_then(|meta| {
                        Some(items::text(&meta.require_name_value().ok()?.value)?.value())
                    })
                };
                let (written, read) = (side("serialize"), side("deserialize"));
                if let (Some(written), Some(read)) = (&written, &read)
                    && written != read
                {
                    let spot = report.spot_of(&item);
                    report.error(
                        Rule::SameName,
                        spot,
                        format!("a state is written and read by one name, here by `{written}` and `{read}`"), format!("use `{word} = \"{written}\"`"),
                    );
                }
                found = written.or(found);
            }
            Meta::Path(_) => {}
        }
    }
    found
}

fn metas(tokens: TokenStream) -> Vec<Meta> {
    let items = NestedMeta::parse_meta_list(tokens).unwrap_or_default();
    let metas = items.into_iter().filter_map(|item| match item {
        NestedMeta::Meta(meta) => Some(meta),
        NestedMeta::Lit(_) | NestedMeta::NameValueInvalidExpr(_) => None,
    });
    metas.collect()
}

#[cfg(test)]
mod tests {
    use super::in_case;

    #[test]
    fn cases_are_those_of_serde() {
        let spelled = |case| in_case(case, "HTTPServing");
        assert_eq!(spelled("lowercase"), "httpserving");
        assert_eq!(spelled("UPPERCASE"), "HTTPSERVING");
        assert_eq!(spelled("PascalCase"), "HTTPServing");
        assert_eq!(spelled("camelCase"), "hTTPServing");
        assert_eq!(spelled("snake_case"), "h_t_t_p_serving");
        assert_eq!(spelled("SCREAMING_SNAKE_CASE"), "H_T_T_P_SERVING");
        assert_eq!(spelled("kebab-case"), "h-t-t-p-serving");
        assert_eq!(spelled("SCREAMING-KEBAB-CASE"), "H-T-T-P-SERVING");
    }
}
