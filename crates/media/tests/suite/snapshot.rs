//! A saved device, restored: the optional columns come back with it, and count the same memory.

use crate::common;

use common::{SMALL, chunk, ppa};
use nandscape_media::{Kind, Media, MediaConfig, OpenChannel, SnapshotError, WriteCmd};
use nandscape_rt::Nanos;

/// A device with one unit of each kind: neither column, its own sequences, auxiliary values, both; as
/// far as asked for.
fn device(seqs: bool, aux: bool) -> Media {
    let mut media = Media::new(MediaConfig::new(SMALL)).expect("valid config");
    let deltas = [0, 5, 6, 9, 100, 101, 102, u32::MAX];
    let values = [7, 0, u32::MAX, 3, 4, 5, 6, 1];
    for (unit, (with_seqs, with_aux)) in
        [(false, false), (seqs, false), (false, aux), (seqs, aux)].into_iter().enumerate()
    {
        let at = ppa(&media, chunk(unit as u32, 1), 0);
        let cmd = WriteCmd {
            at,
            kind: Kind::Data,
            seq: 1_000 * unit as u64,
            seq_deltas: if with_seqs { &deltas } else { &[] },
            aux: if with_aux { &values } else { &[] },
            keys: &[1, 2, 3, 4, 5, 6, 7, 8],
            data: &[],
        };
        media.write(Nanos::ZERO, Nanos::ZERO, cmd).expect("legal write");
    }
    media
}

#[test]
fn optional_columns_come_back() {
    for (seqs, aux) in [(false, false), (true, false), (false, true), (true, true)] {
        let saved = device(seqs, aux);
        let mut bytes = Vec::new();
        saved.save(&mut bytes).expect("saved");
        let mut restored = Media::new(MediaConfig::new(SMALL)).expect("valid config");
        restored.restore(bytes.as_slice(), 0).expect("restored");
        for unit in 0..4 {
            for sector in 0..8 {
                let at = ppa(&saved, chunk(unit, 1), sector);
                assert_eq!(restored.oob(at), saved.oob(at), "{seqs} {aux} unit {unit} {sector}");
            }
        }
        assert_eq!(restored.memory_bytes(), saved.memory_bytes(), "{seqs} {aux}");
        assert_eq!(restored.oob(ppa(&saved, chunk(3, 1), 2)).aux, if aux { u32::MAX } else { 0 });
    }
}

/// A device with a column that this one does not know is refused, not restored without it.
#[test]
fn unknown_columns_are_refused() {
    let mut content = Vec::new();
    device(true, true).write_content(&mut content).expect("written");
    assert_eq!(content[0], 3);
    content[0] = 4;
    let stored = lz4_flex::block::compress(&content);
    let mut frame = Vec::new();
    let head = [content.len() as u32, stored.len() as u32].map(u32::to_le_bytes).concat();
    frame.extend_from_slice(&head);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &stored);
    frame.extend_from_slice(&crc.to_le_bytes());
    frame.extend_from_slice(&stored);
    let mut media = Media::new(MediaConfig::new(SMALL)).expect("valid config");
    let refused = media.restore(frame.as_slice(), 0).unwrap_err();
    assert!(matches!(refused, SnapshotError::Damaged { at: 0, .. }), "{refused:?}");
    assert!(refused.to_string().contains("columns of an unknown kind"), "{refused}");
}
