#!/usr/bin/env bash
# Builds a static kubectl-okt for Linux and packs it for krew: `build.sh HOMEPAGE` writes the archive and the manifest to
# target/krew. Uploads nothing. With krew: `kubectl krew install --manifest target/krew/okt.yaml --archive ARCHIVE`.
set -euo pipefail
cd "$(dirname "$0")/../.."
homepage=${1:?the address of the project, e.g. that of its repository}
target=x86_64-unknown-linux-musl
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
into=${CARGO_TARGET_DIR:-target}/krew
archive=kubectl-okt-v$version-linux-amd64.tar.gz

# A part of ring is C.
command -v musl-gcc >/dev/null || { apt-get update -q && apt-get install -q -y --no-install-recommends musl-tools; }
rustup target add $target
# The profile of what is small and does not change often.
cargo build --locked -p kubectl-okt --target $target --profile sidecar
program=${CARGO_TARGET_DIR:-target}/$target/sidecar/kubectl-okt
if ldd "$program" 2>/dev/null | grep -q '=>'; then
  echo "$program is not static" >&2
  exit 1
fi

rm -rf "$into"
mkdir -p "$into"
# The same program gives the same archive.
tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
  --directory "$(dirname "$program")" kubectl-okt --directory "$PWD" LICENSE | gzip -n >"$into/$archive"
sha256=$(sha256sum "$into/$archive" | cut -d' ' -f1)
sed -e "/^#/d; s|@VERSION@|$version|g; s|@HOMEPAGE@|$homepage|g; s|@ARCHIVE@|$archive|g; s|@SHA256@|$sha256|g" \
  kubectl-okt/krew/okt.yaml >"$into/okt.yaml"
ls -l "$into"
