//! [`CheckedPart`]: a part of an object with its path, and the checks that many fields share.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::causes::Causes;
use crate::quantity::Quantity;
use crate::{rules, selector};

static REASON: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$").expect("it is valid"));
const NO_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// A part of an object; a missing one is null.
#[derive(Clone)]
pub(super) struct CheckedPart<'v> {
    pub(super) value: &'v Value,
    pub(super) path: String,
}

/// What holds for the value of a field.
pub(super) enum Rule {
    OneOf(&'static [&'static str]),
    /// A subdomain of DNS.
    Subdomain,
    /// The key of a label.
    Key,
    Within(i64, i64),
}

impl<'v> CheckedPart<'v> {
    pub(super) fn root(value: &'v Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// Returns a field; of nested fields, with dots between the names.
    pub(super) fn field(&self, names: &str) -> Self {
        let value = names
            .split('.')
            .fold(self.value, |value, name| &value[name]);
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            value,
            path: format!("{}{dot}{names}", self.path),
        }
    }

    /// Returns all fields at a path in which `[]` stands for the items of a list, e.g. `containers[].name`.
    pub(super) fn all(&self, path: &str) -> Vec<Self> {
        let mut found = vec![self.clone()];
        for (index, names) in path.split("[]").enumerate() {
            if index > 0 {
                found = found.iter().flat_map(Self::items).collect();
            }
            let names = names.trim_start_matches('.');
            if !names.is_empty() {
                found = found.iter().map(|part| part.field(names)).collect();
            }
        }
        found
    }

    /// Checks the fields at these paths, each of which may be missing.
    pub(super) fn follow(&self, rules: &[(&str, Rule)], causes: &mut Causes) {
        for (path, rule) in rules {
            for part in self.all(path).iter().filter(|part| part.is_set()) {
                match rule {
                    Rule::OneOf(supported) => part.supported(supported, causes),
                    Rule::Subdomain => part.dns_subdomain(causes),
                    Rule::Key => rules::check_key(&part.path, part.text(), causes),
                    Rule::Within(first, last) => part.within(*first..=*last, causes),
                }
            }
        }
    }

    /// Returns an entry of a map.
    pub(super) fn key(&self, key: &str) -> Self {
        Self {
            value: &self.value[key],
            path: format!("{}[{key}]", self.path),
        }
    }

    pub(super) fn items(&self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let path = self.path.clone();
        items.iter().enumerate().map(move |(index, value)| Self {
            value,
            path: format!("{path}[{index}]"),
        })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&'v String, &'v Value)> {
        self.value.as_object().into_iter().flatten()
    }

    pub(super) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or(0)
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    pub(super) fn invalid(&self, detail: &str, causes: &mut Causes) {
        causes.invalid(&*self.path, self.value, detail);
    }

    pub(super) fn forbid(&self, detail: &str, causes: &mut Causes) {
        causes.forbidden(&*self.path, detail);
    }

    pub(super) fn require(&self, detail: &str, causes: &mut Causes) {
        if self.is_empty() {
            causes.required(&*self.path, detail);
        }
    }

    /// Checks that a text is one of these.
    pub(super) fn one_of(&self, supported: &[&str], causes: &mut Causes) {
        if self.is_empty() {
            causes.required(&*self.path, "");
        } else {
            self.supported(supported, causes);
        }
    }

    /// Checks that a text is one of these; it may be missing.
    pub(super) fn supported(&self, supported: &[&str], causes: &mut Causes) {
        if self.is_set() && !supported.contains(&self.text()) {
            causes.unsupported(&*self.path, self.value, supported);
        }
    }

    /// Checks that a list is not too long.
    pub(super) fn at_most(&self, limit: usize, causes: &mut Causes) {
        let count = self.items().count();
        if count > limit {
            causes.too_many(&*self.path, count, limit as u64);
        }
    }

    /// Checks a path that a domain precedes, like `acme.io/foo`.
    pub(super) fn domain_path(&self, causes: &mut Causes) {
        let parts = self.text().split_once('/');
        if parts.is_none_or(|(domain, path)| domain.is_empty() || path.is_empty()) {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            self.invalid(detail, causes);
        }
    }

    pub(super) fn not_negative(&self, causes: &mut Causes) {
        if self.number() < 0 {
            self.invalid("must be greater than or equal to 0", causes);
        }
    }

    pub(super) fn within(&self, range: RangeInclusive<i64>, causes: &mut Causes) {
        if self.is_set() && !range.contains(&self.number()) {
            let detail = format!(
                "must be between {} and {}, inclusive",
                range.start(),
                range.end()
            );
            self.invalid(&detail, causes);
        }
    }

    /// Checks the number of a port.
    pub(super) fn port(&self, causes: &mut Causes) {
        self.within(1..=65_535, causes);
    }

    /// Checks the protocol of a port.
    pub(super) fn protocol(&self, causes: &mut Causes) {
        self.one_of(&["SCTP", "TCP", "UDP"], causes);
    }

    /// Checks a name with an optional prefix, like the key of a label, if there is one.
    pub(super) fn optional_key(&self, causes: &mut Causes) {
        if self.is_set() {
            rules::check_key(&self.path, self.text(), causes);
        }
    }

    /// Checks a port, which has a number or a name.
    pub(super) fn port_or_name(&self, causes: &mut Causes) {
        if self.value.is_string() {
            for detail in port_name(self.text()) {
                self.invalid(detail, causes);
            }
        } else {
            self.port(causes);
        }
    }

    pub(super) fn dns_label(&self, causes: &mut Causes) {
        rules::check_dns_label(&self.path, self.text(), causes);
    }

    /// Checks a label of DNS; it may be missing.
    pub(super) fn dns_label_if_set(&self, causes: &mut Causes) {
        if !self.is_empty() {
            self.dns_label(causes);
        }
    }

    pub(super) fn dns_subdomain(&self, causes: &mut Causes) {
        rules::check_dns_subdomain(&self.path, self.text(), causes);
    }

    /// Checks the name of a host that is no address; it may be missing.
    pub(super) fn host_name(&self, causes: &mut Causes) {
        if self.is_empty() {
            return;
        }
        self.dns_subdomain(causes);
        if self.is_ip_address() {
            self.invalid("must be a DNS name, not an IP address", causes);
        }
    }

    /// Checks conditions that have the type that all kinds may share, `metav1.Condition`.
    pub(super) fn conditions(&self, causes: &mut Causes) {
        let mut seen = BTreeSet::new();
        for condition in self.items() {
            let (kind, reason) = (condition.field("type"), condition.field("reason"));
            if !seen.insert(kind.text()) {
                causes.duplicate(&*kind.path, kind.text());
            }
            rules::check_key(&kind.path, kind.text(), causes);
            let status = condition.field("status");
            if !matches!(status.text(), "True" | "False" | "Unknown") {
                let supported = ["False", "True", "Unknown"];
                causes.unsupported(&*status.path, status.text(), &supported);
            }
            let observed = condition.field("observedGeneration");
            if observed.number() < 0 {
                observed.invalid("must be greater than or equal to zero", causes);
            }
            condition.field("lastTransitionTime").require("", causes);
            reason.require("", causes);
            if !reason.is_empty() && !REASON.is_match(reason.text()) {
                reason.invalid(NO_REASON, causes);
            }
            for (text, limit) in [(reason, 1_024), (condition.field("message"), 32_768)] {
                if text.text().len() as u64 > limit {
                    causes.too_long(&*text.path, limit);
                }
            }
        }
    }

    /// Checks a map of labels.
    pub(super) fn labels(&self, causes: &mut Causes) {
        for (key, value) in self.entries() {
            rules::check_key(&self.path, key, causes);
            rules::check_label(&self.path, value.as_str().unwrap_or_default(), causes);
        }
    }

    /// Checks a label selector.
    pub(super) fn label_selector(&self, causes: &mut Causes) {
        self.field("matchLabels").labels(causes);
        for expression in self.field("matchExpressions").items() {
            let (operator, values) = (expression.field("operator"), expression.field("values"));
            match operator.text() {
                "In" | "NotIn" => values.require(
                    "must be specified when `operator` is 'In' or 'NotIn'",
                    causes,
                ),
                "Exists" | "DoesNotExist" if !values.is_empty() => {
                    values.forbid(
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                        causes,
                    );
                }
                "Exists" | "DoesNotExist" => {}
                _ => operator.invalid("not a valid selector operator", causes),
            }
            let key = expression.field("key");
            rules::check_key(&key.path, key.text(), causes);
            for value in values.items() {
                rules::check_label(&value.path, value.text(), causes);
            }
        }
    }

    /// Whether this selector, which may be missing, can be read.
    pub(super) fn is_readable_selector(&self) -> bool {
        self.field("matchExpressions").items().all(|expression| {
            let has_values = !expression.field("values").is_empty();
            match expression.field("operator").text() {
                "In" | "NotIn" => has_values,
                "Exists" | "DoesNotExist" => !has_values,
                _ => false,
            }
        })
    }

    /// Whether this selector selects an object with these labels; a missing one selects nothing.
    pub(super) fn selects(&self, labels: &Value) -> bool {
        self.is_set() && selector::selects(self.value, &json!({ "metadata": { "labels": labels } }))
    }

    /// Checks a number, or a percentage, that is not negative.
    pub(super) fn amount_or_percent(&self, causes: &mut Causes) {
        if !self.value.is_string() {
            self.not_negative(causes);
        } else if percent(self.text()).is_none() {
            self.invalid("a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')", causes);
        }
    }

    pub(super) fn at_most_all(&self, causes: &mut Causes) {
        if percent(self.text()).is_some_and(|percent| percent > 100) {
            self.invalid("must not be greater than 100%", causes);
        }
    }

    /// Returns a number or a percentage as a number.
    pub(super) fn amount(&self) -> i64 {
        percent(self.text()).unwrap_or_else(|| self.number())
    }

    /// Checks a path below a directory; a message names `path`.
    pub(super) fn local_path(&self, path: &str, causes: &mut Causes) {
        if self.text().starts_with('/') {
            causes.invalid(path, self.text(), "must be a relative path");
        }
        if self.text().split('/').any(|step| step == "..") {
            causes.invalid(path, self.text(), "must not contain '..'");
        }
    }

    pub(super) fn is_ip_address(&self) -> bool {
        self.text().parse::<IpAddr>().is_ok()
    }

    pub(super) fn ip_address(&self, causes: &mut Causes) {
        if !self.is_ip_address() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            self.invalid(detail, causes);
        }
    }

    /// Checks that an address can be that of an endpoint.
    pub(super) fn endpoint_ip(&self, causes: &mut Causes) {
        let Ok(address) = self.text().parse::<IpAddr>() else {
            return;
        };
        let (is_near, is_near_group) = match address {
            IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
            IpAddr::V6(ip) => (
                ip.is_unicast_link_local(),
                ip.segments()[0] & 0xff0f == 0xff02,
            ),
        };
        let unspecified = format!("may not be unspecified ({address})");
        for (is_wrong, detail) in [
            (address.is_unspecified(), unspecified.as_str()),
            (
                address.is_loopback(),
                "may not be in the loopback range (127.0.0.0/8, ::1/128)",
            ),
            (
                is_near,
                "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
            ),
            (
                is_near_group,
                "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
            ),
        ] {
            if is_wrong {
                self.invalid(detail, causes);
            }
        }
    }

    /// Whether a quantity has no fraction.
    pub(super) fn is_whole(&self) -> bool {
        !self.text().ends_with(['m', 'u', 'n']) && !self.text().contains('.')
    }

    pub(super) fn quantity(&self) -> Option<i128> {
        Quantity::parse(self.text())
            .ok()
            .map(|quantity| quantity.amount)
    }
}

fn percent(text: &str) -> Option<i64> {
    let digits = text
        .strip_suffix('%')
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Returns what is wrong with the name of a port.
pub(super) fn port_name(name: &str) -> Vec<&'static str> {
    static LETTER: LazyLock<Regex> = LazyLock::new(|| Regex::new("[a-z]").expect("it is valid"));
    static LETTERS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("^[-a-z0-9]+$").expect("it is valid"));
    let wrong = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            !LETTERS.is_match(name),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            !LETTER.is_match(name),
            "must contain at least one letter (a-z)",
        ),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (
            name.starts_with('-') || name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    wrong
        .into_iter()
        .filter_map(|(is_wrong, why)| is_wrong.then_some(why))
        .collect()
}
