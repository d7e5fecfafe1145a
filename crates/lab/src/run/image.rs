//! Raw images of a device: what a host reads of it, sector by sector. An image goes through the FTL
//! both ways, without timing; what it leaves on media is a state like any other.

use super::device::{self, RunFtl};
use super::error::RunError;
use super::prepare::{self, PreparedMedia};
use crate::stack::Stack;
use crate::state::{self, Header, Origin, Preconditioned, State};
use nandscape_block::{Bio, BlockDevice, Lba, Payload, Reply, SECTOR_BYTES, SectorData, Tag};
use nandscape_media::PayloadMode;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Sectors of a bio at most.
const RUN_SECTORS: u32 = 64;

/// What was copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copied {
    /// Sectors of the device.
    pub sectors: u64,
    /// Those among them that are not zeroes.
    pub filled: u64,
    /// What a reader should know about the state.
    pub warnings: Vec<String>,
}

/// Writes what the device of a state holds to `out`, which is left sparse where there are zeroes.
///
/// # Errors
/// A state that does not fit the stack, a device without content, and what `out` answered.
pub fn export_image(
    stack: &Stack,
    state: &Path,
    program: &str,
    out: &mut (impl Write + Seek),
) -> Result<Copied, RunError> {
    must_keep_content(stack)?;
    let (prepared, header) = prepare::from_file(stack, None, state, program)?;
    let PreparedMedia { media, file, warnings, .. } = prepared;
    let mut ftl =
        prepare::mount(stack, device::without_faults(media), header.seed, file.as_deref())?;
    let sectors = ftl.caps().sectors;
    let regions: Vec<_> = ftl.caps().regions().collect();
    let runs = regions.into_iter().flat_map(|region| {
        let end = region.range.end;
        let firsts = region.range.step_by(RUN_SECTORS as usize);
        firsts.map(move |first| (first, (end - first).min(RUN_SECTORS.into()) as u32))
    });
    let mut filled = 0;
    for (first, run) in runs {
        let Reply::Data(payload) = device::serve(&mut ftl, Bio::read(Lba(first), run))? else {
            continue;
        };
        for index in 0..run {
            let sector = payload.sector(index);
            if sector != SectorData::Tag(Tag::ZERO) {
                let bytes =
                    sector.expand().ok_or_else(|| RunError::Failed(NO_CONTENT.to_owned()))?;
                let at = (first + u64::from(index)) * SECTOR_BYTES;
                put(out, at, &bytes[..]).map_err(|error| failed("write", &error))?;
                filled += 1;
            }
        }
    }
    Ok(Copied { sectors, filled, warnings })
}

/// Writes an image, of so many bytes if that is known, to a fresh device, and gives its state.
///
/// # Errors
/// A stack that cannot be built, an image that is larger than the device, and what `image` answered.
pub fn import_image(
    stack: &Stack,
    seed: u64,
    program: &str,
    length: Option<u64>,
    image: &mut impl Read,
) -> Result<(State, Copied), RunError> {
    must_keep_content(stack)?;
    let mut ftl =
        device::format(stack, device::without_faults(prepare::fresh(stack, seed)?), seed)?;
    let sectors = ftl.caps().sectors;
    if length.is_some_and(|bytes| bytes.div_ceil(SECTOR_BYTES) > sectors) {
        return Err(too_large(length, sectors));
    }
    let (mut at, mut filled, mut hash) = (0, 0, Xxh3::new());
    let mut bytes = vec![0; RUN_SECTORS as usize * SECTOR_BYTES as usize];
    loop {
        let read = read_up_to(image, &mut bytes).map_err(|error| failed("read", &error))?;
        if read == 0 {
            break;
        }
        hash.update(&bytes[..read]);
        let run = read.next_multiple_of(SECTOR_BYTES as usize);
        bytes[read..run].fill(0);
        if at + run as u64 / SECTOR_BYTES > sectors {
            return Err(too_large(None, sectors));
        }
        filled += write_filled(&mut ftl, at, &bytes[..run])?;
        at += run as u64 / SECTOR_BYTES;
    }
    device::serve(&mut ftl, Bio::flush())?;
    let text = state::text(stack, seed) + &Origin::Image.line(hash.digest128());
    let done = Preconditioned { fill_sectors: filled, ..Preconditioned::default() };
    let header = Header::new(stack, seed, text, done, program);
    let state = State { header, media: device::power_off(ftl).into_inner() };
    Ok((state, Copied { sectors, filled, warnings: Vec::new() }))
}

fn too_large(length: Option<u64>, sectors: u64) -> RunError {
    let image = length.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
    let device = sectors * SECTOR_BYTES;
    RunError::Job(format!(
        "the image{image} is larger than the device, which has {device} bytes for the host"
    ))
}

const NO_CONTENT: &str = "the device keeps no content";

fn must_keep_content(stack: &Stack) -> Result<(), RunError> {
    match stack.media.payload {
        PayloadMode::None => {
            let why = "keeps no content, so there is no image of it: bytes or tags do";
            Err(stack.error("media.payload", why).into())
        }
        _ => Ok(()),
    }
}

fn failed(what: &str, error: &io::Error) -> RunError {
    RunError::Failed(format!("cannot {what} the image: {error}"))
}

fn put(out: &mut (impl Write + Seek), at: u64, bytes: &[u8]) -> io::Result<()> {
    out.seek(SeekFrom::Start(at))?;
    out.write_all(bytes)
}

/// Fills `bytes` as far as the stream goes.
fn read_up_to(stream: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes the sectors that are not zeroes; how many there were.
fn write_filled(ftl: &mut RunFtl, first: u64, bytes: &[u8]) -> Result<u64, RunError> {
    let mut filled = 0;
    for (lba, sector) in (first..).zip(bytes.chunks_exact(SECTOR_BYTES as usize)) {
        if sector.iter().all(|&byte| byte == 0) {
            continue;
        }
        let payload = Payload::from_bytes(sector);
        let payload = payload.map_err(|_| RunError::Failed("half a sector".to_owned()))?;
        device::serve(ftl, Bio::write(Lba(lba), 1, payload))?;
        filled += 1;
    }
    Ok(filled)
}
