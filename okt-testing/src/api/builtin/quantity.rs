//! Parses quantities (e.g. `500m`, `1Gi`), to compare them.

use serde_json::Value;

/// Returns a quantity in billionths; `None` if it is not one, or too large.
pub(super) fn parse(quantity: &Value) -> Option<i128> {
    let text = match quantity {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let end = text.find(|letter: char| !matches!(letter, '0'..='9' | '.' | '+' | '-'));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let unit = unit(suffix)?;
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    digits.checked_mul(unit)?.checked_div(scale)
}

/// Returns the factor of a suffix, in billionths.
fn unit(suffix: &str) -> Option<i128> {
    const ONE: i128 = 1_000_000_000;
    if let Some(exponent) = suffix.strip_prefix(['e', 'E'])
        && let Ok(exponent) = exponent.parse::<i32>()
    {
        return 10_i128.checked_pow(u32::try_from(exponent.checked_add(9)?).ok()?);
    }
    let power = |letter: &str| "kMGTPE".find(letter).and_then(|at| u32::try_from(at).ok());
    Some(match (suffix, suffix.strip_suffix('i')) {
        ("n", _) => 1,
        ("u", _) => 1_000,
        ("m", _) => 1_000_000,
        ("", _) => ONE,
        ("Ki", _) => ONE * 1024,
        (_, Some(letter)) if letter.len() == 1 => {
            ONE.checked_mul(1024_i128.checked_pow(power(letter)?.checked_add(1)?)?)?
        }
        (letter, None) if letter.len() == 1 => {
            ONE.checked_mul(1000_i128.checked_pow(power(letter)?.checked_add(1)?)?)?
        }
        _ => return None,
    })
}
