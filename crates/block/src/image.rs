//! A device whose sectors are the bytes of a stream that can be read, written and sought: an image
//! file, or bytes in memory. It answers at once, and nothing is durable but by the stream's own flush.
//!
//! Sectors beyond the stream's end read as zeroes, so a sparse file of any size may begin empty.

use crate::address::{Lba, SECTOR_BYTES, SectorBytes};
use crate::bio::{Bio, Flags, Op};
use crate::caps::DeviceCaps;
use crate::device::{BlockDevice, Completion, Done, Reply, Submit, Token};
use crate::error::BlockError;
use crate::payload::{Payload, SectorData};
use crate::tag::Tag;
use nandscape_rt::Nanos;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// A device over a stream.
pub struct ImageDevice<S> {
    stream: S,
    caps: DeviceCaps,
}

impl<S: Read + Write + Seek> ImageDevice<S> {
    /// A device of this many sectors over a stream, from its beginning on.
    #[must_use]
    pub fn new(stream: S, sectors: u64) -> Self {
        let caps = DeviceCaps { max_sectors: 256, ..DeviceCaps::conventional(sectors) };
        Self { stream, caps }
    }

    /// Gives the stream back.
    #[must_use]
    pub fn into_stream(self) -> S {
        self.stream
    }

    fn serve(&mut self, bio: &Bio) -> Result<Reply, BlockError> {
        bio.check(&self.caps)?;
        if bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH) {
            self.stream
                .flush()
                .map_err(|error| failed(bio.lba, &error, "the image cannot be flushed"))?;
        }
        match bio.op {
            Op::Read => {
                let sectors = (0..bio.sectors).map(|index| self.read(bio.lba.plus(index.into())));
                let sectors: Result<Vec<_>, _> = sectors.collect();
                return Ok(Reply::Data(Payload::collect(sectors?)));
            }
            Op::Write => self.write(bio, |index| bio.payload.sector(index))?,
            Op::Discard => self.write(bio, |_| SectorData::Tag(Tag::ZERO))?,
            Op::Flush => {}
            _ => return Err(BlockError::Unsupported("zones and upcalls")),
        }
        if bio.flags.has(Flags::FUA) {
            self.stream
                .flush()
                .map_err(|error| failed(bio.lba, &error, "the image cannot be flushed"))?;
        }
        Ok(Reply::None)
    }

    fn read(&mut self, lba: Lba) -> Result<SectorData, BlockError> {
        let mut bytes: SectorBytes = [0; SECTOR_BYTES as usize];
        let read = self.seek(lba).and_then(|()| read_up_to(&mut self.stream, &mut bytes));
        read.map_err(|error| failed(lba, &error, "the image cannot be read"))?;
        let zero = bytes == [0; SECTOR_BYTES as usize];
        Ok(if zero { SectorData::Tag(Tag::ZERO) } else { SectorData::Bytes(Arc::new(bytes)) })
    }

    fn write(&mut self, bio: &Bio, data: impl Fn(u32) -> SectorData) -> Result<(), BlockError> {
        for index in 0..bio.sectors {
            let lba = bio.lba.plus(index.into());
            let Some(bytes) = data(index).expand() else {
                return Err(BlockError::Malformed("a write without content"));
            };
            let written = self.seek(lba).and_then(|()| self.stream.write_all(&bytes[..]));
            written.map_err(|error| failed(lba, &error, "the image cannot be written"))?;
        }
        Ok(())
    }

    fn seek(&mut self, lba: Lba) -> io::Result<()> {
        self.stream.seek(SeekFrom::Start(lba.0 * SECTOR_BYTES)).map(drop)
    }
}

/// Fills `bytes` as far as the stream goes.
fn read_up_to(stream: &mut impl Read, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.read(bytes) {
            Ok(0) => break,
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn failed(lba: Lba, error: &io::Error, otherwise: &'static str) -> BlockError {
    let what = match error.kind() {
        ErrorKind::StorageFull => "no space is left for the image",
        ErrorKind::FileTooLarge => "the image's file system has no files so large",
        ErrorKind::PermissionDenied => "the image may not be accessed so",
        _ => otherwise,
    };
    BlockError::Io { lba, what }
}

impl<S: Read + Write + Seek> BlockDevice for ImageDevice<S> {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, _token: Token) -> Submit {
        Submit::Done(Done::new(now, self.serve(&bio)))
    }

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn advance(&mut self, _now: Nanos, _done: &mut Vec<Completion>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn serve(device: &mut ImageDevice<Cursor<Vec<u8>>>, bio: Bio) -> Result<Reply, BlockError> {
        let Submit::Done(done) = device.submit(Nanos::ZERO, bio, Token(0)) else {
            panic!("a bio is answered at once");
        };
        done.result
    }

    /// Sectors are the stream's bytes, and zeroes beyond its end.
    #[test]
    fn sectors_are_bytes_of_the_stream() {
        let mut device = ImageDevice::new(Cursor::new(vec![7; 5_000]), 10);
        let data = |reply| match reply {
            Ok(Reply::Data(payload)) => payload,
            other => panic!("no data: {other:?}"),
        };
        let both = data(serve(&mut device, Bio::read(Lba(0), 3)));
        assert_eq!(*both.sector(0).expand().unwrap(), [7; 4096]);
        let half = both.sector(1).expand().unwrap();
        assert_eq!((half[903], half[904]), (7, 0));
        assert_eq!(both.sector(2), SectorData::Tag(Tag::ZERO));

        serve(&mut device, Bio::write(Lba(2), 1, Payload::Run(Tag::new(5)))).unwrap();
        serve(&mut device, Bio::discard(Lba(0), 1)).unwrap();
        assert_eq!(data(serve(&mut device, Bio::read(Lba(2), 1))), {
            Payload::Sectors(Box::new([SectorData::Tag(Tag::new(5))]))
        });
        let bytes = device.into_stream().into_inner();
        assert_eq!(bytes.len(), 3 * 4096);
        assert!(bytes[..4096].iter().all(|&byte| byte == 0));
        assert_eq!(bytes[2 * 4096..], Tag::new(5).expand()[..]);
    }

    /// What lies beyond the device, and content that was not kept, are refused.
    #[test]
    fn what_cannot_be_served_is_refused() {
        let mut device = ImageDevice::new(Cursor::new(Vec::new()), 10);
        let beyond = serve(&mut device, Bio::read(Lba(10), 1));
        assert!(matches!(beyond, Err(BlockError::OutOfRange { .. })));
        let nothing = serve(&mut device, Bio::write(Lba(0), 1, Payload::None));
        assert!(matches!(nothing, Err(BlockError::Malformed(_))));
    }
}
