#!/usr/bin/env bash
# Prints how much of the machine the model explores, and the lines and branches that it does not reach.
# Needs the component `llvm-tools` of rustup. RUSTC_BOOTSTRAP lets a stable compiler count branches.
set -euo pipefail
cd "$(dirname "$0")/../../.."
rustup component add llvm-tools >/dev/null 2>&1 || true
tools=$(dirname "$(find "$(rustc --print sysroot)" -name llvm-cov | head -1)")
out=$PWD/target/coverage
rm -rf "$out/profiles"
export LLVM_PROFILE_FILE="$out/profiles/%p-%m.profraw" CARGO_TARGET_DIR=$out RUSTC_BOOTSTRAP=1
# Only the test is counted, which compiles the machine itself: the library has it once more, and nothing calls it there.
program=$(cargo rustc --locked -p okt-core --release --test reconcile --message-format json \
  -- -Cinstrument-coverage -Zcoverage-options=branch 2>/dev/null \
  | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
# As cargo sets it: the test reads a file beside it.
CARGO_MANIFEST_DIR=$PWD/okt-core "$program" --quiet rules_hold objects_of
"$tools/llvm-profdata" merge --sparse "$out"/profiles/*.profraw -o "$out/model.profdata"
"$tools/llvm-cov" report "$program" --instr-profile "$out/model.profdata" --show-branch-summary --show-region-summary=false \
  | awk '
      /src\/machine/ {
        sub(/^.*src\//, ""); lines += $5; missed += $6; branches += $8; unreached += $9
        printf "%-24s %4d lines, %3d not reached; %3d branches, %3d not taken\n", $1, $5, $6, $8, $9
      }
      END {
        printf "all: %.1f %% of %d lines, %.1f %% of %d branches\n", 100 - 100 * missed / lines, lines, 100 - 100 * unreached / branches, branches
      }'
echo
echo "not reached:"
"$tools/llvm-cov" show "$program" --instr-profile "$out/model.profdata" --show-branches=count \
  | awk '
      /^\/.*\.rs:$/ { file = $0; sub(/.*\/src\//, "", file); sub(/:$/, "", file); wanted = /src\/machine/ }
      wanted && /^ *[0-9]+\| *0\|/ { sub(/^ */, ""); print "  " file ":" $0 }
      wanted && /Branch \(.*(True: 0[,\]]|False: 0[,\]])/ { sub(/^[ |]*/, ""); print "  " file ": " $0 }'
