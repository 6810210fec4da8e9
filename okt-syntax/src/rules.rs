//! The pages about the rules: for each code an example, the reason, and the ways to mend it.

use okt_core::check::Rule;

/// Returns the page about a rule, in Markdown.
///
/// ```
/// use okt_core::check::Rule;
///
/// assert!(okt_syntax::rules::page(Rule::DeadEnd).starts_with("# OKT005: "));
/// ```
pub fn page(rule: Rule) -> &'static str {
    match rule {
        Rule::UnknownTarget => include_str!("../rules/okt001.md"),
        Rule::OneEntry => include_str!("../rules/okt002.md"),
        Rule::NoLeaf => include_str!("../rules/okt003.md"),
        Rule::Unreachable => include_str!("../rules/okt004.md"),
        Rule::DeadEnd => include_str!("../rules/okt005.md"),
        Rule::LeafLeads => include_str!("../rules/okt006.md"),
        Rule::Trap => include_str!("../rules/okt007.md"),
        Rule::SameTarget => include_str!("../rules/okt008.md"),
        Rule::Livelock => include_str!("../rules/okt009.md"),
        Rule::SelfEdge => include_str!("../rules/okt010.md"),
        Rule::SameCause => include_str!("../rules/okt011.md"),
        Rule::NoRoute => include_str!("../rules/okt012.md"),
        Rule::FalseNoRoute => include_str!("../rules/okt013.md"),
        Rule::SameName => include_str!("../rules/okt014.md"),
        Rule::Shape => include_str!("../rules/okt015.md"),
        Rule::Condition => include_str!("../rules/okt016.md"),
        Rule::Option => include_str!("../rules/okt017.md"),
        Rule::Exclude => include_str!("../rules/okt018.md"),
        Rule::Pass => include_str!("../rules/okt019.md"),
        Rule::Name => include_str!("../rules/okt020.md"),
        Rule::GatedEnd => include_str!("../rules/okt021.md"),
        Rule::GatedWay => include_str!("../rules/okt022.md"),
        Rule::GatedDeletion => include_str!("../rules/okt023.md"),
        Rule::GatedTrigger => include_str!("../rules/okt024.md"),
        Rule::IdleGate => include_str!("../rules/okt025.md"),
        Rule::CrossedLimits => include_str!("../rules/okt026.md"),
        Rule::EndlessStay => include_str!("../rules/okt027.md"),
        Rule::Arguments => include_str!("../rules/okt028.md"),
    }
}
