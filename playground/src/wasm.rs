//! What the page calls: it puts the bytes of a text, calls a function, and takes the bytes of the answer.
//!
//! One byte for each call, so that no memory is shared and no pointer crosses the border; a text has a few thousand.

#![expect(
    unsafe_code,
    reason = "a name for the page; no other library is linked to this module"
)]

use parking_lot::Mutex;

use crate::{check, play};

static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Adds a byte to the text.
#[unsafe(no_mangle)]
extern "C" fn put(byte: u32) {
    TEXT.lock().extend(u8::try_from(byte));
}

/// Calls [`check`] with the text; returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn run_check() -> u32 {
    answer(check)
}

/// Calls [`play`] with the text; returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn run_play() -> u32 {
    answer(play)
}

/// Returns a byte of the answer; 0 behind its end.
#[unsafe(no_mangle)]
extern "C" fn take(at: u32) -> u32 {
    let answer = ANSWER.lock();
    let byte = usize::try_from(at).ok().and_then(|at| answer.get(at));
    byte.copied().map_or(0, u32::from)
}

fn answer(function: fn(&str) -> String) -> u32 {
    let text = std::mem::take(&mut *TEXT.lock());
    let answer = function(&String::from_utf8_lossy(&text)).into_bytes();
    let length = u32::try_from(answer.len()).unwrap_or(0);
    *ANSWER.lock() = answer;
    length
}
