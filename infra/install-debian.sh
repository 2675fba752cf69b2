#!/bin/sh
# Installs Debian packages as root, without starting or enabling the services that come with them: Waybill starts its
# own servers, on its own data.
#   sh infra/install-debian.sh redis-server
set -eu
export DEBIAN_FRONTEND=noninteractive

# invoke-rc.d and deb-systemd-invoke ask this script before they start a service; 101 says: not allowed.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

install() {
  apt-get install --yes --quiet=2 --no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

# A fresh machine has no package lists yet, an old one has lists that name versions long gone.
install "$@" 2>/dev/null || { apt-get update --quiet=2 && install "$@"; }

if [ -d /run/systemd/system ]; then
  for package in "$@"; do systemctl disable --quiet "$package" 2>/dev/null || :; done
fi
