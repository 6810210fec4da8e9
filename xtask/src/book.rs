//! The preprocessor of the book: it takes in pages that are no files of `docs/`, and adjusts links.
//!
//! | line in a page of the book | replaced by |
//! |---|---|
//! | `[cargo okt](../cargo-okt/README.md) <!-- page -->` | that page |
//! | `[attributes](../okt-macros/src/lib.rs) <!-- page -->` | the documentation at the beginning of that file |
//! | `[each rule](../okt-syntax/rules) <!-- pages okt -->` | all pages of that folder whose names begin so, each as a part of this one |
//!
//! Who reads `docs/` outside of the book sees the link.
//!
//! A link to a file of the repository leads to the page of the book that has it. If there is none, it leads to the
//! address of the repository; as long as nobody has set that, the text stays without a link.
//!
//! The book and its answer are the JSON of mdBook: <https://rust-lang.github.io/mdBook/for_developers/preprocessors.html>.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::crates;
use crate::docs::{anchor, normalized};

/// The folder of the book's own pages.
const SOURCE: &str = "docs";

/// Reads the book of mdBook from the standard input, and prints it as it is to be rendered.
pub(crate) fn preprocess(repository: &Path) -> io::Result<()> {
    let input: Value = serde_json::from_reader(io::stdin().lock())?;
    let mut book = input[1].clone();
    let mut places = BTreeMap::new();
    let mut chapters: BTreeMap<String, Vec<Part>> = BTreeMap::new();
    each_chapter(&mut book, &mut |chapter, content| {
        let parts = parts(repository, chapter, content)?;
        let of_parts = parts.iter();
        places.extend(of_parts.map(|part| (part.source.clone(), Place::of(chapter, part))));
        chapters.insert(chapter.path.clone(), parts);
        Ok(())
    })?;
    let links = Links {
        repository,
        address: crates::address(repository),
        places,
    };
    each_chapter(&mut book, &mut |chapter, content| {
        let parts = chapters.get(&chapter.path).into_iter().flatten();
        *content = parts.map(|part| links.adjusted(part)).collect();
        Ok(())
    })?;
    println!("{book}");
    Ok(())
}

/// A chapter of the book.
struct Chapter {
    name: String,
    /// Its path below the folder of the book.
    path: String,
}

/// Calls a function with each chapter and its text.
fn each_chapter(
    item: &mut Value,
    take: &mut impl FnMut(&Chapter, &mut String) -> io::Result<()>,
) -> io::Result<()> {
    let text = |field: &Value| field.as_str().map(str::to_owned);
    if let (Some(name), Some(path)) = (text(&item["name"]), text(&item["path"]))
        && let Value::String(content) = &mut item["content"]
    {
        take(&Chapter { name, path }, content)?;
    }
    let below: Vec<&mut Value> = match item {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => return Ok(()),
    };
    for item in below {
        each_chapter(item, take)?;
    }
    Ok(())
}

/// A page of the repository in a chapter.
struct Part {
    /// Its path in the repository.
    source: PathBuf,
    text: String,
    /// Whether it is one of several pages of its chapter.
    is_one_of_several: bool,
}

/// Returns the pages of a chapter: its own text, and those that it takes in.
fn parts(repository: &Path, chapter: &Chapter, content: &str) -> io::Result<Vec<Part>> {
    let mut own = Part {
        source: Path::new(SOURCE).join(&chapter.path),
        text: String::new(),
        is_one_of_several: false,
    };
    let mut parts = Vec::new();
    for line in content.lines() {
        let Some((sources, is_one_of_several)) = taken_in(repository, line)? else {
            own.text.push_str(line);
            own.text.push('\n');
            continue;
        };
        for source in sources {
            let text = page(repository, &source)?;
            parts.push(Part {
                source,
                text,
                is_one_of_several,
            });
        }
    }
    let has_title = !own.text.trim().is_empty();
    for part in &mut parts {
        if has_title || part.is_one_of_several {
            part.text = format!("\n{}", lowered(&part.text));
        }
    }
    if has_title {
        parts.insert(0, own);
    }
    Ok(parts)
}

/// Returns the pages that a line takes in, and whether they are several.
fn taken_in(repository: &Path, line: &str) -> io::Result<Option<(Vec<PathBuf>, bool)>> {
    let comment = line
        .strip_suffix(" -->")
        .and_then(|it| it.split_once(" <!-- "));
    let Some((link, comment)) = comment else {
        return Ok(None);
    };
    let target = link
        .split_once("](")
        .and_then(|(_, it)| it.strip_suffix(')'));
    let Some(target) = target.map(|it| normalized(&Path::new(SOURCE).join(it))) else {
        return Ok(None);
    };
    Ok(match comment.split_once(' ') {
        None if comment == "page" => Some((vec![target], false)),
        Some(("pages", prefix)) => Some((pages(repository, &target.join(prefix))?, true)),
        _ => None,
    })
}

/// Returns a text with each heading one level lower.
fn lowered(text: &str) -> String {
    let mut is_code = false;
    let lines = text.split_inclusive('\n').map(|line| {
        is_code ^= line.starts_with("```");
        let is_heading = !is_code && line.starts_with('#');
        format!("{}{line}", if is_heading { "#" } else { "" })
    });
    lines.collect()
}

/// Returns the paths that begin with this one.
fn pages(repository: &Path, prefix: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = prefix.parent().unwrap_or(Path::new(""));
    let mut pages = Vec::new();
    for entry in fs::read_dir(repository.join(folder))? {
        let path = folder.join(entry?.file_name());
        if path
            .to_string_lossy()
            .starts_with(&*prefix.to_string_lossy())
        {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// Returns the text of a page, or the documentation at the beginning of Rust code.
fn page(repository: &Path, path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(repository.join(path))?;
    if path.extension().is_none_or(|it| it != "rs") {
        return Ok(text);
    }
    let docs = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = docs.map(|line| line.strip_prefix(' ').unwrap_or(line));
    Ok(lines.collect::<Vec<_>>().join("\n") + "\n")
}

/// Where a page of the repository is in the book.
struct Place {
    /// The path of its chapter, with its heading if it is one of several there.
    path: String,
    /// What it is called.
    name: String,
}

impl Place {
    fn of(chapter: &Chapter, part: &Part) -> Self {
        let heading = part.text.trim_start().lines().next().unwrap_or_default();
        if part.is_one_of_several {
            return Self {
                path: format!("{}#{}", chapter.path, anchor(heading)),
                name: heading.trim_start_matches('#').trim().to_owned(),
            };
        }
        Self {
            path: chapter.path.clone(),
            name: chapter.name.clone(),
        }
    }
}

/// Where links lead.
struct Links<'a> {
    repository: &'a Path,
    /// The address of the repository; empty if nobody has set it.
    address: String,
    /// The place in the book of each page of the repository.
    places: BTreeMap<PathBuf, Place>,
}

impl Links<'_> {
    /// Returns the text of a part with links that work in the book.
    fn adjusted(&self, part: &Part) -> String {
        let mut adjusted = String::new();
        let mut is_code = false;
        for line in part.text.split_inclusive('\n') {
            let is_fence = line.trim_start().starts_with("```");
            if is_fence || is_code {
                adjusted.push_str(line);
                is_code ^= is_fence;
            } else {
                adjusted.push_str(&self.adjusted_line(line, &part.source));
            }
        }
        adjusted
    }

    fn adjusted_line(&self, line: &str, source: &Path) -> String {
        let folder = source.parent().unwrap_or(Path::new(""));
        let (mut adjusted, mut rest) = (String::new(), line);
        while let Some(at) = rest.find("](") {
            let (before, after) = rest.split_at(at);
            let Some((target, after)) = after[2..].split_once(')') else {
                break;
            };
            rest = after;
            // The documentation of code names items.
            let is_item = target.contains("::") || target == "crate";
            let (before, text) = before.rsplit_once('[').unwrap_or((before, ""));
            adjusted.push_str(before);
            match self.target(folder, target) {
                Some(link) if !is_item => {
                    let text = self.name_of(folder, target, text);
                    adjusted.push_str(&format!("[{text}]({link})"));
                }
                _ => adjusted.push_str(text),
            }
        }
        adjusted.push_str(rest);
        if !source.starts_with(SOURCE) {
            adjusted = without_items(&adjusted);
        }
        self.with_images(&adjusted, folder)
    }

    /// Returns the text of a link: the name of the page, where the text is that of its file.
    fn name_of(&self, folder: &Path, target: &str, text: &str) -> String {
        let path = target.split('#').next().unwrap_or_default();
        let place = self.places.get(&normalized(&folder.join(path)));
        let is_file = text == path || path.ends_with(&format!("/{text}"));
        let named = place.filter(|_| is_file && !text.is_empty());
        named.map_or_else(|| text.to_owned(), |place| place.name.clone())
    }

    /// Returns where a link leads in the book; none if it leads nowhere.
    fn target(&self, folder: &Path, target: &str) -> Option<String> {
        if target.contains("://") || target.starts_with('#') {
            return Some(target.to_owned());
        }
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = normalized(&folder.join(path));
        let heading = match heading {
            "" => String::new(),
            _ => format!("#{heading}"),
        };
        if let Some(Place { path, .. }) = self.places.get(&path) {
            let chapter = path.split('#').next().unwrap_or_default();
            let path = if heading.is_empty() { path } else { chapter };
            return Some(format!("{path}{heading}"));
        }
        if let Ok(own) = path.strip_prefix(SOURCE)
            && !own.as_os_str().is_empty()
        {
            // mdBook has another name for the first page, and shows the contents on each.
            let is_first = ["README.md", "SUMMARY.md"]
                .iter()
                .any(|it| own == Path::new(it));
            let own = if is_first { Path::new("index.md") } else { own };
            return Some(format!("{}{heading}", own.display()));
        }
        let shown = path.display();
        (!self.address.is_empty()).then(|| format!("{}/blob/main/{shown}{heading}", self.address))
    }

    /// Takes in the pictures of pages that are not beside the book.
    fn with_images(&self, line: &str, folder: &Path) -> String {
        let Some((before, rest)) = line.split_once("<img src=\"") else {
            return line.to_owned();
        };
        let Some((path, after)) = rest.split_once('"') else {
            return line.to_owned();
        };
        let path = normalized(&folder.join(path));
        match fs::read(self.repository.join(&path)) {
            Ok(picture) => format!("{before}<img src=\"{}\"{after}", data_url(&picture)),
            Err(_) => line.to_owned(),
        }
    }
}

/// Returns a line in which names of items that only rustdoc links (``[`Application`]``) are names.
fn without_items(line: &str) -> String {
    let (mut plain, mut rest) = (String::new(), line);
    while let Some(at) = rest.find("[`") {
        let (before, link) = rest.split_at(at);
        plain.push_str(before);
        let end = link
            .find("`]")
            .filter(|end| !link[end + 2..].starts_with(['(', '[']));
        let kept = match end {
            Some(end) => &link[1..=end],
            None => &link[..2],
        };
        plain.push_str(kept);
        rest = &link[end.map_or(2, |end| end + 2)..];
    }
    plain + rest
}

/// Returns an address that contains an SVG.
fn data_url(svg: &[u8]) -> String {
    let mut url = "data:image/svg+xml,".to_owned();
    for byte in svg {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'/' | b':' | b'=' => {
                url.push(char::from(*byte));
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}
