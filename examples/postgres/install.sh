#!/bin/sh
# Installs PostgreSQL from the distribution (Debian, Ubuntu), unless it is here. Needs root only where it is not.
set -eu
if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# Its package would make a server and start it; OKT makes its own.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] \
  || echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
apt-get install -q -y --no-install-recommends postgresql
