#!/bin/sh
# Puts the programs of Prometheus from the distribution (Debian, Ubuntu) below target/, unless they are there. Nothing is
# installed: the package would start a server.
set -eu
cd "$(dirname "$0")/../.."
into=${CARGO_TARGET_DIR:-target}/prometheus
[ -x "$into/usr/bin/promtool" ] && exit 0
mkdir -p "$into"
cd "$into"
apt-get download -q prometheus 2>/dev/null || { apt-get update -q && apt-get download -q prometheus; }
dpkg-deb -x prometheus_*.deb .
rm prometheus_*.deb
