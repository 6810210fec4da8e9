//! The pages name every variable of the environment that the code has, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::measures::each_file_of;

type Names = BTreeSet<String>;

/// Returns the variables that only the pages have, and those that only the code has.
pub(crate) fn differences(repository: &Path) -> Vec<String> {
    let [code, pages] = variables(repository, &product(repository));
    let missing = code.difference(&pages);
    let unknown = pages.difference(&code);
    missing
        .map(|it| format!("no page has {it}"))
        .chain(unknown.map(|it| format!("no code has {it}")))
        .collect()
}

/// Returns the code of the published crates.
fn product(repository: &Path) -> String {
    let mut product = String::new();
    each_file_of(repository, "rs", &mut |path, text| {
        let mut parts = path.components().map(|it| it.as_os_str().to_string_lossy());
        let is_published = parts.next().is_some_and(|it| it.contains("okt"))
            && parts.next().is_some_and(|it| it == "src");
        if is_published {
            product.push_str(
                text.split("\n#[cfg(test)]\nmod ")
                    .next()
                    .unwrap_or_default(),
            );
        }
    });
    product
}

/// Returns the variables that the code of the published crates has, and those that the pages name; tests have others.
fn variables(repository: &Path, product: &str) -> [Names; 2] {
    let product: Names = variables_of(product).collect();
    let (mut all, mut pages) = (Names::new(), Names::new());
    for extension in ["rs", "mjs"] {
        each_file_of(repository, extension, &mut |_, text| {
            all.extend(variables_of(text));
        });
    }
    let scripts = [".ci/release", ".ci/window"].map(|it| fs::read_to_string(repository.join(it)));
    all.extend(scripts.iter().flatten().flat_map(|text| variables_of(text)));
    each_file_of(repository, "md", &mut |path, text| {
        if !path.ends_with("CHANGELOG.md") {
            pages.extend(variables_of(text));
        }
    });
    // A page may name the variable of a test or of a script.
    let of_tests = all.difference(&product).filter(|it| pages.contains(*it));
    let in_code = product.iter().chain(of_tests).cloned().collect();
    [in_code, pages]
}

fn variables_of(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(move |c: char| !is_of_name(c));
    let names = words.filter(|it| it.len() > 4 && it.starts_with("OKT_"));
    names.map(str::to_owned)
}
