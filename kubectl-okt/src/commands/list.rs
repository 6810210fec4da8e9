//! `kubectl okt list`: where all objects of all OKT operators are.

use std::collections::BTreeMap;

use clap::Args;
use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use kube::runtime::watcher;
use okt_view::{Kind, View, age, way};

use crate::error::Error;
use crate::output::{BAD, BUSY, GOOD, OutputFormat, TextTable, print, print_as, styled};
use crate::select::{KindEvent, Many, NO_KINDS, OpenLists};

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
        if self.watch {
            return self.follow(client).await;
        }
        let kinds = Kind::all(client).await?;
        let (views, errors) = self.objects.read(client, &kinds).await?;
        let rows: Vec<_> = views.iter().map(View::summary).collect();
        print_as(self.output, &rows, views.iter().map(View::id), || {
            if views.is_empty() {
                eprintln!("{}", self.nothing(client, &kinds));
                return String::new();
            }
            let mut table = TextTable::new(&self.titles());
            for view in &views {
                table.row(&self.cells(view));
            }
            table.text()
        })?;
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

    /// The cells of an object that is gone: the last one reports that.
    fn cells_of_deleted(&self, view: &View<'_>) -> Vec<String> {
        let mut cells = self.cells(view);
        cells.pop();
        cells.push("deleted".to_owned());
        cells
    }

    /// Prints the objects, and then a line for each change.
    async fn follow(&self, client: &Client) -> Result<(), Error> {
        if !matches!(self.output, None | Some(OutputFormat::Wide)) {
            return Err(Error::Usage(
                "-w prints a table: leave out -o, or use -o wide".to_owned(),
            ));
        }
        let kinds = self.objects.scope.kinds(client).await?;
        let mut events = self.objects.watch(client, &kinds);
        let mut followed = FollowedList::of(self);
        while let Some(event) = events.next().await {
            if followed.take(event?) {
                print(&followed.table.text());
            }
        }
        Ok(())
    }
}

/// A list that is followed.
struct FollowedList<'l, 'k> {
    list: &'l List,
    /// The lines that are not printed yet.
    table: TextTable,
    /// What each object looked like in its last line, without the time in its state.
    shown: BTreeMap<String, (View<'k>, Vec<String>)>,
    listing: OpenLists,
}

impl<'l, 'k> FollowedList<'l, 'k> {
    fn of(list: &'l List) -> Self {
        Self {
            list,
            table: TextTable::new(&list.titles()),
            shown: BTreeMap::new(),
            listing: OpenLists::default(),
        }
    }

    /// Takes an event. Returns whether the lines are to be printed: those of a list when it is complete.
    fn take(&mut self, (kind, event): KindEvent<'k>) -> bool {
        match event {
            watcher::Event::Init => self.listing.begin(kind),
            watcher::Event::InitApply(object) => self.put(View::of(kind, object)),
            watcher::Event::InitDone => {
                let is_gone = self.listing.end(kind);
                let is_gone = |uid: &String, (view, _): &mut (View<'_>, _)| is_gone(uid, view);
                for (_, (view, _)) in self.shown.extract_if(.., is_gone) {
                    self.table.row(&self.list.cells_of_deleted(&view));
                }
                return true;
            }
            watcher::Event::Apply(object) => {
                self.put(View::of(kind, object));
                return true;
            }
            watcher::Event::Delete(object) => {
                let view = View::of(kind, object);
                let uid = view.meta.uid.clone().unwrap_or_default();
                if self.shown.remove(&uid).is_some() {
                    self.table.row(&self.list.cells_of_deleted(&view));
                    return true;
                }
            }
        }
        false
    }

    fn put(&mut self, view: View<'k>) {
        let uid = self.listing.note(&view);
        if !self.list.objects.has(&view) {
            // When it is of the list again, that is a change.
            self.shown.remove(&uid);
            return;
        }
        // A write that changes no cell is no line; the time in a state always changes.
        let cells = self.list.cells(&view);
        let mut lasting = cells.clone();
        let titles = self.list.titles();
        lasting.remove(titles.iter().position(|it| *it == "FOR").unwrap_or(0));
        let before = self.shown.get(&uid).map(|(_, before)| before);
        if before != Some(&lasting) {
            self.table.row(&cells);
            self.shown.insert(uid, (view, lasting));
        }
    }
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
