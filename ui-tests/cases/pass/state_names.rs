//! States with the names of keywords of every edition, of associated types, of the prelude and of generated items.
#![deny(warnings)]
use okt_core::Lifecycle as _;
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    #[entry]
    #[child(As)]
    First,

    #[child(Break)]
    As,

    #[child(Const)]
    Break,

    #[child(Continue)]
    Const,

    #[child(Else)]
    Continue,

    #[child(Enum)]
    Else,

    #[child(Extern)]
    Enum,

    #[child(False)]
    Extern,

    #[child(Fn)]
    False,

    #[child(For)]
    Fn,

    #[child(If)]
    For,

    #[child(Impl)]
    If,

    #[child(In)]
    Impl,

    #[child(Let)]
    In,

    #[child(Loop)]
    Let,

    #[child(Match)]
    Loop,

    #[child(Mod)]
    Match,

    #[child(Move)]
    Mod,

    #[child(Mut)]
    Move,

    #[child(Pub)]
    Mut,

    #[child(Ref)]
    Pub,

    #[child(Return)]
    Ref,

    #[child(Static)]
    Return,

    #[child(Struct)]
    Static,

    #[child(Trait)]
    Struct,

    #[child(True)]
    Trait,

    #[child(Type)]
    True,

    #[child(Unsafe)]
    Type,

    #[child(Use)]
    Unsafe,

    #[child(Where)]
    Use,

    #[child(While)]
    Where,

    #[child(Async)]
    While,

    #[child(Await)]
    Async,

    #[child(Dyn)]
    Await,

    #[child(Abstract)]
    Dyn,

    #[child(Become)]
    Abstract,

    #[child(Box)]
    Become,

    #[child(Do)]
    Box,

    #[child(Final)]
    Do,

    #[child(Macro)]
    Final,

    #[child(Override)]
    Macro,

    #[child(Priv)]
    Override,

    #[child(Typeof)]
    Priv,

    #[child(Unsized)]
    Typeof,

    #[child(Virtual)]
    Unsized,

    #[child(Yield)]
    Virtual,

    #[child(Try)]
    Yield,

    #[child(Gen)]
    Try,

    #[child(Union)]
    Gen,

    #[child(Raw)]
    Union,

    #[child(Safe)]
    Raw,

    #[child(Auto)]
    Safe,

    #[child(Default)]
    Auto,

    #[child(MacroRules)]
    Default,

    #[child(Error)]
    MacroRules,

    #[child(Context)]
    Error,

    #[child(State)]
    Context,

    #[child(Output)]
    State,

    #[child(Item)]
    Output,

    #[child(Target)]
    Item,

    #[child(Owned)]
    Target,

    #[child(Err)]
    Owned,

    #[child(Key)]
    Err,

    #[child(Value)]
    Key,

    #[child(IntoFuture)]
    Value,

    #[child(Spec)]
    IntoFuture,

    #[child(Extra)]
    Spec,

    #[child(Resource)]
    Extra,

    #[child(Some)]
    Resource,

    #[child(None)]
    Some,

    #[child(Ok)]
    None,

    #[child(Result)]
    Ok,

    #[child(Option)]
    Result,

    #[child(Vec)]
    Option,

    #[child(String)]
    Vec,

    #[child(ToOwned)]
    String,

    #[child(ToString)]
    ToOwned,

    #[child(Clone)]
    ToString,

    #[child(Copy)]
    Clone,

    #[child(Send)]
    Copy,

    #[child(Sync)]
    Send,

    #[child(Sized)]
    Sync,

    #[child(Drop)]
    Sized,

    #[child(FnMut)]
    Drop,

    #[child(FnOnce)]
    FnMut,

    #[child(AsRef)]
    FnOnce,

    #[child(AsMut)]
    AsRef,

    #[child(Into)]
    AsMut,

    #[child(From)]
    Into,

    #[child(Iterator)]
    From,

    #[child(Extend)]
    Iterator,

    #[child(IntoIterator)]
    Extend,

    #[child(Eq)]
    IntoIterator,

    #[child(PartialEq)]
    Eq,

    #[child(Ord)]
    PartialEq,

    #[child(PartialOrd)]
    Ord,

    #[child(TryFrom)]
    PartialOrd,

    #[child(TryInto)]
    TryFrom,

    #[child(FromIterator)]
    TryInto,

    #[child(Future)]
    FromIterator,

    #[child(Debug)]
    Future,

    #[child(Display)]
    Debug,

    #[child(Hash)]
    Display,

    #[child(Dispatch)]
    Hash,

    #[child(PassDispatch)]
    Dispatch,

    #[child(Delegate)]
    PassDispatch,

    #[child(Delegated)]
    Delegate,

    #[child(Id)]
    Delegated,

    #[child(FromId)]
    Id,

    #[child(Name)]
    FromId,

    #[child(FromName)]
    Name,

    #[child(Graph)]
    FromName,

    #[child(Lifecycle)]
    Graph,

    #[child(Successor)]
    Lifecycle,

    #[child(Answer)]
    Successor,

    #[child(Step)]
    Answer,

    #[child(Kind)]
    Step,

    #[child(StateId)]
    Kind,

    #[child(Trigger)]
    StateId,

    #[child(Cause)]
    Trigger,

    #[child(Mark)]
    Cause,

    #[child(Marks)]
    Mark,

    #[child(Declared)]
    Marks,

    #[child(NoRoute)]
    Declared,

    #[child(Conditions)]
    NoRoute,

    #[child(Handler)]
    Conditions,

    #[child(Stretch0)]
    Handler,

    #[child(AfterFirst)]
    Stretch0,

    #[child(NamesHandler)]
    AfterFirst,

    #[child(Names)]
    NamesHandler,

    #[child(Action)]
    Names,

    #[child(Failure)]
    Action,

    #[child(Core)]
    Failure,

    #[child(Std)]
    Core,

    #[child(Okt)]
    Std,

    #[child(Main)]
    Okt,

    #[child(Pending)]
    Main,

    #[child(Map)]
    Pending,

    #[child(Expect)]
    Map,

    #[child(Unwrap)]
    Expect,

    #[child(Last)]
    Unwrap,

    #[leaf]
    Last,
}

fn main() {
    for (_, state) in Names::GRAPH.iter() {
        let read = <Names as okt_core::Lifecycle>::from_name(state.name);
        assert_eq!(read.map(<Names as okt_core::Lifecycle>::name), Some(state.name));
    }
}
