//! The output of an action: the agent keeps its beginning and its end.

use std::collections::VecDeque;

/// The kept output of one attempt.
#[derive(Clone, Debug)]
pub(super) struct KeptOutput {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// A part of the kept output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The position of the first byte in the whole output.
    pub(super) from: u64,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// The size of the whole output, in bytes.
    pub(super) total: u64,
    /// The number of bytes dropped from the middle.
    pub(super) gap: u64,
}

impl KeptOutput {
    /// Creates an empty output that keeps `limit` bytes of the beginning and `limit` bytes of the end.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Adds printed bytes.
    pub(super) fn print(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.limit - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.limit)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.limit);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Returns the size of the whole output, in bytes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the kept output from this byte on: up to the gap, or from the gap's end on.
    pub(super) fn piece(&self, from: u64) -> Piece {
        let head = self.head.len() as u64;
        let tail = self.total - self.tail.len() as u64;
        let from = match from.min(self.total) {
            from if from >= head => from.max(tail),
            from => from,
        };
        let mut bytes = Vec::new();
        if from < head {
            bytes.extend(self.head.iter().skip(index(from)));
            if tail == head {
                bytes.extend(&self.tail);
            }
        } else {
            bytes.extend(self.tail.iter().skip(index(from - tail)));
        }
        Piece {
            from,
            bytes,
            total: self.total,
            gap: tail - head,
        }
    }
}

/// The kept output fits into memory, so an offset fits into `usize`.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    //! Which parts of the output are kept.

    use super::KeptOutput;

    fn piece(output: &KeptOutput, from: u64) -> (u64, String, u64) {
        let piece = output.piece(from);
        (
            piece.from,
            String::from_utf8(piece.bytes).unwrap(),
            piece.gap,
        )
    }

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut output = KeptOutput::new(4);
        output.print(b"ab");
        assert_eq!(piece(&output, 0), (0, "ab".into(), 0));
        output.print(b"cdef");
        assert_eq!(piece(&output, 0), (0, "abcdef".into(), 0));
        assert_eq!(piece(&output, 5), (5, "f".into(), 0));
        output.print(b"ghij");
        assert_eq!(piece(&output, 0), (0, "abcd".into(), 2));
        assert_eq!(piece(&output, 4), (6, "ghij".into(), 2));
        assert_eq!(piece(&output, 5), (6, "ghij".into(), 2));
        assert_eq!(piece(&output, 8), (8, "ij".into(), 2));
        assert_eq!(piece(&output, 99), (10, String::new(), 2));
        output.print(&[b'x'; 1000]);
        assert_eq!(piece(&output, 4), (1006, "xxxx".into(), 1002));
    }
}
