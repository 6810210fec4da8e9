//! `cargo okt diff`: how two versions of the graphs differ, and what stored objects lose by it.

use std::path::{Path, PathBuf};

use clap::Args;
use okt_syntax::lock::{LockedGraph, compare_texts, with_locked};

use crate::crates::Crates;
use crate::output::print;

/// Compare the lifecycle graphs of two versions: what is gone, changed and new, and what stored objects lose.
///
/// It exits with 1 if stored objects lose something.
#[derive(Args)]
pub(crate) struct Diff {
    /// The old version: a source file with its modules, or a lock file.
    old: PathBuf,
    /// The new version.
    new: PathBuf,
}

impl Diff {
    /// Prints the differences, and returns an error if stored objects lose something by them.
    pub(crate) fn run(&self) -> Result<(), String> {
        let (old, new) = (declared(&self.old)?, declared(&self.new)?);
        let differences = compare_texts(&old, &new).map_err(|why| why.text())?;
        let mut text = String::new();
        let mut risks = 0;
        for difference in &differences {
            let change = &difference.change;
            let sign = change.kind.sign();
            text.push_str(&format!(
                "{sign} {}: {}\n",
                difference.graph, change.subject
            ));
            if let Some(risk) = change.risk {
                risks += 1;
                text.push_str(&format!("    {risk}\n"));
            }
        }
        print(&text)?;
        match (differences.len(), risks) {
            (0, _) => {
                eprintln!("no differences");
                Ok(())
            }
            (_, 0) => Ok(()),
            (count, risks) => Err(format!(
                "stored objects lose something by {risks} of {count} changes"
            )),
        }
    }
}

/// Returns the declarations of all graphs of a version.
fn declared(root: &Path) -> Result<String, String> {
    let files = Crates::of(root).read()?;
    let mut text = String::new();
    for file in &files {
        let Some(source) = &file.source else {
            return Err(format!("{} is not Rust; see `cargo okt check`", file.path));
        };
        if !file.mistakes.is_empty() {
            return Err(format!("{} has mistakes; see `cargo okt check`", file.path));
        }
        with_locked(source, |graphs| {
            for LockedGraph { version, graph } in graphs {
                let version = version.clone().or_else(|| file.version.clone());
                text.push_str(&LockedGraph { version, graph }.declaration());
            }
        });
    }
    if text.is_empty() {
        return Err(format!("there is no graph in {}", root.display()));
    }
    Ok(text)
}
