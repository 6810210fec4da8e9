//! Lists the operators and functions of the language itself, including optionals.

use super::signature::Signatures;

pub(super) const OPERATORS: Signatures = &[
    ("_&&_", &["(bool,bool) bool"]),
    ("_||_", &["(bool,bool) bool"]),
    ("!_", &["(bool) bool"]),
    ("@not_strictly_false", &["(bool) bool"]),
    ("_?_:_", &["(bool,A,A) A"]),
    ("_==_", &["(A,A) bool"]),
    ("_!=_", &["(A,A) bool"]),
    ("_<_", &["(C,C) bool", "(N,M) bool"]),
    ("_<=_", &["(C,C) bool", "(N,M) bool"]),
    ("_>_", &["(C,C) bool", "(N,M) bool"]),
    ("_>=_", &["(C,C) bool", "(N,M) bool"]),
    (
        "_+_",
        &[
            "(int,int) int",
            "(uint,uint) uint",
            "(double,double) double",
            "(string,string) string",
            "(bytes,bytes) bytes",
            "(list<A>,list<A>) list<A>",
            "(duration,duration) duration",
            "(timestamp,duration) timestamp",
            "(duration,timestamp) timestamp",
        ],
    ),
    (
        "_-_",
        &[
            "(int,int) int",
            "(uint,uint) uint",
            "(double,double) double",
            "(duration,duration) duration",
            "(timestamp,duration) timestamp",
            "(timestamp,timestamp) duration",
        ],
    ),
    (
        "_*_",
        &[
            "(int,int) int",
            "(uint,uint) uint",
            "(double,double) double",
        ],
    ),
    (
        "_/_",
        &[
            "(int,int) int",
            "(uint,uint) uint",
            "(double,double) double",
        ],
    ),
    ("_%_", &["(int,int) int", "(uint,uint) uint"]),
    ("-_", &["(int) int", "(double) double"]),
    ("@in", &["(A,list<A>) bool", "(A,map<A,B>) bool"]),
    (
        "_[_]",
        &[
            "(list<A>,int) A",
            "(map<A,B>,A) B",
            "(optional<list<A>>,int) optional<A>",
            "(optional<map<A,B>>,A) optional<B>",
        ],
    ),
    (
        "_[?_]",
        &[
            "(list<A>,int) optional<A>",
            "(map<A,B>,A) optional<B>",
            "(optional<list<A>>,int) optional<A>",
            "(optional<map<A,B>>,A) optional<B>",
        ],
    ),
];

pub(super) const STANDARD: Signatures = &[
    ("bool", &["(bool) bool", "(string) bool"]),
    ("bytes", &["(bytes) bytes", "(string) bytes"]),
    ("contains", &["string.(string) bool"]),
    (
        "double",
        &[
            "(double) double",
            "(int) double",
            "(string) double",
            "(uint) double",
        ],
    ),
    (
        "duration",
        &["(duration) duration", "(int) duration", "(string) duration"],
    ),
    ("dyn", &["(A) dyn"]),
    ("endsWith", &["string.(string) bool"]),
    ("getDate", &["timestamp.() int", "timestamp.(string) int"]),
    (
        "getDayOfMonth",
        &["timestamp.() int", "timestamp.(string) int"],
    ),
    (
        "getDayOfWeek",
        &["timestamp.() int", "timestamp.(string) int"],
    ),
    (
        "getDayOfYear",
        &["timestamp.() int", "timestamp.(string) int"],
    ),
    (
        "getFullYear",
        &["timestamp.() int", "timestamp.(string) int"],
    ),
    (
        "getHours",
        &[
            "timestamp.() int",
            "timestamp.(string) int",
            "duration.() int",
        ],
    ),
    (
        "getMilliseconds",
        &[
            "timestamp.() int",
            "timestamp.(string) int",
            "duration.() int",
        ],
    ),
    (
        "getMinutes",
        &[
            "timestamp.() int",
            "timestamp.(string) int",
            "duration.() int",
        ],
    ),
    ("getMonth", &["timestamp.() int", "timestamp.(string) int"]),
    (
        "getSeconds",
        &[
            "timestamp.() int",
            "timestamp.(string) int",
            "duration.() int",
        ],
    ),
    (
        "int",
        &[
            "(int) int",
            "(double) int",
            "(string) int",
            "(timestamp) int",
            "(uint) int",
        ],
    ),
    ("matches", &["string.(string) bool", "(string,string) bool"]),
    (
        "size",
        &[
            "(string) int",
            "(bytes) int",
            "(list<A>) int",
            "(map<A,B>) int",
            "string.() int",
            "bytes.() int",
            "list<A>.() int",
            "map<A,B>.() int",
        ],
    ),
    ("startsWith", &["string.(string) bool"]),
    (
        "string",
        &[
            "(string) string",
            "(bool) string",
            "(bytes) string",
            "(double) string",
            "(duration) string",
            "(int) string",
            "(timestamp) string",
            "(uint) string",
            "(ip) string",
            "(cidr) string",
        ],
    ),
    (
        "timestamp",
        &[
            "(timestamp) timestamp",
            "(int) timestamp",
            "(string) timestamp",
        ],
    ),
    ("type", &["(A) type"]),
    (
        "uint",
        &[
            "(uint) uint",
            "(double) uint",
            "(int) uint",
            "(string) uint",
        ],
    ),
    ("optional.none", &["() optional<A>"]),
    ("optional.of", &["(A) optional<A>"]),
    ("optional.ofNonZeroValue", &["(A) optional<A>"]),
    ("hasValue", &["optional<A>.() bool"]),
    ("or", &["optional<A>.(optional<A>) optional<A>"]),
    ("orValue", &["optional<A>.(A) A"]),
    ("value", &["optional<A>.() A"]),
    ("unwrapOpt", &["list<optional<A>>.() list<A>"]),
    ("optional.unwrap", &["(list<optional<A>>) list<A>"]),
];
