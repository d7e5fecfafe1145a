//! Several futures in one task: the first of two, both, all, or one with a time limit.
//!
//! Children are polled in the order of the arguments, and again whenever their task is polled. For
//! more than a few futures spawn tasks instead, as a wake of a task polls all of its children, or wait for them
//! [`in_turn`].

use crate::handle::Handle;
use crate::time::Nanos;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use thiserror::Error;

/// Which of two futures ended first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Either<A, B> {
    /// The first, also when both had ended.
    First(A),
    /// The second.
    Second(B),
}

/// Waits for the first of two futures and drops the other.
pub async fn select2<A: Future, B: Future>(a: A, b: B) -> Either<A::Output, B::Output> {
    first_of(pin!(a), pin!(b)).await
}

/// Waits for the first of two futures, leaving the other as it is.
async fn first_of<A: Future, B: Future>(
    mut a: Pin<&mut A>,
    mut b: Pin<&mut B>,
) -> Either<A::Output, B::Output> {
    poll_fn(|cx| match a.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Either::First(output)),
        Poll::Pending => b.as_mut().poll(cx).map(Either::Second),
    })
    .await
}

/// Waits for both.
pub async fn join2<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    match first_of(a.as_mut(), b.as_mut()).await {
        Either::First(output) => (output, b.await),
        Either::Second(output) => (a.await, output),
    }
}

/// Waits for all; outputs in the order of the futures.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Option<Pin<Box<F>>>> =
        futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in running.iter_mut().zip(&mut outputs) {
            if let Some(Poll::Ready(value)) = future.as_mut().map(|f| f.as_mut().poll(cx)) {
                (*future, *output) = (None, Some(value));
            }
        }
        if running.iter().any(Option::is_some) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Waits for futures that are under way, one after the other; outputs in their order. Each is polled when it is the next,
/// so thousands cost no more than their own polls; one that must be polled to get further does not until then.
pub async fn in_turn<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let futures = futures.into_iter();
    let mut outputs = Vec::with_capacity(futures.size_hint().0);
    for future in futures {
        outputs.push(future.await);
    }
    outputs
}

/// The time limit passed first.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("the time limit of {0} passed")]
pub struct Elapsed(pub Nanos);

/// Waits for `future`, at most for `limit`, then drops it. A future that ends at the very limit has
/// made it.
///
/// # Errors
/// [`Elapsed`] when the limit passed first.
pub async fn timeout<F: Future>(
    handle: &Handle,
    limit: Nanos,
    future: F,
) -> Result<F::Output, Elapsed> {
    match select2(future, handle.sleep(limit)).await {
        Either::First(output) => Ok(output),
        Either::Second(()) => Err(Elapsed(limit)),
    }
}
