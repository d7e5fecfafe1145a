//! Flowops that touch no file: they wait, limit, meet other threads, and end.

use super::super::ops::Op;
use super::runner::{FlowopCall, Runner, Step, Stop};
use nandscape_rt::Nanos;

/// What a round of `hog` takes of a core: it stores a byte.
const HOG: Nanos = Nanos(1);
/// Bytes that an event stands for in `bwlimit`.
const EVENT_BYTES: u64 = 1 << 20;
/// Messages that are kept.
const MESSAGES_MAX: usize = 100;

impl Runner {
    pub(super) async fn pass_time(&mut self, doing: FlowopCall<'_>) -> Step {
        let began = self.now();
        let value = doing.arguments.value.draw(&mut self.rng);
        let shared = &self.shared;
        match doing.op {
            Op::Hog => {
                let cost = Nanos(HOG.0.saturating_mul(value));
                self.work(cost).await;
            }
            Op::Delay => shared.rt.sleep(Nanos(value.saturating_mul(Nanos::from_secs(1).0))).await,
            _ => {
                let mut messages = shared.messages.borrow_mut();
                if messages.len() < MESSAGES_MAX {
                    let text = &doing.arguments.text;
                    messages.push(format!("{}, thread {}: {text}", self.now(), self.id));
                }
                return Ok(());
            }
        }
        self.record(doing, began, 0);
        Ok(())
    }

    /// Waits for other threads, or wakes them.
    pub(super) async fn meet(&mut self, doing: FlowopCall<'_>) -> Step {
        let mut began = self.now();
        let arguments = doing.arguments;
        match doing.op {
            Op::Block => {
                if let Some(gate) = self.gates[doing.index].clone() {
                    gate.notified().await;
                }
            }
            Op::Semblock => {
                let value = arguments.value.draw(&mut self.rng);
                if let Some(semaphore) = self.semaphores[doing.index].clone() {
                    semaphore.block(value).await;
                }
            }
            Op::Sempost => {
                let targets = self.shared.semaphores.get(&arguments.target).cloned();
                for semaphore in targets.unwrap_or_default() {
                    let value = arguments.value.draw(&mut self.rng);
                    semaphore.post(value, arguments.blocking).await;
                }
            }
            _ => {
                let gates = self.shared.gates.get(&arguments.target).cloned();
                for gate in gates.unwrap_or_default() {
                    gate.notify_waiters();
                }
                began = self.now();
            }
        }
        self.record(doing, began, 0);
        Ok(())
    }

    /// Waits for as many events as were consumed since the last time.
    pub(super) async fn limit(&mut self, doing: FlowopCall<'_>) -> Step {
        if !self.shared.events.is_on() {
            return Ok(());
        }
        let began = self.now();
        if doing.op == Op::Eventlimit {
            self.shared.events.take(1).await;
            self.record(doing, began, 0);
            return Ok(());
        }
        let counts = self.watched(doing.arguments.watched);
        let (seen, unit) = match doing.op {
            Op::Bwlimit => (counts.moved_bytes, EVENT_BYTES),
            Op::Iopslimit => (counts.moves, 1),
            _ => (counts.ops, 1),
        };
        let memory = &mut self.memories[doing.index];
        let Some(before) = memory.seen.replace(seen) else { return Ok(()) };
        memory.ahead = memory.ahead.saturating_sub_unsigned(seen - before);
        if memory.ahead < 0 {
            let owed = memory.ahead.unsigned_abs();
            let events = if unit == 1 { owed } else { owed / unit + 1 };
            memory.ahead = memory.ahead.saturating_add_unsigned(events * unit);
            self.shared.events.take(events).await;
        }
        self.record(doing, began, 0);
        Ok(())
    }

    /// Ends the thread when enough was done.
    pub(super) fn finish(&mut self, doing: FlowopCall<'_>) -> Step {
        let counts = self.watched(doing.arguments.watched);
        let wanted = self.memories[doing.index].value;
        let is_done = match doing.op {
            Op::Finishonbytes => counts.bytes > wanted,
            _ => counts.ops >= wanted,
        };
        self.record(doing, self.now(), 0);
        if is_done { Err(Stop::Done) } else { Ok(()) }
    }
}
