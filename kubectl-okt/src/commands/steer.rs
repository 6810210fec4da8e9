//! `kubectl okt pause`, `resume` and `abandon`: the annotations with which a user controls an operator.

use std::io::{IsTerminal, stdin};

use clap::Args;
use kube::Client;
use kube::api::Patch;
use okt_view::{Kind, RequestError, View};
use okt_wire::keys::{ABANDON_ANNOTATION, PAUSED_ANNOTATION};
use okt_wire::scope::merge_by;
use serde_json::json;

use super::go::MANAGER;
use crate::error::Error;
use crate::output::print;
use crate::select::One;

/// Pause an object: its operator starts nothing new. Its deletion goes on nevertheless.
#[derive(Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    object: One,
}

/// Resume an object that was paused.
#[derive(Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    object: One,
}

/// Give up the application of an object that is being deleted.
///
/// The operator removes its finalizer and does nothing more, so what is left of the application stays for ever.
#[derive(Args)]
pub(crate) struct Abandon {
    #[command(flatten)]
    object: One,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl Pause {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        annotate(client, &view, PAUSED_ANNOTATION, Some("true")).await?;
        print(&format!(
            "{} is paused; `kubectl okt resume {}` ends that\n",
            view.title(),
            view.arguments()
        ));
        Ok(())
    }
}

impl Resume {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        if !view.is_paused() {
            print(&format!("{} is not paused\n", view.title()));
            return Ok(());
        }
        annotate(client, &view, PAUSED_ANNOTATION, None).await?;
        print(&format!("{} goes on\n", view.title()));
        Ok(())
    }
}

impl Abandon {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        if !view.is_deleting() {
            return Err(Error::Refused(format!(
                "{} is not being deleted; only an object that cannot end is abandoned: delete it first",
                view.title()
            )));
        }
        let state = view.state().unwrap_or("no state");
        print(&format!(
            "{} is in {state}. If you abandon it, the object disappears, and its application and the resources that its operator would delete stay.\n",
            view.title()
        ));
        if !self.yes && !confirmed(view.name())? {
            return Err(Error::Refused("nothing was changed".to_owned()));
        }
        annotate(client, &view, ABANDON_ANNOTATION, view.meta.uid.as_deref()).await?;
        print(&format!("{} is abandoned\n", view.title()));
        Ok(())
    }
}

/// Asks the user to type a name.
fn confirmed(name: &str) -> Result<bool, Error> {
    if !stdin().is_terminal() {
        return Err(Error::Refused(
            "nothing was changed: there is no terminal to ask at; --yes does not ask".to_owned(),
        ));
    }
    print(&format!("Type the name of the object to go on ({name}): "));
    let mut line = String::new();
    let read = stdin().read_line(&mut line);
    read.map_err(|error| Error::Failed(format!("cannot read the answer: {error}")))?;
    Ok(line.trim() == name)
}

/// Sets an annotation of an object, or removes it.
async fn annotate(
    client: &Client,
    view: &View<'_>,
    name: &str,
    value: Option<&str>,
) -> Result<(), Error> {
    let patch = json!({ "metadata": { "uid": view.meta.uid, "annotations": { (name): value } } });
    let api = view.kind.objects(client, view.namespace());
    let patched = api
        .patch_metadata(view.name(), &merge_by(MANAGER), &Patch::Merge(&patch))
        .await;
    match patched {
        Ok(_) => Ok(()),
        Err(error) => Err(RequestError::new(format!("annotate {}", view.id()), &error).into()),
    }
}
