//! Sorts the versions of an API.

use std::cmp::Reverse;

/// Returns the sort key of a version: stable versions come first, then betas, then alphas, the newest of each first;
/// all others come last, sorted by name.
pub(crate) fn priority(version: &str) -> impl Ord + use<> {
    let known = read(version);
    let name = known.is_none().then(|| version.to_owned());
    (Reverse(known), name)
}

/// Reads the stability and the numbers of a version (e.g. `(1, 2, 3)` for `v2beta3`).
fn read(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit());
    let (number, rest) = rest.split_at(digits.unwrap_or(rest.len()));
    let major = number.parse().ok()?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    for (name, stability) in [("beta", 1), ("alpha", 0)] {
        if let Some(minor) = rest.strip_prefix(name) {
            let is_number = minor.chars().all(|c| c.is_ascii_digit());
            let minor = minor.parse().ok().filter(|_| is_number)?;
            return Some((stability, major, minor));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn stable_versions_come_first_and_other_names_last() {
        let sorted = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v1beta",
            "v1beta1x",
        ];
        let mut versions = sorted;
        versions.reverse();
        versions.sort_by_key(|version| priority(version));
        assert_eq!(versions, sorted);
    }
}
