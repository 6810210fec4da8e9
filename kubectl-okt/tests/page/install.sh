#!/bin/sh
# Installs Chromium, Node and tmux from the distribution (Debian, Ubuntu) unless they are here, and puts what drives and
# judges the page below target/.
set -eu
cd "$(dirname "$0")/../../.."
missing=
command -v chromium >/dev/null || missing=chromium
command -v npm >/dev/null || missing="$missing nodejs npm"
command -v tmux >/dev/null || missing="$missing tmux"
if [ -n "$missing" ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  # shellcheck disable=SC2086 # These are words.
  apt-get install -q -y --no-install-recommends $missing
fi
into=${CARGO_TARGET_DIR:-target}/page
mkdir -p "$into"
# No newer versions: these work with the Node of Debian 12.
npm install --prefix "$into" --no-save --no-package-lock --no-audit --no-fund --loglevel=error \
  puppeteer-core@22.15.0 axe-core@4.14.1
