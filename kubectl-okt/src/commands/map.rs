//! `kubectl okt map`: a page in the browser that shows all objects on their graphs, live.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use kube::Client;
use okt_serve::{ListenAddress, ListenAddressError};
use okt_view::Map;

use crate::error::Error;
use crate::output::print;
use crate::select::KindScope;

/// Serve a page that shows all objects on their graphs, live; until interrupted.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt map -A                            all objects
  kubectl okt map databases --address :8090 --token-file token   for other machines")]
pub(crate) struct ServeMap {
    #[command(flatten)]
    scope: KindScope,
    /// Where to listen [default: a free port of this machine]
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    address: Option<ListenAddress>,
    /// The file with the token that the page asks for: needed if other machines reach the address
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

fn address(text: &str) -> Result<ListenAddress, ListenAddressError> {
    text.parse()
}

impl ServeMap {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = self.scope.kinds(client).await?;
        let namespace = self.scope.namespace(client).map(str::to_owned);
        let token = self.token()?;
        let has_token = token.is_some();
        let own = ListenAddress::One(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let map = Map::new(client.clone(), kinds, namespace);
        let served = map.serve(self.address.unwrap_or(own), token).await;
        let (address, served) = served
            .map_err(|error| Error::Failed(format!("{error}; see --address and --token-file")))?;
        let path = if has_token { "?token=…" } else { "" };
        print(&format!(
            "the map is at http://{address}/{path} until this command ends (Ctrl-C)\n"
        ));
        tokio::select! {
            ((), ()) = async { tokio::join!(map.watch(), served) } => Ok(()),
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    }

    fn token(&self) -> Result<Option<String>, Error> {
        let Some(file) = &self.token_file else {
            return Ok(None);
        };
        let read = std::fs::read_to_string(file);
        let text = read
            .map_err(|error| Error::Failed(format!("cannot read {}: {error}", file.display())))?;
        Ok(Some(text.trim().to_owned()))
    }
}
