//! The name of an image.

/// The parts of the name of an image.
pub(crate) struct ImageName<'a> {
    pub(crate) repository: &'a str,
    pub(crate) tag: &'a str,
    pub(crate) digest: &'a str,
}

impl<'a> ImageName<'a> {
    pub(crate) fn of(image: &'a str) -> Self {
        let (image, digest) = image.split_once('@').unwrap_or((image, ""));
        // A colon before a slash is that of a port.
        let (repository, tag) = match image.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (image, ""),
        };
        Self {
            repository,
            tag,
            digest,
        }
    }

    /// Returns what tells this image from others of its repository.
    pub(crate) fn named(&self) -> &'a str {
        let names = [self.tag, self.digest];
        let named = names.into_iter().find(|name| !name.is_empty());
        named.unwrap_or("latest")
    }

    /// Returns the version of what installs it: its tag if that is a version, or looks like the beginning of one.
    pub(crate) fn version(&self) -> String {
        let tag = self.tag.strip_prefix('v').unwrap_or(self.tag);
        let (numbers, rest) = match tag.find(['-', '+']) {
            Some(end) => tag.split_at(end),
            None => (tag, ""),
        };
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|it| it.parse().ok()).collect();
        let (pre, build) = rest.split_once('+').unwrap_or((rest, "0"));
        let is_rest = (pre.is_empty() || pre.strip_prefix('-').is_some_and(are_identifiers(true)))
            && are_identifiers(false)(build);
        match numbers.as_deref() {
            Some([major]) if is_rest => format!("{major}.0.0{rest}"),
            Some([major, minor]) if is_rest => format!("{major}.{minor}.0{rest}"),
            Some([major, minor, patch]) if is_rest => format!("{major}.{minor}.{patch}{rest}"),
            _ => "0.1.0".to_owned(),
        }
    }
}

/// Returns what tells whether a text is identifiers as in <https://semver.org>: those of a pre-release have no number with
/// a zero first.
fn are_identifiers(of_pre_release: bool) -> impl Fn(&str) -> bool {
    move |text| {
        text.split('.').all(|word| {
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
            let is_padded = is_number && word.len() > 1 && word.starts_with('0');
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !(of_pre_release && is_padded)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ImageName;

    #[test]
    fn an_image_has_a_repository_a_tag_and_a_digest() {
        for (text, repository, tag, digest) in [
            ("a", "a", "", ""),
            ("a:1", "a", "1", ""),
            ("host:5000/a", "host:5000/a", "", ""),
            ("host:5000/a:1", "host:5000/a", "1", ""),
            ("a@sha256:12", "a", "", "sha256:12"),
            ("host:5000/a:1@sha256:12", "host:5000/a", "1", "sha256:12"),
        ] {
            let image = ImageName::of(text);
            assert_eq!(
                (image.repository, image.tag, image.digest),
                (repository, tag, digest)
            );
        }
    }

    #[test]
    fn the_version_of_what_installs_an_image_is_its_tag() {
        for (image, wanted) in [
            ("a", "0.1.0"),
            ("a:latest", "0.1.0"),
            ("a:1", "1.0.0"),
            ("a:v1.2", "1.2.0"),
            ("a:1.2.3-rc.1", "1.2.3-rc.1"),
            ("a:1.2.3.4", "0.1.0"),
            ("a:2026.11.30-01", "0.1.0"),
            ("a:1.2.3-", "0.1.0"),
            ("a:1.2.3-a..b", "0.1.0"),
            ("a:1.2.3-0.a-1+01", "1.2.3-0.a-1+01"),
            ("a:1.2.3+", "0.1.0"),
            ("a:1..3", "0.1.0"),
            ("a:1.2.3-a_b", "0.1.0"),
            ("host:5000/a", "0.1.0"),
        ] {
            assert_eq!(ImageName::of(image).version(), wanted, "{image}");
        }
    }
}
