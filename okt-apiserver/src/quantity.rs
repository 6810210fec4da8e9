//! Quantities (e.g. `500m`, `1Gi`): reads them, compares them, and writes them in the one form that Kubernetes stores.

use std::fmt;

const ONE: i128 = 1_000_000_000;
const WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// An amount with the kind of suffix that it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    /// In billionths.
    pub(crate) amount: i128,
    format: SuffixFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuffixFormat {
    Decimal,
    Binary,
    Exponent,
}

impl Quantity {
    /// Parses a quantity. Parts that are smaller than a billionth are rounded up.
    ///
    /// # Errors
    /// The error of Kubernetes for a text that is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let end = unsigned.find(|letter| !is_number(letter));
        let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // Without a digit it is 0.
        if text.is_empty() || fraction.contains('.') {
            return Err(WRONG.to_owned());
        }
        let letters = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
        let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(WRONG.to_owned());
        }
        let (factor, format) = unit(suffix).ok_or(WRONG_SUFFIX)?;
        let cut = &fraction[..fraction.len().min(18)];
        let digits: i128 = format!("0{whole}{cut}")
            .parse()
            .map_err(|_| WRONG.to_owned())?;
        let scale = 10_i128.pow(u32::try_from(cut.len()).unwrap_or(0));
        // What does not fit is the largest quantity, as in Kubernetes.
        let amount = digits.saturating_mul(factor);
        let amount = amount / scale + i128::from(amount % scale != 0);
        let amount = amount.min(i128::from(i64::MAX).saturating_mul(ONE));
        Ok(Self {
            amount: if text.starts_with('-') {
                -amount
            } else {
                amount
            },
            format,
        })
    }
}

/// Returns the factor of a suffix, in billionths.
fn unit(suffix: &str) -> Option<(i128, SuffixFormat)> {
    if let Some(exponent) = suffix.strip_prefix(['e', 'E'])
        && let Ok(exponent) = exponent.parse::<i32>()
    {
        let power = u32::try_from(exponent.checked_add(9)?).ok()?;
        return Some((10_i128.checked_pow(power)?, SuffixFormat::Exponent));
    }
    let power = |at: usize| u32::try_from(at).ok();
    if let Some(at) = DECIMAL.iter().position(|it| *it == suffix) {
        return Some((1000_i128.pow(power(at)?), SuffixFormat::Decimal));
    }
    let at = BINARY.iter().position(|it| *it == suffix)?;
    Some((
        ONE.checked_mul(1024_i128.pow(power(at)?))?,
        SuffixFormat::Binary,
    ))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut amount = self.amount;
        let is_binary = self.format == SuffixFormat::Binary
            && amount % ONE == 0
            && !(-1023..=1023).contains(&(amount / ONE));
        if is_binary {
            amount /= ONE;
            let mut power = 0;
            while amount % 1024 == 0 && power + 1 < BINARY.len() {
                amount /= 1024;
                power += 1;
            }
            return write!(f, "{amount}{}", BINARY[power]);
        }
        if amount == 0 {
            return f.write_str("0");
        }
        let mut power = 0;
        while amount % 1000 == 0 && power + 1 < DECIMAL.len() {
            amount /= 1000;
            power += 1;
        }
        match self.format {
            SuffixFormat::Exponent if power != 3 => {
                let exponent = 3 * i64::try_from(power).unwrap_or(0) - 9;
                write!(f, "{amount}e{exponent}")
            }
            _ => write!(f, "{amount}{}", DECIMAL[power]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn a_quantity_is_written_as_kubernetes_stores_it() {
        for (given, stored) in [
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("100000", "100k"),
            ("1Gi", "1Gi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1500e-3", "1500e-3"),
            ("9E", "9E"),
            ("-5m", "-5m"),
            (".1n", "1n"),
            ("0", "0"),
            ("+7", "7"),
            ("-", "0"),
            (".", "0"),
            ("Mi", "0"),
        ] {
            let parsed = Quantity::parse(given).expect(given);
            assert_eq!(parsed.to_string(), stored, "{given}");
        }
    }

    #[test]
    fn a_text_that_is_no_quantity_is_refused() {
        for (given, why) in [
            ("", "quantities"),
            ("1.2.3", "quantities"),
            ("x", "quantities"),
            ("1GB", "quantities"),
            ("1 Gi", "quantities"),
            ("1KK", "suffix"),
        ] {
            let error = Quantity::parse(given).expect_err(given);
            assert!(error.contains(why), "{given}: {error}");
        }
    }
}
