//! A graph of some sixty states.
#![deny(warnings, missing_docs)]

use okt_core::Lifecycle;
use okt_macros::lifecycle_graph;

/// A long lifecycle.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// Step 0 of a long life.
    #[entry]
    #[child(Step1)]
    Step0,

    /// Step 1 of a long life.
    #[child(Step2)]
    Step1,

    /// Step 2 of a long life.
    #[child(Step3)]
    Step2,

    /// Step 3 of a long life.
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step4)]
    Step3,

    /// Step 4 of a long life.
    #[rest]
    #[child(Step5)]
    Step4,

    /// Step 5 of a long life.
    #[child(Step6)]
    Step5,

    /// Step 6 of a long life.
    #[child(Step7)]
    Step6,

    /// Step 7 of a long life.
    #[child(Step8)]
    Step7,

    /// Step 8 of a long life.
    #[child(Step9)]
    Step8,

    /// Step 9 of a long life.
    #[rest]
    #[child(Step10)]
    Step9,

    /// Step 10 of a long life.
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step11)]
    Step10,

    /// Step 11 of a long life.
    #[child(Step12)]
    Step11,

    /// Step 12 of a long life.
    #[child(Step13)]
    Step12,

    /// Step 13 of a long life.
    #[child(Step14)]
    Step13,

    /// Step 14 of a long life.
    #[rest]
    #[child(Step15)]
    Step14,

    /// Step 15 of a long life.
    #[child(Step16)]
    Step15,

    /// Step 16 of a long life.
    #[child(Step17)]
    Step16,

    /// Step 17 of a long life.
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step18)]
    Step17,

    /// Step 18 of a long life.
    #[child(Step19)]
    Step18,

    /// Step 19 of a long life.
    #[rest]
    #[child(Step20)]
    Step19,

    /// Step 20 of a long life.
    #[child(Step21)]
    Step20,

    /// Step 21 of a long life.
    #[child(Step22)]
    Step21,

    /// Step 22 of a long life.
    #[child(Step23)]
    Step22,

    /// Step 23 of a long life.
    #[child(Step24)]
    Step23,

    /// Step 24 of a long life.
    #[rest]
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step25)]
    Step24,

    /// Step 25 of a long life.
    #[child(Step26)]
    Step25,

    /// Step 26 of a long life.
    #[child(Step27)]
    Step26,

    /// Step 27 of a long life.
    #[child(Step28)]
    Step27,

    /// Step 28 of a long life.
    #[child(Step29)]
    Step28,

    /// Step 29 of a long life.
    #[rest]
    #[child(Step30)]
    Step29,

    /// Step 30 of a long life.
    #[child(Step31)]
    Step30,

    /// Step 31 of a long life.
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step32)]
    Step31,

    /// Step 32 of a long life.
    #[child(Step33)]
    Step32,

    /// Step 33 of a long life.
    #[child(Step34)]
    Step33,

    /// Step 34 of a long life.
    #[rest]
    #[child(Step35)]
    Step34,

    /// Step 35 of a long life.
    #[child(Step36)]
    Step35,

    /// Step 36 of a long life.
    #[child(Step37)]
    Step36,

    /// Step 37 of a long life.
    #[child(Step38)]
    Step37,

    /// Step 38 of a long life.
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step39)]
    Step38,

    /// Step 39 of a long life.
    #[rest]
    #[child(Step40)]
    Step39,

    /// Step 40 of a long life.
    #[child(Step41)]
    Step40,

    /// Step 41 of a long life.
    #[child(Step42)]
    Step41,

    /// Step 42 of a long life.
    #[child(Step43)]
    Step42,

    /// Step 43 of a long life.
    #[child(Step44)]
    Step43,

    /// Step 44 of a long life.
    #[rest]
    #[child(Step45)]
    Step44,

    /// Step 45 of a long life.
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step46)]
    Step45,

    /// Step 46 of a long life.
    #[child(Step47)]
    Step46,

    /// Step 47 of a long life.
    #[child(Step48)]
    Step47,

    /// Step 48 of a long life.
    #[child(Step49)]
    Step48,

    /// Step 49 of a long life.
    #[rest]
    #[child(Step50)]
    Step49,

    /// Step 50 of a long life.
    #[child(Step51)]
    Step50,

    /// Step 51 of a long life.
    #[child(Step52)]
    Step51,

    /// Step 52 of a long life.
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step53)]
    Step52,

    /// Step 53 of a long life.
    #[child(Step54)]
    Step53,

    /// Step 54 of a long life.
    #[rest]
    #[child(Step55)]
    Step54,

    /// Step 55 of a long life.
    #[child(Step56)]
    Step55,

    /// Step 56 of a long life.
    #[child(Step57)]
    Step56,

    /// Step 57 of a long life.
    #[child(Step58)]
    Step57,

    /// Step 58 of a long life.
    #[child(Step59)]
    Step58,

    /// Step 59 of a long life.
    #[rest]
    #[trigger(Broken, on_error(attempts = 3))]
    #[child(Step4)]
    #[child(Gone)]
    Step59,

    /// A person has to look.
    #[rest(idle)]
    #[child(Step9)]
    Broken,

    /// It is over.
    #[leaf(idle)]
    Gone,
}

fn main() {
    let graph = Long::GRAPH;
    assert_eq!(graph.states.len(), 62);
    let way = |from: Long, to: Long| {
        let hop = |at: &okt_core::StateId| graph.hop(*at, to.id());
        std::iter::successors(Some(from.id()), hop).count() - 1
    };
    assert_eq!(way(Long::Step4, Long::Step59), 55);
    assert_eq!(way(Long::Step59, Long::Step9), 6);
    assert_eq!(way(Long::Broken, Long::Gone), 52);
    assert_eq!(graph.home(), Some(Long::Step4.id()));
}
