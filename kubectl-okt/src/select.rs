//! Which objects a command is about: a kind, a name, or both, as kubectl takes them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use clap::Args;
use futures::future::{join_all, ready};
use futures::stream::select_all;
use futures::{Stream, StreamExt};
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use kube::runtime::watcher;
use okt_core::Graph;
use okt_view::{Kind, RequestError, RequestResource, View, plain};

use crate::error::{Error, watch_message};

/// One object.
#[derive(Args)]
pub(crate) struct One {
    /// The object: TYPE NAME, TYPE/NAME, or NAME alone if only one object has it.
    #[arg(required = true, num_args = 1..=2, value_name = "TYPE/NAME")]
    words: Vec<String>,
}

/// The objects of a list.
#[derive(Args)]
pub(crate) struct Many {
    #[command(flatten)]
    pub(crate) scope: KindScope,
    /// Only objects with these labels.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only objects in this state.
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only objects that a person should look at: stalled, in a loop, refused by the API server or by the owner of what
    /// they need, not reported on, or unreadable.
    #[arg(long)]
    problems: bool,
}

/// The kind and the namespaces that a command is about.
#[derive(Args)]
pub(crate) struct KindScope {
    /// Only objects of this type: plural, singular or short name, with or without the group.
    #[arg(value_name = "TYPE")]
    kind: Option<String>,
    /// Objects of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

impl KindScope {
    /// Returns the namespace; none if the command is about all.
    pub(crate) fn namespace<'c>(&self, client: &'c Client) -> Option<&'c str> {
        (!self.all_namespaces).then(|| client.default_namespace())
    }

    /// Returns the kinds of OKT that the command is about; an error if there is none.
    pub(crate) async fn kinds(&self, client: &Client) -> Result<Vec<Kind>, Error> {
        let kinds = Kind::all(client).await?;
        let chosen: Vec<Kind> = self.of(&kinds)?.into_iter().cloned().collect();
        if chosen.is_empty() {
            return Err(Error::Failed(NO_KINDS.to_owned()));
        }
        Ok(chosen)
    }

    fn of<'k>(&self, kinds: &'k [Kind]) -> Result<Vec<&'k Kind>, Error> {
        match &self.kind {
            Some(kind) => called(kinds, kind),
            None => Ok(kinds.iter().collect()),
        }
    }
}

impl One {
    /// Returns the object that one word names: TYPE/NAME or NAME.
    pub(crate) fn named(word: &str) -> Self {
        Self {
            words: vec![word.to_owned()],
        }
    }

    /// Returns the request that the words name: that of a kind of requests, and its name.
    pub(crate) fn request<'k>(
        &self,
        kinds: &'k [Kind],
    ) -> Result<Option<(RequestKind<'k>, &str)>, Error> {
        Ok(match self.split()? {
            (Some(of), name) if called(kinds, of).is_err() => {
                request_kind(kinds, of).ok().map(|kind| (kind, name))
            }
            _ => None,
        })
    }

    /// Reads the object.
    pub(crate) async fn read<'k>(
        &self,
        client: &Client,
        kinds: &'k [Kind],
    ) -> Result<View<'k>, Error> {
        let (kind, name) = self.split()?;
        let kinds = match kind {
            Some(kind) => called(kinds, kind)?,
            None => kinds.iter().collect(),
        };
        let namespace = client.default_namespace();
        let found = join_all(kinds.iter().map(|kind| async move {
            let object = kind.objects(client, Some(namespace)).get_opt(name).await;
            (*kind, object)
        }));
        let mut views = Vec::new();
        let mut failed = None;
        for (kind, object) in found.await {
            match object {
                Ok(Some(object)) => views.push(View::of(kind, object)),
                Ok(None) => {}
                Err(error) => {
                    let is_answer = matches!(&error, kube::Error::Api(status) if [403, 404].contains(&status.code));
                    let what = format!("get {}/{name}", kind.id());
                    let error = RequestError::new(what, &error);
                    // An object of this kind may be the one that is meant.
                    if !is_answer {
                        return Err(error.into());
                    }
                    failed.get_or_insert(error);
                }
            }
        }
        match (views.len(), failed) {
            (1, _) => Ok(views.remove(0)),
            (0, Some(error)) => Err(error.into()),
            (0, None) => Err(Error::Failed(format!(
                "there is no {} {name} in the namespace {namespace}; `kubectl okt list -A` shows all objects",
                kind.unwrap_or("object"),
            ))),
            (_, _) => {
                let ids: Vec<String> = views.iter().map(View::id).collect();
                Err(Error::Failed(format!(
                    "several objects are called {name}; name one: {}",
                    ids.join(", ")
                )))
            }
        }
    }

    /// Returns the kind, if there is one, and the name.
    fn split(&self) -> Result<(Option<&str>, &str), Error> {
        let (kind, name) = match &self.words[..] {
            [kind, name] if !kind.contains('/') && !name.contains('/') => (Some(&**kind), &**name),
            [word] => match word.split_once('/') {
                Some((kind, name)) => (Some(kind), name),
                None => (None, &**word),
            },
            words => {
                return Err(Error::Usage(format!(
                    "`{}` is no object; write TYPE NAME, TYPE/NAME or NAME",
                    words.join(" ")
                )));
            }
        };
        // A name becomes part of a path.
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '%', '?', '#']);
        if !is_name(name) || name == "." || name == ".." {
            return Err(Error::Usage(format!("`{name}` is no name of an object")));
        }
        Ok((kind, name))
    }
}

impl Many {
    /// Reads the objects, and the errors of the kinds that cannot be listed.
    pub(crate) async fn read<'k>(
        &self,
        client: &Client,
        kinds: &'k [Kind],
    ) -> Result<(Vec<View<'k>>, Vec<RequestError>), Error> {
        let kinds = self.scope.of(kinds)?;
        self.check_state(&kinds)?;
        let namespace = self.scope.namespace(client);
        let lists = join_all(kinds.iter().map(|kind| async move {
            (
                *kind,
                list(client, kind, namespace, self.selector.as_deref()).await,
            )
        }));
        let (mut views, mut errors) = (Vec::new(), Vec::new());
        for (kind, list) in lists.await {
            match list {
                Ok(objects) => views.extend(objects.into_iter().map(|it| View::of(kind, it))),
                Err(error) => {
                    errors.push(RequestError::new(format!("list {}", kind.id()), &error));
                }
            }
        }
        views.retain(|view| self.has(view));
        views.sort_by(|a, b| key(a).cmp(&key(b)));
        if views.is_empty()
            && errors.len() == kinds.len()
            && let Some(error) = errors.pop()
        {
            return Err(error.into());
        }
        Ok((views, errors))
    }

    /// Refuses a state that no graph has, where all graphs are known.
    fn check_state(&self, kinds: &[&Kind]) -> Result<(), Error> {
        let Some(state) = &self.state else {
            return Ok(());
        };
        let is_of = |kind: &&Kind| {
            let graph = kind.graph.as_ref();
            graph.map_or(true, |graph| graph.named(state).is_some())
        };
        if kinds.is_empty() || kinds.iter().any(is_of) {
            return Ok(());
        }
        let states: Vec<_> = states_of(kinds).into_iter().collect();
        Err(Error::Usage(format!(
            "no graph has the state `{state}`; there are {}",
            states.join(", ")
        )))
    }

    /// Returns whether options leave objects out.
    pub(crate) fn is_filtered(&self) -> bool {
        self.problems || self.state.is_some() || self.selector.is_some()
    }

    /// Returns whether a list shows the namespaces.
    pub(crate) fn shows_namespaces(&self) -> bool {
        self.scope.all_namespaces
    }

    /// Follows the objects with these labels, of this state or not.
    pub(crate) fn watch<'k>(
        &self,
        client: &Client,
        kinds: &'k [Kind],
    ) -> impl Stream<Item = Result<KindEvent<'k>, Error>> + Unpin {
        let config = labelled(self.selector.as_deref());
        watch(client, kinds, self.scope.namespace(client), config)
    }

    /// Returns whether an object is of the list.
    pub(crate) fn has(&self, view: &View<'_>) -> bool {
        let is_there = self
            .state
            .as_deref()
            .is_none_or(|state| view.state() == Some(state));
        is_there && (!self.problems || view.is_stuck())
    }
}

fn key<'v>(view: &'v View<'_>) -> (Option<&'v str>, &'v str, &'v str) {
    (view.namespace(), &view.kind.resource.plural, view.name())
}

/// Opens a file; `-` is the standard input.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    Ok(if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path)?))
    })
}

/// Lists all objects of a kind with these labels.
pub(crate) async fn list(
    client: &Client,
    kind: &Kind,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<DynamicObject>, kube::Error> {
    let parameters = ListParams {
        label_selector: labels.map(str::to_owned),
        ..ListParams::default()
    };
    kind.list(client, namespace, parameters).await
}

/// Returns the settings of a watch of objects with these labels.
pub(crate) fn labelled(labels: Option<&str>) -> watcher::Config {
    let all = watcher::Config::default();
    labels.map_or(all.clone(), |labels| all.labels(labels))
}

/// What a watch of several kinds finds.
pub(crate) type KindEvent<'k> = (&'k Kind, watcher::Event<DynamicObject>);

/// Watches the objects of kinds; ends with an error that no retry mends, and prints the others.
pub(crate) fn watch<'k>(
    client: &Client,
    kinds: impl IntoIterator<Item = &'k Kind>,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = Result<KindEvent<'k>, Error>> + Unpin {
    watch_with(client, kinds, namespace, config, |warning| {
        eprintln!("warning: {warning}");
    })
}

/// Watches the objects of kinds; ends with an error that no retry mends, and reports the others.
pub(crate) fn watch_with<'k>(
    client: &Client,
    kinds: impl IntoIterator<Item = &'k Kind>,
    namespace: Option<&str>,
    config: watcher::Config,
    report: impl Fn(String) + Clone + Send + 'k,
) -> impl Stream<Item = Result<KindEvent<'k>, Error>> + Unpin {
    select_all(kinds.into_iter().map(move |kind| {
        let watched = kind.events(client, namespace, config.clone());
        let report = report.clone();
        let events = watched.filter_map(move |event| {
            ready(match event {
                Ok(event) => Some(Ok((kind, event))),
                Err(error) => {
                    let lasting = Error::of_watch(&format!("watch {}", kind.id()), &error);
                    if lasting.is_none() {
                        let why = plain(&watch_message(&error));
                        report(format!("{}: {why}; trying again", kind.id()));
                    }
                    lasting.map(Err)
                }
            })
        });
        events.boxed()
    }))
}

/// The objects of the lists that are under way, by kind: an object that a complete list lacks is gone.
#[derive(Default)]
pub(crate) struct OpenLists(HashMap<String, HashSet<String>>);

impl OpenLists {
    pub(crate) fn begin(&mut self, kind: &Kind) {
        self.0.insert(kind.id(), HashSet::new());
    }

    /// Notes an object that may be one of a list. Returns its uid.
    pub(crate) fn note(&mut self, view: &View<'_>) -> String {
        let uid = view.meta.uid.clone().unwrap_or_default();
        if let Some(listed) = self.0.get_mut(&view.kind.id()) {
            listed.insert(uid.clone());
        }
        uid
    }

    /// Ends the list of a kind. Returns whether an object is gone.
    pub(crate) fn end(&mut self, kind: &Kind) -> impl Fn(&str, &View<'_>) -> bool + use<> {
        let id = kind.id();
        let listed = self.0.remove(&id);
        let is_gone = move |uid: &str| listed.as_ref().is_some_and(|it| !it.contains(uid));
        move |uid, view| view.kind.id() == id && is_gone(uid)
    }
}

/// Returns the graph of a kind, which may have no states.
pub(crate) fn known_graph(kind: &Kind) -> Result<&'static Graph<'static>, Error> {
    let unknown =
        |why: &String| Error::Failed(format!("the graph of {} is not known: {why}", kind.id()));
    kind.graph.as_ref().copied().map_err(unknown)
}

/// The error of a command where there is no kind of an OKT operator.
pub(crate) const NO_KINDS: &str =
    "the cluster has no kind of an OKT operator: no CRD has the annotation okt.dev/graph";

/// Returns the names of all states of these kinds, each once.
pub(crate) fn states_of(kinds: &[&Kind]) -> BTreeSet<&'static str> {
    let graphs = kinds.iter().filter_map(|kind| kind.graph());
    let states = graphs.flat_map(|graph| graph.states);
    states.map(|state| state.name).collect()
}

/// Returns the kinds that a user means.
pub(crate) fn called<'k>(kinds: &'k [Kind], name: &str) -> Result<Vec<&'k Kind>, Error> {
    let found: Vec<&Kind> = kinds.iter().filter(|kind| kind.is_called(name)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known: Vec<String> = kinds.iter().map(Kind::id).collect();
    Err(Error::Failed(if request_kind(kinds, name).is_ok() {
        format!(
            "`{name}` is a kind of requests, which have no states; `kubectl okt why {name}/NAME` explains one"
        )
    } else if known.is_empty() {
        NO_KINDS.to_owned()
    } else {
        format!(
            "no OKT operator has the kind `{name}`; there are {}",
            known.join(", ")
        )
    }))
}

/// The kind of the objects that serve requests, and a kind of these requests.
pub(crate) type RequestKind<'k> = (&'k Kind, &'k RequestResource);

/// Returns every kind of requests.
pub(crate) fn request_kinds(kinds: &[Kind]) -> impl Iterator<Item = RequestKind<'_>> {
    let of = |kind| move |request| (kind, request);
    kinds
        .iter()
        .flat_map(move |kind| kind.requests.iter().map(of(kind)))
}

/// Returns the kind of requests that a user means.
pub(crate) fn request_kind<'k>(kinds: &'k [Kind], name: &str) -> Result<RequestKind<'k>, Error> {
    let mut found = request_kinds(kinds).filter(|(_, request)| request.kind.is_called(name));
    let (first, second) = (found.next(), found.next());
    if let (Some(kind), None) = (first, second) {
        return Ok(kind);
    }
    let known: Vec<String> = request_kinds(kinds)
        .filter(|(_, request)| first.is_none() || request.kind.is_called(name))
        .map(|(_, request)| request.kind.id())
        .collect();
    let known_names = known.join(", ");
    Err(Error::Failed(match first {
        Some(_) => format!("several kinds of requests are called `{name}`; name one: {known_names}"),
        None if known.is_empty() => "no OKT operator has a kind of requests: no CRD that you may read has the annotation okt.dev/request-of".to_owned(),
        None => format!("no OKT operator has the kind of requests `{name}`; there are {known_names}"),
    }))
}
