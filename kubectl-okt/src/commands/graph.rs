//! `kubectl okt graph`: the graph of a kind.

use clap::{Args, ValueEnum};
use kube::Client;
use okt_view::Kind;

use crate::draw::{Marks, draw};
use crate::error::Error;
use crate::output::print;
use crate::select::called;

/// Show the graph of a kind.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt graph databases
  kubectl okt graph databases -o dot | dot -Tsvg > databases.svg")]
pub(crate) struct ShowGraph {
    /// The kind: plural, singular or short name, with or without the group.
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The language of the drawing.
    #[arg(short, long, value_enum, default_value_t = Language::Text)]
    output: Language,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    /// Lines for a terminal.
    Text,
    /// A Mermaid state diagram, which GitHub draws.
    Mermaid,
    /// Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// One line of JSON, as in the annotation `okt.dev/graph` of the CRD.
    Json,
}

impl ShowGraph {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        for kind in called(&kinds, &self.kind)? {
            let graph = kind.graph.as_ref().map_err(|why| {
                Error::Failed(format!("cannot show the graph of {}: {why}", kind.id()))
            })?;
            print(&match self.output {
                Language::Text => draw(graph, &Marks::default()),
                Language::Mermaid => graph.mermaid(),
                Language::Dot => graph.dot(),
                Language::Svg => graph.svg(),
                Language::Json => format!("{}\n", graph.json()),
            });
        }
        Ok(())
    }
}
