//! `flow`: jobs that share an identity issue in proportion to their weights.
//!
//! The rule is fio's (flow.c): a job waits while its share of what all have issued is above its
//! share of the weights. fio asks again and again; here a job that waits is woken when another one
//! of its flow has issued or left. Some job is always below its share, so none waits for ever.

use nandscape_rt::Nanos;

/// Jobs with the same `flow_id`.
#[derive(Clone, Debug)]
struct Flow {
    id: u64,
    /// I/Os of its members, and one.
    issued: u64,
    weight: u64,
    /// Jobs that wait.
    held: Vec<u32>,
}

/// All flows of a run.
#[derive(Clone, Default, Debug)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    /// Jobs that need wait no longer.
    pub(super) woken: Vec<u32>,
}

/// A job's part in a flow.
#[derive(Clone, Debug)]
pub(super) struct Member {
    job: u32,
    id: u64,
    weight: u64,
    issued: u64,
    pub(super) sleep: Nanos,
}

impl Member {
    /// A member that has not joined yet.
    pub(super) const fn new(job: u32, share: crate::fio::FlowShare) -> Self {
        Self { job, id: share.id, weight: share.weight, issued: 0, sleep: share.sleep }
    }
}

impl Flows {
    fn of(&mut self, id: u64) -> &mut Flow {
        let index = self.flows.iter().position(|flow| flow.id == id).unwrap_or_else(|| {
            self.flows.push(Flow { id, issued: 1, weight: 0, held: Vec::new() });
            self.flows.len() - 1
        });
        &mut self.flows[index]
    }

    pub(super) fn join(&mut self, member: &Member) {
        self.of(member.id).weight += member.weight;
    }

    /// The job ended.
    pub(super) fn leave(&mut self, member: &Member) {
        let flow = self.of(member.id);
        flow.weight -= member.weight;
        flow.issued -= member.issued;
        self.wake(member.id);
    }

    /// Whether the job is ahead of the others.
    pub(super) fn is_ahead(&mut self, member: &Member) -> bool {
        let flow = self.of(member.id);
        let share = u128::from(member.issued) * u128::from(flow.weight);
        share > u128::from(member.weight) * u128::from(flow.issued)
    }

    /// The job waits for the others.
    pub(super) fn hold(&mut self, member: &Member) {
        self.of(member.id).held.push(member.job);
    }

    pub(super) fn issued(&mut self, member: &mut Member) {
        member.issued += 1;
        self.of(member.id).issued += 1;
        self.wake(member.id);
    }

    fn wake(&mut self, id: u64) {
        let held = std::mem::take(&mut self.of(id).held);
        self.woken.extend(held);
    }
}
