//! Almost valid inputs, for the tests of parsers.
//!
//! A test calls [`check`] with a function that makes one input from valid ones and a [`Dice`], and gives it to the
//! parser.
//! The same seed makes the same input.
//!
//! | variable | effect |
//! |---|---|
//! | none | the same seeds each time, for about a second |
//! | `OKT_FUZZ_SEED` | only this seed: a failed test prints it |
//! | `OKT_FUZZ_MINUTES` | new seeds, for this many minutes |

use std::env;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

/// The limit of the CPU time of a parser for one input; other work on the machine does not count.
const LIMIT: Duration = Duration::from_secs(5);

/// Calls `case` with this many seeds, or as the variables set it.
///
/// # Panics
///
/// If `case` panics or takes more than five seconds of CPU time in this thread; the seed is printed.
pub fn check(cases: u64, mut case: impl FnMut(&mut Dice)) {
    let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
    let mut one = |seed: u64| {
        let on_panic = SeedOnPanic(seed);
        let begun = cpu_time();
        case(&mut Dice(seed));
        let took = cpu_time().saturating_sub(begun);
        assert!(took < LIMIT, "it took {took:?}");
        std::mem::forget(on_panic);
    };
    if let Some(seed) = number("OKT_FUZZ_SEED") {
        one(seed);
    } else if let Some(minutes) = number("OKT_FUZZ_MINUTES") {
        // The keys of `RandomState` come from the system's source of randomness.
        let first = RandomState::new().build_hasher().finish();
        let begun = Instant::now();
        let mut seed = first;
        while begun.elapsed() < Duration::from_mins(minutes) {
            one(seed);
            seed = seed.wrapping_add(1);
        }
        println!("{} inputs", seed.wrapping_sub(first));
    } else {
        (0..cases).for_each(one);
    }
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Prints the seed when it is dropped, unless it is forgotten.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        eprintln!("again with OKT_FUZZ_SEED={}", self.0);
    }
}

/// A small random generator (splitmix64): the same seed makes the same input.
#[derive(Debug)]
pub struct Dice(u64);

/// Pieces that some parser gives a meaning to, or that are at a limit of its input.
const PIECES: [&str; 20] = [
    "\0",
    "\n",
    "\r\n",
    " ",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "&a ",
    "*a",
    "- ",
    "\u{feff}",
    "\u{202e}",
    "99999999999999999999",
    "1e999",
    "%00",
];

impl Dice {
    /// Returns a number below `sides`.
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut roll = self.0;
        roll = (roll ^ (roll >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        roll = (roll ^ (roll >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // 31 bits fit everywhere.
        let roll = usize::try_from((roll ^ (roll >> 31)) >> 33).unwrap_or_default();
        roll % sides.max(1)
    }

    /// Returns one of the items.
    ///
    /// # Panics
    ///
    /// If there is no item.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Returns a text with a few changes in its bytes: flipped, cut, doubled, with pieces put in.
    pub fn bytes(&mut self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(text.len() + 1);
            match self.below(6) {
                0 if at < text.len() => text[at] ^= 1 << self.below(8),
                1 => text.truncate(at),
                2 => {
                    let end = (at + self.below(64)).min(text.len());
                    text.drain(at..end);
                }
                3 => {
                    let end = (at + self.below(64)).min(text.len());
                    let piece = text[at..end].repeat(1 + self.below(20));
                    text.splice(at..at, piece);
                }
                _ => {
                    let times = if self.below(8) == 0 {
                        self.below(3000)
                    } else {
                        1
                    };
                    let piece = self.pick(&PIECES).repeat(times);
                    text.splice(at..at, piece.into_bytes());
                }
            }
        }
        text
    }

    /// Returns a JSON text that is nearly this value: with other types, ends of ranges, deep nesting, long texts,
    /// fields lost, doubled and renamed; sometimes no JSON at all.
    pub fn json(&mut self, value: &Value) -> Vec<u8> {
        let mut value = value.clone();
        for _ in 0..self.below(4) {
            let new = self.value();
            self.change(&mut value, new);
        }
        let mut text = value.to_string();
        if self.below(4) == 0
            && let Some(fields) = value.as_object()
            && let Some(name) = fields.keys().nth(self.below(fields.len()))
        {
            // The same field twice.
            let twice = format!("{{\"{name}\":{},", self.value());
            text.replace_range(..1, &twice);
        }
        if self.below(4) == 0 {
            return self.bytes(text.as_bytes());
        }
        text.into_bytes()
    }

    /// Puts a value somewhere into another one, or removes or renames a field.
    fn change(&mut self, value: &mut Value, new: Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() && self.below(6) > 0 => {
                let at = self.below(fields.len());
                let Some(name) = fields.keys().nth(at).cloned() else {
                    return;
                };
                match self.below(8) {
                    0 => drop(fields.remove(&name)),
                    1 => {
                        let lost = fields.remove(&name).unwrap_or_default();
                        fields.insert(name + "x", lost);
                    }
                    _ => self.change(&mut fields[&name], new),
                }
            }
            Value::Array(items) if !items.is_empty() && self.below(6) > 0 => {
                let at = self.below(items.len());
                self.change(&mut items[at], new);
            }
            value => *value = new,
        }
    }

    /// Returns an unexpected value.
    fn value(&mut self) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => true.into(),
            2 => 0.into(),
            3 => (-1).into(),
            4 => u64::MAX.into(),
            5 => i64::MIN.into(),
            6 => 1e300.into(),
            7 => String::new().into(),
            8 => {
                let times = 1 << self.below(16);
                self.pick(&PIECES).repeat(times).into()
            }
            9 => {
                let mut deep = Value::Null;
                for _ in 0..self.below(100) {
                    deep = match self.below(2) {
                        0 => Value::Array(vec![deep]),
                        _ => Value::Object(Map::from_iter([("a".to_owned(), deep)])),
                    };
                }
                deep
            }
            10 => {
                let many = self.below(2000);
                (0..many).collect::<Vec<_>>().into()
            }
            _ => {
                let mut time = String::new();
                let (year, zone) = (self.below(20_000), self.pick(&["Z", "+99:00", "", "[UTC]"]));
                let _ = write!(time, "{year:04}-02-3{}T25:61:61{zone}", self.below(10));
                time.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_seed_makes_the_same_input_and_another_seed_another() {
        let value = json!({ "a": [1, { "b": "c" }], "d": null });
        let made = |seed| (Dice(seed).json(&value), Dice(seed).bytes(b"abc"));
        assert_eq!(made(7), made(7));
        let all: std::collections::BTreeSet<_> = (0..100).map(made).collect();
        assert!(all.len() > 80, "{}", all.len());
    }
}
