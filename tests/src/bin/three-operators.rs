//! Three operators in one program, for tests of the process: of a namespaced kind, of a cluster-scoped one, and of a
//! pass. It has an option and a subcommand of its own.

use std::convert::Infallible;
use std::process::ExitCode;

use clap::{Args, Parser};
use okt::{Operator, Program};
use okt_tests::{Charts, Databases, Sites};

/// The options in addition to those of OKT.
#[derive(Args, Clone)]
struct Options {
    /// The greeting that is logged at the start.
    #[arg(long, default_value = "hello")]
    greeting: String,
}

/// Say a word.
#[derive(Parser)]
#[command(name = "echo")]
struct Echo {
    /// The word.
    word: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    Program::with_options::<Options>()
        .with_connected(|client, options| async move {
            okt::tracing::info!("{}", options.greeting);
            Ok::<_, Infallible>(Operator::new(client, Databases::default()).concurrency(4))
        })
        .with(|_| async { Ok::<_, Infallible>(Sites::default()) })
        .with(|_| async { Ok::<_, Infallible>(Charts::default()) })
        .command(|echo: Echo| async move {
            println!("{}", echo.word);
            Ok::<_, Infallible>(())
        })
        .main()
        .await
}
