//! Compares the wire names of states with the names that serde writes.
use std::fmt;

use okt_core::Lifecycle;
use okt_macros::lifecycle_graph;
use serde::Serialize;

macro_rules! spelled {
    ($($case:literal as $name:ident),*) => {
        $(
            #[lifecycle_graph(crate(okt_core))]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
            #[serde(rename_all = $case)]
            enum $name {
                #[entry]
                #[child(HTTPServing)]
                Start,

                #[rest]
                #[child(BeingRemoved)]
                #[was("Serving")]
                HTTPServing,

                #[serde(rename = "OnTheWayOut")]
                #[child(End)]
                BeingRemoved,

                #[leaf(idle)]
                #[serde(alias = "Over")]
                End,
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.serialize(f)
                }
            }
        )*

        #[test]
        fn wire_names_are_those_that_serde_writes() {
            $({
                use $name as Life;
                for state in [Life::Start, Life::HTTPServing, Life::BeingRemoved, Life::End] {
                    assert_eq!(state.name(), state.to_string());
                    assert_eq!(Life::from_name(state.name()), Some(state));
                }
                assert_eq!(Life::from_name("Serving"), Some(Life::HTTPServing));
                assert_eq!(Life::from_name("Over"), None);
            })*
        }
    };
}
spelled!(
    "lowercase" as Lower,
    "UPPERCASE" as Upper,
    "PascalCase" as Pascal,
    "camelCase" as Camel,
    "snake_case" as Snake,
    "SCREAMING_SNAKE_CASE" as Screaming
);
