//! What to read ahead of whom: readers that go through a file in order, in windows that double up to a
//! limit (Linux's `mm/readahead.c`).

use std::ops::Range;

/// How each thread has read a file lately; a few at most.
#[derive(Default)]
pub(super) struct Streams(Vec<ReadStream>);

struct ReadStream {
    thread: u16,
    /// The page behind the last read.
    next: u64,
    /// The page behind what was read ahead.
    ahead: u64,
    /// Pages of the last window.
    window: u64,
}

/// Threads whose reading of one file is remembered.
const STREAMS_MAX: usize = 16;

impl Streams {
    /// Notes a read, and says what to read ahead now.
    pub(super) fn note(&mut self, thread: u16, read: &Range<u64>, max: u64) -> Option<Range<u64>> {
        let stream = self.of(thread);
        let sequential = read.start == stream.next;
        stream.next = read.end;
        if !sequential {
            (stream.window, stream.ahead) = (0, read.end);
            return None;
        }
        stream.ahead = stream.ahead.max(read.end);
        if stream.ahead - read.end > stream.window / 2 {
            return None;
        }
        let first = (read.end - read.start).next_power_of_two() * 2;
        stream.window = if stream.window == 0 { first } else { stream.window * 2 }.min(max);
        let start = stream.ahead;
        stream.ahead = start + stream.window;
        Some(start..stream.ahead)
    }

    fn of(&mut self, thread: u16) -> &mut ReadStream {
        let known = self.0.iter().position(|stream| stream.thread == thread);
        let index = known.unwrap_or_else(|| {
            if self.0.len() == STREAMS_MAX {
                self.0.remove(0);
            }
            self.0.push(ReadStream { thread, next: 0, ahead: 0, window: 0 });
            self.0.len() - 1
        });
        &mut self.0[index]
    }
}
