#!/usr/bin/env bash
# Every paper that ships, on small devices: whatever the verdicts, no run may make no physical sense. With --base the papers
# on SSDs, gcj and d2fs, as they stand; their variants are several times the same runs on other media.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case ${1:-} in
    --base) of_ssds=(--variant base) ;;
    "") of_ssds=() ;;
    *) echo "usage: run.sh [--base]" >&2; exit 2 ;;
esac
papers=0

nandscape() {
    cargo run --release --quiet -- "$@" </dev/null
}

quick() {
    nandscape paper "$@" --quick --jobs "$(nproc)" --out "$work/$1" >"$work/said" 2>"$work/log" ||
        { cat "$work/said"; tail "$work/log"; return 1; }
    cat "$work/said"
    papers=$((papers + $(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["papers"]))' "$work/$1/paper.json")))
}

nandscape paper --check
quick js-pblk selective-mapping fa-ftl
quick gcj "${of_ssds[@]}"
quick d2fs "${of_ssds[@]}"
echo "$papers papers ran, each run made physical sense"
