//! The threads of a Filebench workload as tracks: a slice for each flowop that was done.

use super::{JOBS, Micros, Timeline};
use nandscape_workload::wml::engine::Session;

impl Timeline {
    /// Names the tracks of a workload that has not begun: a group for each thread, a track for each instance.
    pub(crate) fn name_threads(&mut self, session: &Session) {
        let mut named = None;
        for (instance, (thread, name)) in session.instances().enumerate() {
            let (thread, instance) = (thread as u32, instance as u32);
            if named.replace(thread) != Some(thread) {
                self.name_group(JOBS + thread, &format!("threads of {name}"));
            }
            self.name_track(JOBS + thread, instance + 1, &format!("{name} {}", instance + 1));
        }
    }

    /// Writes what was done since the last look.
    pub(crate) fn write_flowops(&mut self, session: &Session) {
        for span in session.take_spans(true) {
            let Some((start, end)) = self.fit(span.start, span.end, 1) else { continue };
            let name = serde_json::Value::from(session.flowop_name(&span));
            let (pid, tid) = (JOBS + span.thread, span.instance + 1);
            let (ts, dur) = (Micros(start), Micros(end - start));
            self.sink.push(format_args!(
                r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"name":{name},"cat":"flowop"}}"#
            ));
        }
    }
}
