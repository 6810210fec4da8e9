//! `cargo okt graph`: draws the graphs of a crate, without building.

use clap::{Args, ValueEnum};

use crate::crates::Crates;
use crate::output::print;

/// Draw the lifecycle graphs of a crate, without building it.
#[derive(Args)]
pub(crate) struct Draw {
    #[command(flatten)]
    crates: Crates,
    /// The language of the drawing.
    #[arg(long, value_enum, default_value_t = DrawFormat::Mermaid)]
    format: DrawFormat,
    /// The enum, if there are several.
    #[arg(long, value_name = "ENUM")]
    name: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum DrawFormat {
    /// A Mermaid state diagram, which GitHub draws.
    Mermaid,
    /// Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// One line of JSON, as in the annotation `okt.dev/graph` of a CRD.
    Json,
}

impl Draw {
    /// Prints the drawings.
    pub(crate) fn run(&self) -> Result<(), String> {
        let files = self.crates.read()?;
        let mut drawn: Vec<(String, String)> = Vec::new();
        let is_incomplete = files.iter().any(|file| !file.mistakes.is_empty());
        for file in &files {
            let Some(source) = &file.source else {
                eprintln!("warning: {} is not Rust; see `cargo okt check`", file.path);
                continue;
            };
            if !file.mistakes.is_empty() {
                eprintln!(
                    "warning: {} has mistakes, and a graph with mistakes is not drawn; see `cargo okt check`",
                    file.path
                );
            }
            drawn.extend(source.graphs(|graph| {
                let text = match self.format {
                    DrawFormat::Mermaid => graph.mermaid(),
                    DrawFormat::Dot => graph.dot(),
                    DrawFormat::Svg => graph.svg(),
                    DrawFormat::Json => format!("{}\n", graph.json()),
                };
                (graph.name.to_owned(), text)
            }));
        }
        let names: Vec<String> = drawn.iter().map(|(name, _)| name.clone()).collect();
        if let Some(wanted) = &self.name {
            drawn.retain(|(name, _)| name == wanted);
        }
        match (&drawn[..], self.format) {
            ([], _) if names.is_empty() => Err("there is no graph to draw".to_owned()),
            ([], _) => Err(format!(
                "there is no such graph; there are {}",
                names.join(", ")
            )),
            ([_, _, ..], DrawFormat::Svg) => Err(format!(
                "a picture has one graph; choose with `--name`: {}",
                names.join(", ")
            )),
            (drawn, _) => {
                let texts: Vec<&str> = drawn.iter().map(|(_, text)| text.as_str()).collect();
                print(&texts.join("\n"))?;
                if is_incomplete && self.name.is_none() {
                    return Err("not every graph is drawn".to_owned());
                }
                Ok(())
            }
        }
    }
}
