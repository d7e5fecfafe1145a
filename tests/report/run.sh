#!/usr/bin/env bash
# Makes a report of every kind: of a run on a block device, of one on files, of a Filebench workload, of a trace, of a
# comparison, of sweeps along numbers and along names, and of a paper. Opens each in headless Chromium without a
# network, wide and narrow, and lets check.js look at it in both themes. Needs Debian's package `chromium`; SHOTS=DIR
# keeps pictures of all of them, light and dark.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=tests/report
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# What it says is of interest only if it fails.
nandscape() {
    cargo run --release --quiet -- "$@" </dev/null >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
}

browser() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
        --host-resolver-rules='MAP * ~NOTFOUND' --virtual-time-budget=600000 "$@"
}

# A page around a file, in a frame so wide and high: Chromium's windows are never narrower than 500. What
# the file tells becomes the title.
frame() {
    echo "<!doctype html><title>silent</title><body style='margin:0'>"
    echo "<iframe src='$1' style='border:0;width:$2px;height:$3px'></iframe>"
    echo '<script>addEventListener("message", (event) => { document.title = event.data; });</script>'
}

# The page with the check behind it, in a window so wide: console output counts as a failure.
check() {
    local name=$1 width=$2 found
    { cat "$work/$name.html"; echo '<script>'; cat "$here/check.js"; echo '</script>'; } >"$work/checked.html"
    frame checked.html "$width" 1000 >"$work/frame.html"
    browser --window-size=1400,1000 --enable-logging=stderr --dump-dom "file://$work/frame.html" \
        >"$work/dom" 2>"$work/log"
    found=$(sed -n '/<title>/,/<\/title>/p' "$work/dom" | sed -n 's/.*<title>\([0-9]* passed, [0-9]* failed\).*/\1/p')
    echo "$name, $width wide: ${found:-the check did not end}"
    if [[ $found == *" 0 failed" ]] && ! grep -q CONSOLE "$work/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        sed -n '/<title>/,/<\/title>/p' "$work/dom" | head -40
        grep CONSOLE "$work/log" || true
    fi
}

# Chromium's numbers for prefers-color-scheme: 0 is dark, 1 is light.
picture() {
    local name=$1 width=$2 scheme=$3
    frame "$name.html" "$width" 5200 >"$work/frame.html"
    browser --window-size="$((width < 500 ? 500 : width)),5200" --blink-settings="preferredColorScheme=$scheme" \
        --screenshot="$SHOTS/$name-$width-$scheme.png" "file://$work/frame.html" 2>/dev/null
}

small=(--set media.chunks=60 --set media.sectors=256 --set precondition.random_overwrite=1.0)
nandscape run "$here/mixed.fio" "${small[@]}" --report "$work/run.html"
nandscape run "$here/files.fio" --stack ext4-pblk --report "$work/files.html"
nandscape run examples/varmail.f --stack ext4-pblk --runtime 500ms --report "$work/filebench.html"
nandscape trace run crates/workload/tests/traces/mqsim/tpcc-small.trace --fold "${small[@]}" --report "$work/trace.html"
nandscape compare pblk-4.13 pblk pblk-5.11 --job "$here/mixed.fio" "${small[@]}" --set ftl.op_percent=40 \
    --seeds 2 --report "$work/compare.html"
nandscape sweep "$here/sweep.toml" --output "$work/sweep.jsonl" --report "$work/sweep.html"
nandscape sweep "$here/names.toml" --output "$work/names.jsonl" --report "$work/names.html"
nandscape paper crates/paper/tests/tiny --out "$work/paper"
cp "$work/paper/index.html" "$work/paper.html"

for name in run files filebench trace compare sweep names paper; do
    for width in 1400 800 420; do
        check "$name" "$width"
        if [[ -n ${SHOTS:-} ]]; then
            picture "$name" "$width" 0
            picture "$name" "$width" 1
        fi
    done
done
echo "$passed passed, $failed failed"
((failed == 0))
