#!/usr/bin/env bash
# Prints the manifest for krew: `manifest.sh DIR` takes the archives of `.ci/static` in DIR. The address of the project is
# `repository` in the Cargo.toml of the workspace.
# With krew: `kubectl krew install --manifest FILE --archive ARCHIVE`.
set -euo pipefail
from=$(cd "${1:?the directory with the archives, e.g. target/static}" && pwd)
cd "$(dirname "$0")/../.."
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
[ -n "$repository" ] || { echo "set \`repository\` in [workspace.package] of Cargo.toml" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
shopt -s nullglob
archives=("$from"/kubectl-okt-v"$version"-linux-*.tar.gz)
[ ${#archives[@]} -gt 0 ] || { echo "$from has no archives of kubectl-okt v$version" >&2; exit 1; }
sed -e "/^#/d; s|@VERSION@|$version|g; s|@REPOSITORY@|$repository|g" kubectl-okt/krew/okt.yaml
for archive in "${archives[@]}"; do
  arch=${archive##*-}
  sum=$(sha256sum "$archive")
  cat <<END
  - selector:
      matchLabels:
        os: linux
        arch: ${arch%.tar.gz}
    uri: $repository/releases/download/v$version/$(basename "$archive")
    sha256: ${sum%% *}
    bin: kubectl-okt
    files:
    - from: kubectl-okt
      to: .
    - from: LICENSE
      to: .
END
done
