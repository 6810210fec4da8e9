//! `kubectl okt limit`: who has the places of limits, and another number of them.

use clap::Args;
use jiff::Timestamp;
use kube::Client;
use okt_view::{LimitView, RequestError, age};

use crate::error::Error;
use crate::output::{TextTable, print};

/// Show who has the places of limits, or set how many there are.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt limit                             all limits
  kubectl okt limit rollout                     this one, with the objects that have its places
  kubectl okt limit rollout zone-a --max 0      stop the roll-out in a zone; who is inside stays there
  kubectl okt limit rollout zone-a --no-max     as the code of the operator says")]
pub(crate) struct ShowLimit {
    /// The limit.
    #[arg(value_name = "LIMIT")]
    limit: Option<String>,
    /// Its group.
    #[arg(value_name = "GROUP", requires = "limit")]
    group: Option<String>,
    /// The kind, if several have a limit of this name (e.g. databases).
    #[arg(long, value_name = "TYPE")]
    kind: Option<String>,
    /// Let this many objects be inside at a time.
    #[arg(long, value_name = "NUMBER", requires = "limit")]
    max: Option<u32>,
    /// Let as many objects be inside as the code of the operator says.
    #[arg(long, requires = "limit", conflicts_with = "max")]
    no_max: bool,
}

impl ShowLimit {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let all = LimitView::all(client)
            .await
            .map_err(|error| RequestError::new("list the leases of limits".to_owned(), &error))?;
        let chosen: Vec<&LimitView> = all.iter().filter(|it| self.is_chosen(it)).collect();
        if self.max.is_some() || self.no_max {
            return self.set(client, &chosen).await;
        }
        if chosen.is_empty() {
            eprintln!("{}", self.none());
            return Ok(());
        }
        let mut table = TextTable::new(&["KIND", "LIMIT", "INSIDE", "OF", "SET BY HAND"]);
        for it in &chosen {
            let number = it
                .number()
                .map_or_else(String::new, |number| number.to_string());
            let by_hand = if it.table.max.is_some() { "yes" } else { "" };
            let inside = it.table.places.len().to_string();
            table.row(&[&*it.key.crd, &it.key.to_string(), &inside, &number, by_hand]);
        }
        print(&table.text());
        if self.limit.is_some() {
            Self::show_places(&chosen);
        }
        Ok(())
    }

    fn is_chosen(&self, limit: &LimitView) -> bool {
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|it| it == own);
        let plural = limit.key.crd.split('.').next().unwrap_or_default();
        is(&self.limit, &limit.key.limit)
            && is(&self.group, &limit.key.group)
            && (is(&self.kind, &limit.key.crd) || is(&self.kind, plural))
    }

    fn show_places(chosen: &[&LimitView]) {
        let now = Timestamp::now();
        let mut table = TextTable::new(&["OBJECT", "LIMIT", "FOR"]);
        for limit in chosen {
            for place in &limit.table.places {
                let time = age(now.duration_since(place.since));
                table.row(&[&*place.object, &limit.key.to_string(), &time]);
            }
        }
        print(&format!("\n{}", table.text()));
    }

    async fn set(&self, client: &Client, chosen: &[&LimitView]) -> Result<(), Error> {
        let title = |it: &LimitView| format!("{} of {}", it.key, it.key.crd);
        let limit = match chosen {
            [] => return Err(Error::Refused(self.none())),
            [limit] => limit,
            several => {
                let titles: Vec<String> = several.iter().map(|it| title(it)).collect();
                let titles = titles.join(", ");
                return Err(Error::Refused(format!("choose one of {titles}")));
            }
        };
        limit
            .set_max(client, self.max)
            .await
            .map_err(|error| RequestError::new(format!("change {}", limit.key), &error))?;
        let says = match self.max {
            Some(max) => format!("at most {max} inside; who is inside stays there"),
            None => "as its operator says".to_owned(),
        };
        print(&format!("{}: {says}\n", title(limit)));
        Ok(())
    }

    fn none(&self) -> String {
        let group = self
            .group
            .as_ref()
            .map_or(String::new(), |it| format!("/{it}"));
        match &self.limit {
            None => "no operator has given out places of a limit yet".to_owned(),
            Some(limit) => {
                format!("no object has asked for a place in a limit `{limit}{group}` yet")
            }
        }
    }
}
