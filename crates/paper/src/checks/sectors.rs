//! Sectors: what the FTL counts by cause against what the media programmed, what buffers placed, what
//! victims held.

use super::{Facts, Finding, holds};

/// Victims that may be under collection at once, at either end of the measured phase.
const VICTIMS_UNDER_WAY: u64 = 16;
/// RAM that a sector in a write buffer takes at least.
const ENTRY_BYTES_MIN: u64 = 32;
/// Relative error of what is computed twice in floating point.
const ROUNDING: f64 = 1e-9;

/// Causes of programmed sectors; the journal's are a part of the user's.
const CAUSES: [&str; 6] = ["user", "gc", "pad", "line_meta", "map", "trim"];

fn sum(facts: &Facts<'_>, causes: &[&str]) -> Option<u64> {
    causes.iter().map(|cause| facts.count(&format!("/sectors/{cause}"))).sum()
}

/// All causes together are what the media programmed. Where cores cost something, the FTL counts a write
/// when its writer takes it, and the media when it has been built.
pub(super) fn add_up(facts: &Facts<'_>) -> Finding {
    let counted = sum(facts, &CAUSES)?;
    let programmed = facts.count("/utilisation/programmed_sectors")?;
    let writers = facts.at("/buffers")?.as_array()?.len() as u64;
    let under_way = match facts.at("/host_cpu") {
        Some(_) => writers * facts.count("/geometry/ws_opt")?,
        None => 0,
    };
    holds(counted.abs_diff(programmed) <= under_way, || {
        format!("the causes add up to {counted} sectors, the media programmed {programmed}")
    })
}

/// Each kind of write amplification is its causes by the user's sectors.
pub(super) fn amplification(facts: &Facts<'_>) -> Finding {
    let user = facts.count("/sectors/user").filter(|user| *user > 0)?;
    for (kind, causes) in [("gc", &CAUSES[..2]), ("gc_pad", &CAUSES[..3]), ("media", &CAUSES[..])] {
        let reported = facts.number(&format!("/waf/{kind}"))?;
        let counted = sum(facts, causes)? as f64 / user as f64;
        if (reported - counted).abs() > ROUNDING * counted {
            return Some(Err(format!("waf.{kind} is {reported}, the sectors make {counted}")));
        }
    }
    Some(Ok(()))
}

/// The buffers' shares add up.
pub(super) fn buffers(facts: &Facts<'_>) -> Finding {
    let pairs = [
        ("user", "/sectors/user"),
        ("gc", "/sectors/gc"),
        ("pad", "/sectors/pad"),
        ("victims", "/gc/victims"),
        ("empty_victims", "/gc/empty_victims"),
    ];
    // A buffer's user sectors are also those of trim records.
    let trim = facts.count("/sectors/trim").unwrap_or(0);
    for (key, whole) in pairs {
        let of_trim = if key == "user" { trim } else { 0 };
        let (parts, whole) = (facts.of_buffers(key)?, facts.count(whole)? + of_trim);
        if parts != whole {
            return Some(Err(format!("{key} of the buffers add up to {parts}, not to {whole}")));
        }
    }
    Some(Ok(()))
}

/// Sectors accepted and sectors placed differ by what the buffers hold, at most. A device whose mapping units are written in
/// part may accept more: what is written to the same unit before it is programmed takes the place of what is there.
pub(super) fn accepted(facts: &Facts<'_>) -> Finding {
    let (accepted, placed) = (facts.count("/writes/sectors")?, facts.count("/sectors/user")?);
    let room = facts.count("/memory/buffers_bytes")? / ENTRY_BYTES_MIN;
    let in_part = facts.count("/device/rmw").is_some_and(|writes| writes > 0);
    let too_far = if in_part { placed.saturating_sub(accepted) } else { accepted.abs_diff(placed) };
    holds(too_far <= room, || {
        format!("{accepted} sectors accepted, {placed} placed, and buffers of {room}")
    })
}

/// What victims held was copied, or became stale: on its way, which is padding, or before it was read, for which the
/// host wrote or discarded it.
pub(super) fn victims(facts: &Facts<'_>) -> Finding {
    let victims = facts.count("/gc/victims").filter(|victims| *victims > 0)?;
    let held = facts.of_buffers("victim_valid")?;
    let (copied, pad) = (facts.count("/sectors/gc")?, facts.count("/sectors/pad")?);
    let line = facts.count("/capacity/line_sectors")?;
    let ratio = facts.number("/gc/valid_ratio_mean")?;
    let under_way = VICTIMS_UNDER_WAY * line;
    let (user, trimmed) =
        (facts.count("/sectors/user")?, facts.count("/discards/sectors").unwrap_or(0));
    if copied > held + under_way || held > copied + pad + user + trimmed + under_way {
        let why = format!(
            "victims held {held} sectors, {copied} were copied, {pad} padded, and the host wrote {user}"
        );
        return Some(Err(why));
    }
    for buffer in facts.at("/buffers")?.as_array()? {
        let (victims, held) = (buffer["victims"].as_u64()?, buffer["victim_valid"].as_u64()?);
        if held > victims * line {
            let role = buffer["role"].as_str().unwrap_or_default();
            let why = format!("{victims} {role} lines of {line} sectors held {held}");
            return Some(Err(why));
        }
    }
    let least = held as f64 / (victims * line) as f64;
    holds(ratio <= 1.0 && ratio >= least * (1.0 - ROUNDING), || {
        format!("victims were full to {ratio}, but held {least} of their lines")
    })
}

/// Lines that lost their last sector were erased, and mapping lines that were written, but for those
/// that were there before or are still. Of several buffers one can hand back a line that it prepared: the chunk
/// with the start metadata, a write unit of metadata that no other line has, is erased once more.
pub(super) fn erases(facts: &Facts<'_>) -> Finding {
    let line = facts.count("/capacity/line_sectors")?;
    let chunk = facts.count("/geometry/sectors").filter(|sectors| *sectors > 0)?;
    let unit = facts.count("/geometry/ws_opt").filter(|sectors| *sectors > 0)?;
    let chunks = line / chunk;
    let erases = facts.count("/erases")?;
    let emptied = facts.count("/gc/victims")? + facts.count("/gc/empty_victims")?;
    let mapped = facts.count("/sectors/map")? / chunk;
    let waiting = facts.count("/capacity/lines")? * chunks;
    let shares = facts.at("/buffers")?.as_array()?.len() > 1;
    let handed_back = if shares { facts.count("/sectors/line_meta")? / unit } else { 0 };
    let most = emptied * chunks + mapped + waiting + handed_back;
    let fits = erases + waiting >= emptied * chunks && erases <= most;
    holds(fits, || {
        format!(
            "{erases} chunks erased, {emptied} lines of {chunks} emptied, {mapped} filled with maps"
        )
    })
}
