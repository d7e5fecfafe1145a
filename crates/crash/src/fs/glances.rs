//! What power cuts on the way to the cut would have left: copies of the medium at instants of the load, each with what its
//! writers knew then, for judgement when the load has ended.

use super::model::Model;
use super::power_switch::{Glances, Medium};
use crate::draw::sample::log_uniform;
use nandscape_rt::Stream;
use std::cell::RefCell;
use std::rc::Rc;

/// Instants of a load, before the cut, at which it is judged by two cuts each, and the changes before which they come.
const GLANCES: usize = 12;
const GLANCE_CUTS: u32 = 2;
const GLANCE_CHANGES: u64 = 1 << 13;

/// What power cuts on the way would have left, and what was known then.
pub(super) type Glanced = Rc<RefCell<Vec<(Medium, Vec<Model>)>>>;

/// Looks that keep what power cuts would leave.
pub(super) fn glances(
    models: &[Rc<RefCell<Model>>],
    glanced: &Glanced,
    mut rng: Stream,
) -> Glances {
    let mut after: Vec<u64> = (0..GLANCES).map(|_| log_uniform(&mut rng, GLANCE_CHANGES)).collect();
    after.sort_unstable_by(|one, other| other.cmp(one));
    let (models, glanced) = (models.to_vec(), Rc::clone(glanced));
    let look = move |medium: &Medium| {
        for _ in 0..GLANCE_CUTS {
            let name = format!("glance-{}", rng.bits());
            if let Some(left) = medium.after_another_cut(Stream::new(rng.bits(), &name)) {
                let known = models.iter().map(|model| model.borrow().clone()).collect();
                glanced.borrow_mut().push((left, known));
            }
        }
    };
    Glances { after, look: Box::new(look) }
}
