#!/bin/sh
# Installs Chromium and Node from the distribution (Debian, Ubuntu) unless they are here, and puts what drives and judges
# the page below target/.
set -eu
cd "$(dirname "$0")/../../.."
if ! command -v chromium >/dev/null || ! command -v npm >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  command -v chromium >/dev/null || apt-get install -q -y --no-install-recommends chromium
  command -v npm >/dev/null || apt-get install -q -y --no-install-recommends nodejs npm
fi
into=${CARGO_TARGET_DIR:-target}/page
mkdir -p "$into"
# No newer versions: these work with the Node of Debian 12.
npm install --prefix "$into" --no-save --no-package-lock --no-audit --no-fund --loglevel=error \
  puppeteer-core@22.15.0 axe-core@4.14.1
