//! Doubly linked lists through an array: members are indices, moving one costs no allocation.
//! Several lists may run through the same array if a member is on one of them at a time.

/// No member.
pub(super) const NIL: u32 = u32::MAX;

/// A member's neighbours; also the chain of free members, through `next`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Towards the front.
    pub(super) prev: u32,
    /// Towards the back.
    pub(super) next: u32,
}

/// Links of `len` members that are on no list.
pub(super) fn links(len: u32) -> Box<[Link]> {
    vec![Link { prev: NIL, next: NIL }; len as usize].into_boxed_slice()
}

/// One list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    front: u32,
    back: u32,
    len: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { front: NIL, back: NIL, len: 0 };

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    pub(super) const fn back(&self) -> u32 {
        self.back
    }

    #[inline]
    pub(super) fn push_front(&mut self, links: &mut [Link], member: u32) {
        links[member as usize] = Link { prev: NIL, next: self.front };
        match self.front {
            NIL => self.back = member,
            front => links[front as usize].prev = member,
        }
        self.front = member;
        self.len += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, links: &mut [Link], member: u32) {
        let Link { prev, next } = links[member as usize];
        match prev {
            NIL => self.front = next,
            prev => links[prev as usize].next = next,
        }
        match next {
            NIL => self.back = prev,
            next => links[next as usize].prev = prev,
        }
        self.len -= 1;
    }

    #[inline]
    pub(super) fn move_to_front(&mut self, links: &mut [Link], member: u32) {
        if self.front != member {
            self.remove(links, member);
            self.push_front(links, member);
        }
    }
}

/// Members that hold nothing, last freed first taken.
#[derive(Debug)]
pub(super) struct FreeList {
    first: u32,
    len: u32,
}

impl FreeList {
    /// All members are free; the first is taken first.
    pub(super) fn all(links: &mut [Link]) -> Self {
        let mut free = Self { first: NIL, len: 0 };
        for member in (0..links.len() as u32).rev() {
            free.put(links, member);
        }
        free
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn put(&mut self, links: &mut [Link], member: u32) {
        links[member as usize].next = self.first;
        self.first = member;
        self.len += 1;
    }

    #[inline]
    pub(super) fn take(&mut self, links: &[Link]) -> Option<u32> {
        let member = self.first;
        if member == NIL {
            return None;
        }
        self.first = links[member as usize].next;
        self.len -= 1;
        Some(member)
    }
}
