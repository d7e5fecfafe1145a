//! Compressed input: gzip (RFC 1952, several members) and zstd (RFC 8878, several frames) are decompressed
//! as a stream, recognised by their first bytes. Other compressions and archives are refused with the
//! command that unpacks them.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// First bytes by which a compression is recognised.
const MAGIC_BYTES: u64 = 16;
/// Where a tar archive has its magic (POSIX.1-1988, ustar).
const TAR_MAGIC_AT: usize = 257;

/// Input of any kind: the code that reads traces is compiled once for all.
pub(super) trait Source: BufRead + fmt::Debug {}

impl<R: BufRead + fmt::Debug> Source for R {}

/// What a file is packed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    Gzip,
    Zstd,
    /// Not unpacked here: what it is called, and the command that unpacks it.
    Refused(&'static str, &'static str),
}

impl Packing {
    /// The packing of a file that begins like `head`.
    fn of(head: &[u8]) -> Option<Self> {
        const KNOWN: [(&[u8], Packing); 8] = [
            (b"\x1f\x8b", Packing::Gzip),
            (b"\x28\xb5\x2f\xfd", Packing::Zstd),
            (b"\xfd7zXZ\0", Packing::Refused("xz-compressed", "xz -dc")),
            (b"BZh", Packing::Refused("bzip2-compressed", "bzip2 -dc")),
            (b"\x04\x22\x4d\x18", Packing::Refused("lz4-compressed", "lz4 -dc")),
            (b"PK\x03\x04", Packing::Refused("a zip archive", "unzip -p")),
            (b"7z\xbc\xaf\x27\x1c", Packing::Refused("a 7z archive", "7z x -so")),
            (b"\x1f\x9d", Packing::Refused("compressed with compress", "gzip -dc")),
        ];
        // A skippable frame, which pzstd begins with: any of sixteen magic numbers.
        let skippable = head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == *b"\x2a\x4d\x18";
        let known = KNOWN.iter().find(|(magic, _)| head.starts_with(magic));
        if skippable { Some(Self::Zstd) } else { known.map(|(_, packing)| *packing) }
    }
}

/// The content of `input`, decompressed if it is compressed, and whether it is.
pub(super) fn decompressed(
    mut input: impl Source + 'static,
) -> Result<(Box<dyn Source>, bool), String> {
    let mut head = Vec::new();
    let read = input.by_ref().take(MAGIC_BYTES).read_to_end(&mut head);
    read.map_err(|error| error.to_string())?;
    if head.is_empty() {
        return Err("the file is empty".to_owned());
    }
    let packing = Packing::of(&head);
    let whole = Cursor::new(head).chain(input);
    Ok(match packing {
        None => (Box::new(whole), false),
        Some(Packing::Gzip) => {
            let inner = MultiGzDecoder::new(whole);
            (Box::new(BufReader::new(Decoder { name: "gzip", inner })), true)
        }
        Some(Packing::Zstd) => {
            let inner = Frames { input: whole, decoder: FrameDecoder::new() };
            (Box::new(BufReader::new(Decoder { name: "zstd", inner })), true)
        }
        Some(Packing::Refused(what, command)) => {
            return Err(format!("the file is {what}: decompress it first ({command})"));
        }
    })
}

/// Refuses an archive by the first bytes of the content.
pub(super) fn check_is_no_archive(head: &[u8]) -> Result<(), String> {
    let magic = head.get(TAR_MAGIC_AT..TAR_MAGIC_AT + 5);
    match magic {
        Some(b"ustar") => {
            Err("the file is a tar archive: extract it first (tar -xf), or pipe a member of it \
                 (tar -xOf)"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// A decoder whose errors say what was being decompressed.
#[derive(Debug)]
struct Decoder<R> {
    name: &'static str,
    inner: R,
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("damaged or truncated {} data: {error}", self.name),
            )
        })
    }
}

/// The content of all zstd frames of a file; skippable frames hold none.
struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
}

impl<R> fmt::Debug for Frames<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(io::Error::other)?;
                continue;
            }
            self.check_sum()?;
            if self.input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.begin_frame()?;
        }
        self.decoder.read(buffer)
    }
}

impl<R: BufRead> Frames<R> {
    /// Compares the checksum of the frame that ended, if it has one.
    fn check_sum(&self) -> io::Result<()> {
        let expected = self.decoder.get_checksum_from_data();
        if expected.is_some() && self.decoder.get_calculated_checksum() != expected {
            return Err(io::Error::other("the checksum does not match"));
        }
        Ok(())
    }

    fn begin_frame(&mut self) -> io::Result<()> {
        match self.decoder.reset(&mut self.input) {
            Ok(()) => Ok(()),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let length = u64::from(length);
                let skipped = io::copy(&mut self.input.by_ref().take(length), &mut io::sink())?;
                let whole = skipped == length;
                whole.then_some(()).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }
}
