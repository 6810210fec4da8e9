//! `kubectl okt list`: where all objects of all OKT operators are.

use std::collections::{BTreeMap, HashSet};

use clap::Args;
use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use kube::runtime::watcher;
use okt_view::{Kind, View, age, way};

use crate::error::Error;
use crate::output::{
    BAD, BUSY, GOOD, OutputFormat, TextTable, print, print_lines, print_value, styled,
};
use crate::select::{Many, NO_KINDS, called, watch};

/// Show where all objects of all OKT operators are on their graphs.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt list -A                       all objects
  kubectl okt list databases -l team=shop   some of one kind
  kubectl okt list -A --problems            those that do not get on by themselves
  kubectl okt list -o name | xargs -n 1 kubectl okt why")]
pub(crate) struct List {
    #[command(flatten)]
    objects: Many,
    /// The format of the output.
    #[arg(short, long, value_enum)]
    output: Option<OutputFormat>,
    /// Print a line for each change, until interrupted.
    #[arg(short, long)]
    watch: bool,
}

impl List {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        if self.watch {
            return self.follow(client, &kinds).await;
        }
        let (views, errors) = self.objects.read(client, &kinds).await?;
        let rows = || views.iter().map(View::summary).collect::<Vec<_>>();
        match self.output {
            Some(OutputFormat::Json) => print_value(&rows(), false)?,
            Some(OutputFormat::Yaml) => print_value(&rows(), true)?,
            Some(OutputFormat::Name) => print_lines(views.iter().map(View::id)),
            Some(OutputFormat::Wide) | None if views.is_empty() => {
                eprintln!("{}", self.nothing(client, &kinds));
            }
            Some(OutputFormat::Wide) | None => {
                let mut table = TextTable::new(&self.titles());
                for view in &views {
                    table.row(&self.cells(view));
                }
                print(&table.text());
            }
        }
        for error in &errors {
            eprintln!("warning: {error}");
        }
        Ok(())
    }

    fn nothing(&self, client: &Client, kinds: &[Kind]) -> String {
        if kinds.is_empty() {
            NO_KINDS.to_owned()
        } else if self.objects.is_filtered() {
            "no object is as the options say".to_owned()
        } else if self.objects.shows_namespaces() {
            "no objects".to_owned()
        } else {
            format!(
                "no objects in the namespace {}; -A shows all namespaces",
                client.default_namespace()
            )
        }
    }

    fn is_wide(&self) -> bool {
        self.output == Some(OutputFormat::Wide)
    }

    fn titles(&self) -> Vec<&'static str> {
        let mut titles = Vec::new();
        if self.objects.shows_namespaces() {
            titles.push("NAMESPACE");
        }
        titles.extend(["KIND", "NAME", "STATE", "FOR", "DESIRED", "READY", "REASON"]);
        if self.is_wide() {
            titles.extend(["ROUTE", "ACTION", "TRANSITIONS", "MESSAGE"]);
        }
        titles
    }

    fn cells(&self, view: &View<'_>) -> Vec<String> {
        let now = Timestamp::now();
        let or_none = |text: Option<&str>| text.unwrap_or("<none>").to_owned();
        let mut cells = Vec::new();
        if self.objects.shows_namespaces() {
            cells.push(or_none(view.namespace()));
        }
        let time = view.time_in_state(now).map(age);
        let (ready, reason, message) = view.ready();
        cells.extend([
            view.kind.resource.kind.clone(),
            view.name().to_owned(),
            or_none(view.state()),
            or_none(time.as_deref()),
            or_none(view.pending_visit().or_else(|| view.desired())),
            coloured(view, ready),
            reason.to_owned(),
        ]);
        if self.is_wide() {
            let route = match view.place() {
                Some((graph, _)) => way(graph, view.route()),
                None => String::new(),
            };
            let action = view
                .action()
                .map(|action| format!("{:?}, attempt {}", action.phase, action.attempt));
            let transitions = view.position().map(|position| position.transition);
            cells.extend([
                or_none(Some(route.as_str()).filter(|route| !route.is_empty())),
                or_none(action.as_deref()),
                transitions.unwrap_or_default().to_string(),
                message.to_owned(),
            ]);
        }
        cells
    }

    /// Prints the objects, and then a line for each change.
    async fn follow(&self, client: &Client, kinds: &[Kind]) -> Result<(), Error> {
        if !matches!(self.output, None | Some(OutputFormat::Wide)) {
            return Err(Error::Usage(
                "-w prints a table: leave out -o, or use -o wide".to_owned(),
            ));
        }
        let kinds = match self.objects.kind() {
            Some(name) => called(kinds, name)?,
            None => kinds.iter().collect(),
        };
        if kinds.is_empty() {
            return Err(Error::Failed(NO_KINDS.to_owned()));
        }
        let namespace = (!self.objects.shows_namespaces()).then(|| client.default_namespace());
        let config = self
            .objects
            .selector()
            .map_or_else(watcher::Config::default, |labels| {
                watcher::Config::default().labels(labels)
            });
        let mut events = watch(client, kinds, namespace, &config);
        let titles = self.titles();
        let age = titles.iter().position(|it| *it == "FOR");
        let age = age.unwrap_or_default();
        let mut table = TextTable::new(&titles);
        // What each object looked like in its last line, and what is left of it before a new list is complete.
        let mut shown: BTreeMap<String, (View<'_>, Vec<String>)> = BTreeMap::new();
        let mut listed: BTreeMap<String, HashSet<String>> = BTreeMap::new();
        let gone = |view: &View<'_>| {
            let mut cells = self.cells(view);
            if let Some(reason) = cells.get_mut(titles.len() - 1) {
                "deleted".clone_into(reason);
            }
            cells
        };
        while let Some(event) = events.next().await {
            let (kind, event) = event?;
            let (object, is_complete) = match event {
                watcher::Event::Apply(object) => (object, true),
                // The list is printed when it is complete.
                watcher::Event::InitApply(object) => (object, false),
                watcher::Event::Delete(object) => {
                    let view = View::of(kind, object);
                    if shown.remove(&uid(&view)).is_some() {
                        table.row(&gone(&view));
                        print(&table.text());
                    }
                    continue;
                }
                watcher::Event::Init => {
                    listed.insert(kind.id(), HashSet::new());
                    continue;
                }
                watcher::Event::InitDone => {
                    let listed = listed.remove(&kind.id()).unwrap_or_default();
                    let is_gone = |uid: &String, view: &View<'_>| {
                        view.kind.id() == kind.id() && !listed.contains(uid)
                    };
                    for (_, (view, _)) in shown.extract_if(.., |uid, (view, _)| is_gone(uid, view))
                    {
                        table.row(&gone(&view));
                    }
                    print(&table.text());
                    continue;
                }
            };
            let view = View::of(kind, object);
            let uid = uid(&view);
            if let Some(listed) = listed.get_mut(&kind.id()) {
                listed.insert(uid.clone());
            }
            if !self.objects.has(&view) {
                // When it is of the list again, that is a change.
                shown.remove(&uid);
                continue;
            }
            // A write that changes no cell is no line; the time in a state always changes.
            let cells = self.cells(&view);
            let mut seen = cells.clone();
            seen.remove(age);
            if shown.get(&uid).is_none_or(|(_, before)| *before != seen) {
                shown.insert(uid, (view, seen));
                table.row(&cells);
            }
            if is_complete {
                print(&table.text());
            }
        }
        Ok(())
    }
}

fn uid(view: &View<'_>) -> String {
    view.meta.uid.clone().unwrap_or_default()
}

/// Returns the status of `Ready` in the colour of what a person has to do about it.
pub(crate) fn coloured(view: &View<'_>, ready: &str) -> String {
    let style = match ready {
        "True" => GOOD,
        _ if view.is_stuck() => BAD,
        _ => BUSY,
    };
    styled(style, ready)
}
