//! The functions that rules of Kubernetes 1.36 can call, with their signatures.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::types::{Bindings, Type};

/// Macros that the `cel` crate does not expand.
pub(super) const MACROS: [&str; 4] = [
    "transformList",
    "transformMap",
    "transformMapEntry",
    "sortBy",
];

/// The name of a function and its signatures on each line, or several lines for one function.
///
/// A signature with a dot is a method of the type before it. Type parameters are single letters: `C` has an order, `S`
/// can be summed up, `N` and `M` are numbers, the others are any type.
const SIGNATURES: &str = "
# Operators
_&&_ (bool,bool) bool
_||_ (bool,bool) bool
!_ (bool) bool
@not_strictly_false (bool) bool
_?_:_ (bool,A,A) A
_==_ (A,A) bool
_!=_ (A,A) bool
_<_ (C,C) bool; (N,M) bool
_<=_ (C,C) bool; (N,M) bool
_>_ (C,C) bool; (N,M) bool
_>=_ (C,C) bool; (N,M) bool
_+_ (int,int) int; (uint,uint) uint; (double,double) double; (string,string) string
_+_ (bytes,bytes) bytes; (list<A>,list<A>) list<A>; (duration,duration) duration
_+_ (timestamp,duration) timestamp; (duration,timestamp) timestamp
_-_ (int,int) int; (uint,uint) uint; (double,double) double; (duration,duration) duration
_-_ (timestamp,duration) timestamp; (timestamp,timestamp) duration
_*_ (int,int) int; (uint,uint) uint; (double,double) double
_/_ (int,int) int; (uint,uint) uint; (double,double) double
_%_ (int,int) int; (uint,uint) uint
-_ (int) int; (double) double
@in (A,list<A>) bool; (A,map<A,B>) bool
_[_] (list<A>,int) A; (map<A,B>,A) B; (optional<list<A>>,int) optional<A>
_[_] (optional<map<A,B>>,A) optional<B>
_[?_] (list<A>,int) optional<A>; (map<A,B>,A) optional<B>; (optional<list<A>>,int) optional<A>
_[?_] (optional<map<A,B>>,A) optional<B>
# Functions of the language
bool (bool) bool; (string) bool
bytes (bytes) bytes; (string) bytes
contains string.(string) bool
double (double) double; (int) double; (string) double; (uint) double
duration (duration) duration; (int) duration; (string) duration
dyn (A) dyn
endsWith string.(string) bool
getDate timestamp.() int; timestamp.(string) int
getDayOfMonth timestamp.() int; timestamp.(string) int
getDayOfWeek timestamp.() int; timestamp.(string) int
getDayOfYear timestamp.() int; timestamp.(string) int
getFullYear timestamp.() int; timestamp.(string) int
getHours timestamp.() int; timestamp.(string) int; duration.() int
getMilliseconds timestamp.() int; timestamp.(string) int; duration.() int
getMinutes timestamp.() int; timestamp.(string) int; duration.() int
getMonth timestamp.() int; timestamp.(string) int
getSeconds timestamp.() int; timestamp.(string) int; duration.() int
int (int) int; (double) int; (string) int; (timestamp) int; (uint) int
matches string.(string) bool; (string,string) bool
size (string) int; (bytes) int; (list<A>) int; (map<A,B>) int; string.() int; bytes.() int
size list<A>.() int; map<A,B>.() int
startsWith string.(string) bool
string (string) string; (bool) string; (bytes) string; (double) string; (duration) string
string (int) string; (timestamp) string; (uint) string; (ip) string; (cidr) string
timestamp (timestamp) timestamp; (int) timestamp; (string) timestamp
type (A) type
uint (uint) uint; (double) uint; (int) uint; (string) uint
optional.none () optional<A>
optional.of (A) optional<A>
optional.ofNonZeroValue (A) optional<A>
hasValue optional<A>.() bool
or optional<A>.(optional<A>) optional<A>
orValue optional<A>.(A) A
value optional<A>.() A
unwrapOpt list<optional<A>>.() list<A>
optional.unwrap (list<optional<A>>) list<A>
# Texts
charAt string.(int) string
find string.(string) string
findAll string.(string) list<string>; string.(string,int) list<string>
format string.(list<dyn>) string
indexOf string.(string) int; string.(string,int) int; list<A>.(A) int
join list<string>.() string; list<string>.(string) string
lastIndexOf string.(string) int; string.(string,int) int; list<A>.(A) int
lowerAscii string.() string
replace string.(string,string) string; string.(string,string,int) string
split string.(string) list<string>; string.(string,int) list<string>
strings.quote (string) string
substring string.(int) string; string.(int,int) string
trim string.() string
upperAscii string.() string
# Lists and sets
distinct list<A>.() list<A>
first list<A>.() optional<A>
flatten list<list<A>>.() list<A>; list<dyn>.(int) list<dyn>
isSorted list<C>.() bool
last list<A>.() optional<A>
lists.range (int) list<int>
max list<C>.() C
min list<C>.() C
reverse list<A>.() list<A>
sets.contains (list<A>,list<A>) bool
sets.equivalent (list<A>,list<A>) bool
sets.intersects (list<A>,list<A>) bool
slice list<A>.(int,int) list<A>
sort list<C>.() list<C>
sum list<S>.() S
# Quantities and versions
add quantity.(quantity) quantity; quantity.(int) quantity
asApproximateFloat quantity.() double
asInteger quantity.() int
compareTo quantity.(quantity) int; semver.(semver) int
isGreaterThan quantity.(quantity) bool; semver.(semver) bool
isInteger quantity.() bool
isLessThan quantity.(quantity) bool; semver.(semver) bool
isQuantity (string) bool
isSemver (string) bool; (string,bool) bool
major semver.() int
minor semver.() int
patch semver.() int
quantity (string) quantity
semver (string) semver; (string,bool) semver
sign (quantity) int
sub quantity.(quantity) quantity; quantity.(int) quantity
# Addresses
cidr (string) cidr
containsCIDR cidr.(string) bool; cidr.(cidr) bool
containsIP cidr.(string) bool; cidr.(ip) bool
family ip.() int
getEscapedPath url.() string
getHost url.() string
getHostname url.() string
getPort url.() string
getQuery url.() map<string,list<string>>
getScheme url.() string
ip (string) ip; cidr.() ip
ip.isCanonical (string) bool
isCIDR (string) bool
isGlobalUnicast ip.() bool
isIP (string) bool
isLinkLocalMulticast ip.() bool
isLinkLocalUnicast ip.() bool
isLoopback ip.() bool
isURL (string) bool
isUnspecified ip.() bool
masked cidr.() cidr
prefixLength cidr.() int
url (string) url
# Formats
format.byte () format
format.date () format
format.datetime () format
format.dns1035Label () format
format.dns1035LabelPrefix () format
format.dns1123Label () format
format.dns1123LabelPrefix () format
format.dns1123Subdomain () format
format.dns1123SubdomainPrefix () format
format.labelValue () format
format.named (string) optional<format>
format.qualifiedName () format
format.uri () format
format.uuid () format
validate format.(string) optional<list<string>>
";

thread_local! {
    static LIBRARY: BTreeMap<&'static str, Rc<[Overload]>> = {
        let mut library = BTreeMap::<_, Vec<_>>::new();
        let lines = SIGNATURES.lines().filter(|line| !line.starts_with('#'));
        for (name, signatures) in lines.filter_map(|line| line.split_once(' ')) {
            let overloads = signatures.split("; ").map(Overload::parse);
            library.entry(name).or_default().extend(overloads);
        }
        let library = library.into_iter();
        library.map(|(name, overloads)| (name, overloads.into())).collect()
    };
}

/// Returns the signatures of a function, or `None` if it does not exist.
pub(super) fn overloads(name: &str) -> Option<Rc<[Overload]>> {
    LIBRARY.with(|library| library.get(name).cloned())
}

/// One signature of a function.
pub(super) struct Overload {
    pub(super) is_method: bool,
    /// The parameter types; the type of a method's receiver comes first.
    parameters: Vec<Type>,
    result: Type,
}

impl Overload {
    /// Returns the type of the result for arguments of these types, or `None` if it does not take them.
    pub(super) fn result_for(&self, given: &[&Type]) -> Option<Type> {
        let mut bound = Bindings::new();
        let mut pairs = self.parameters.iter().zip(given);
        let takes = self.parameters.len() == given.len()
            && pairs.all(|(wanted, given)| wanted.takes(given, &mut bound));
        takes.then(|| self.result.fill(&bound))
    }

    fn parse(signature: &str) -> Self {
        let (before, rest) = signature
            .split_once('(')
            .expect("a signature has parentheses");
        let (inner, result) = rest.rsplit_once(')').expect("a signature has parentheses");
        let owner = before.strip_suffix('.');
        let mut depth = 0;
        let sections = inner.split(|c| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            c == ',' && depth == 0
        });
        let pieces = sections.filter(|piece| !piece.is_empty());
        Self {
            is_method: owner.is_some(),
            parameters: owner.into_iter().chain(pieces).map(Type::parse).collect(),
            result: Type::parse(result),
        }
    }
}
