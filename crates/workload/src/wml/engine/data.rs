//! Flowops that read and write the content of files.

use super::super::ops::Op;
use super::files::failed;
use super::runner::{Descriptor, FlowopCall, Open, Runner, Step, Stop};
use super::skew::Skew;
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::contract::Io;
use std::rc::Rc;

impl Open {
    /// Refuses direct I/O that is not of whole sectors of the device, as Linux does with `EINVAL`.
    fn check(self, offset: u64, len: u64) -> Step {
        let whole = offset.is_multiple_of(SECTOR_BYTES) && len.is_multiple_of(SECTOR_BYTES);
        if self.io == Io::Buffered || whole {
            return Ok(());
        }
        Err(Stop::Failed(format!(
            "direct I/O of {len} bytes at offset {offset}: with directio, offsets and sizes are multiples \
             of {SECTOR_BYTES}"
        )))
    }
}

impl Runner {
    /// The file that a flowop is about, opened if it is not open; its descriptor, and the bytes that
    /// I/O spreads over.
    async fn set_up(&mut self, doing: FlowopCall<'_>) -> Step<(usize, Open, u64)> {
        let fd = self.descriptor(doing.arguments);
        let Descriptor { file, open } = self.descriptors[fd];
        if let (1.., Some(_), Some((held, _)), Some(named)) =
            (fd, open, file, doing.arguments.fileset)
            && held != named
        {
            let name = |set: usize| &self.shared.workload.filesets[set].name;
            let (held, named) = (name(held), name(named));
            return Err(Stop::Failed(format!("fd {fd} is of fileset {held}, not of {named}")));
        }
        if open.is_none() {
            self.open(doing, fd).await?;
        }
        let Descriptor { file: Some((set, file)), open: Some(open) } = self.descriptors[fd] else {
            return Err(Stop::Failed(format!("fd {fd} is not open")));
        };
        let fileset = &self.shared.workload.filesets[set];
        let writes = doing.op.way() == Some(super::super::ops::Way::Write);
        if (writes && fileset.readonly) || (!writes && fileset.writeonly) {
            let way = if writes { "readonly" } else { "writeonly" };
            return Err(Stop::Failed(format!("fileset {} is {way}", fileset.name)));
        }
        let spread = match self.memories[doing.index].workingset {
            0 => self.shared.sets[set].tree.files[file as usize].bytes,
            bytes => bytes,
        };
        Ok((fd, open, spread))
    }

    /// A random multiple of `iosize` such that `iosize` bytes from there lie within `spread`.
    fn random_offset(&mut self, doing: FlowopCall<'_>, spread: u64, iosize: u64) -> Step<u64> {
        let Some(last) = spread.checked_sub(iosize) else {
            let problem = format!(
                "the file, or its workingset, of {spread} bytes is smaller than iosize={iosize}"
            );
            return Err(Stop::Failed(problem));
        };
        if let Some(theta) = doing.arguments.zipf {
            return Ok(self.skewed_place(doing.index, spread / iosize, theta)? * iosize);
        }
        let offset = if last == 0 { 0 } else { self.rng.below(last) };
        Ok(offset - offset % iosize)
    }

    /// One of so many places, by zipf.
    fn skewed_place(&mut self, index: usize, places: u64, theta: f64) -> Step<u64> {
        let known = self.skews[index].take().filter(|skew| skew.is_over(places));
        let skew = match known {
            Some(skew) => skew,
            None => Skew::new(places, theta, self.shared.seed)
                .map_err(|why| Stop::Failed(why.to_string()))?,
        };
        let place = skew.draw(&mut self.rng);
        self.skews[index] = Some(skew);
        Ok(place)
    }

    fn size_of_io(&mut self, doing: FlowopCall<'_>) -> Step<u64> {
        match doing.arguments.iosize.draw(&mut self.rng) {
            0 => Err(Stop::Failed("its iosize came out as 0".to_owned())),
            iosize => Ok(iosize),
        }
    }

    /// The same for what goes through a whole file; nothing: all at once.
    fn size_of_io_in(&mut self, doing: FlowopCall<'_>) -> Option<u64> {
        Some(doing.arguments.iosize.draw(&mut self.rng)).filter(|iosize| *iosize > 0)
    }

    /// Where the next I/O goes: somewhere, or behind the last one.
    fn offset(&mut self, doing: FlowopCall<'_>, open: Open, spread: u64, iosize: u64) -> Step<u64> {
        if doing.arguments.random {
            self.random_offset(doing, spread, iosize)
        } else {
            Ok(open.position)
        }
    }

    /// Reads a stretch; the bytes that came. Whole pages and the rest of a file that does not end with
    /// one come by themselves, because pages can then stay what they are.
    async fn read_at(&self, open: Open, offset: u64, len: u64) -> Step<u64> {
        let (fs, caller) = (&self.shared.fs, self.caller);
        let size = fs.getattr(caller, open.ino).await.map_err(|error| failed(&error))?.size;
        if offset < size {
            open.check(offset, len)?;
        }
        let end = offset.saturating_add(len).min(size);
        self.enter_to_move(end.saturating_sub(offset), open.io).await;
        let pages = end - end % SECTOR_BYTES;
        let parts = match open.io {
            // Direct I/O is of whole pages, even at the end.
            Io::Direct => [(offset, offset.saturating_add(len)), (end, end)],
            Io::Buffered => [(offset, pages), (pages.max(offset), end)],
        };
        for (from, to) in parts.into_iter().filter(|(from, to)| from < to && *from < end) {
            let data = fs.read(caller, open.ino, from, to - from, open.io).await;
            data.map_err(|error| failed(&error))?;
        }
        Ok(end.saturating_sub(offset))
    }

    async fn write_at(&self, open: Open, offset: u64, len: u64) -> Step {
        open.check(offset, len)?;
        self.enter_to_move(len, open.io).await;
        let shared = &self.shared;
        let stretch = (offset, len);
        let written =
            shared.contents.write(&*shared.fs, self.caller, open.ino, stretch, open.io).await;
        written.map_err(|error| failed(&error))?;
        if open.is_sync { self.make_durable(open.ino).await } else { Ok(()) }
    }

    fn seek(&mut self, fd: usize, position: u64) {
        if let Some(open) = &mut self.descriptors[fd].open {
            open.position = position;
        }
    }

    /// Reads at random, or goes on where the last read ended; at the end, from the beginning.
    pub(super) async fn read(&mut self, doing: FlowopCall<'_>) -> Step {
        let iosize = self.size_of_io(doing)?;
        let (fd, open, spread) = self.set_up(doing).await?;
        let offset = self.offset(doing, open, spread, iosize)?;
        let began = self.now();
        let bytes = self.read_at(open, offset, iosize).await?;
        self.record(doing, began, bytes);
        if !doing.arguments.random {
            self.seek(fd, if bytes == 0 { 0 } else { offset + bytes });
        }
        Ok(())
    }

    pub(super) async fn read_whole(&mut self, doing: FlowopCall<'_>) -> Step {
        let (fd, open, spread) = self.set_up(doing).await?;
        let iosize = match (self.size_of_io_in(doing), open.io) {
            (Some(iosize), _) => iosize,
            (None, Io::Direct) => spread.next_multiple_of(SECTOR_BYTES),
            (None, Io::Buffered) => spread,
        };
        let iosize = iosize.max(1);
        let began = self.now();
        let mut position = 0;
        loop {
            let bytes = self.read_at(open, position, iosize).await?;
            if bytes == 0 {
                break;
            }
            position += bytes;
        }
        self.seek(fd, position);
        self.record(doing, began, position);
        Ok(())
    }

    pub(super) async fn write(&mut self, doing: FlowopCall<'_>) -> Step {
        let iosize = self.size_of_io(doing)?;
        let (fd, open, spread) = self.set_up(doing).await?;
        let offset = self.offset(doing, open, spread, iosize)?;
        let began = self.now();
        self.write_at(open, offset, iosize).await?;
        self.record(doing, began, iosize);
        if !doing.arguments.random {
            self.seek(fd, offset + iosize);
        }
        Ok(())
    }

    /// Writes as many bytes as the file of `srcfd` has, or this one, from where the descriptor is.
    pub(super) async fn write_whole(&mut self, doing: FlowopCall<'_>) -> Step {
        let (fd, open, spread) = self.set_up(doing).await?;
        let srcfd = doing.arguments.srcfd;
        let all = match self.descriptors[srcfd].file {
            Some((set, file)) => self.shared.sets[set].tree.files[file as usize].bytes,
            None if srcfd > 0 => return Err(Stop::Failed(format!("srcfd {srcfd} has no file"))),
            None => spread,
        };
        let iosize = self.size_of_io_in(doing).unwrap_or(all).max(1);
        let began = self.now();
        let mut written = 0;
        while written < all {
            let len = iosize.min(all - written);
            self.write_at(open, open.position + written, len).await?;
            written += len;
        }
        self.seek(fd, open.position + written);
        self.record(doing, began, written);
        Ok(())
    }

    /// Writes behind the end of the file: `iosize` bytes, or at random fewer.
    pub(super) async fn append(&mut self, doing: FlowopCall<'_>) -> Step {
        let mut bytes = self.size_of_io(doing)?;
        if doing.op == Op::Appendfilerand {
            bytes = self.rng.below(bytes);
        }
        if bytes == 0 {
            self.record(doing, self.now(), 0);
            return Ok(());
        }
        let (fd, open, _) = self.set_up(doing).await?;
        let began = self.now();
        let end = self.shared.fs.getattr(self.caller, open.ino).await;
        let end = end.map_err(|error| failed(&error))?.size;
        self.write_at(open, end, bytes).await?;
        self.seek(fd, end + bytes);
        self.record(doing, began, bytes);
        Ok(())
    }

    /// Begins a write at random, which `aiowait` waits for.
    pub(super) async fn write_later(&mut self, doing: FlowopCall<'_>) -> Step {
        let iosize = self.size_of_io(doing)?;
        let (_, open, spread) = self.set_up(doing).await?;
        let offset = self.random_offset(doing, spread, iosize)?;
        open.check(offset, iosize)?;
        let began = self.now();
        self.enter_to_move(iosize, open.io).await;
        let (shared, pending, caller) =
            (Rc::clone(&self.shared), Rc::clone(&self.pending), self.caller);
        pending.outstanding.set(pending.outstanding.get() + 1);
        let task = self.shared.rt.spawn("aiowrite", async move {
            let stretch = (offset, iosize);
            let mut result =
                shared.contents.write(&*shared.fs, caller, open.ino, stretch, open.io).await;
            if open.is_sync && result.is_ok() {
                shared.stats.fsyncs.set(shared.stats.fsyncs.get() + 1);
                result = shared.fs.fsync(caller, open.ino).await;
            }
            if let Err(error) = result {
                pending.failed.set(Some(error));
            }
            pending.outstanding.set(pending.outstanding.get() - 1);
            pending.ended.notify_waiters();
        });
        self.shared.tasks.borrow_mut().retain(|task| !task.is_finished());
        self.shared.tasks.borrow_mut().push(task);
        self.record(doing, began, iosize);
        Ok(())
    }

    /// Waits until half of the writes that were begun have ended, and one at least.
    pub(super) async fn wait_for_writes(&mut self, doing: FlowopCall<'_>) -> Step {
        let began = self.now();
        self.enter().await;
        let left = self.pending.outstanding.get() / 2;
        while self.pending.outstanding.get() > left {
            self.pending.ended.notified().await;
        }
        self.record(doing, began, 0);
        match self.pending.failed.take() {
            Some(error) => Err(failed(&error)),
            None => Ok(()),
        }
    }
}
