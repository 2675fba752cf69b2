#!/bin/sh
# Runs one of the project's scripts with the Bun that package.json pins, after installing what is missing:
#   sh infra/bootstrap.sh [--in FOLDER] src/main.ts [arguments]
# Needs Node.js and npm, or the pinned Bun in PATH. With everything in place it installs nothing, prints nothing and
# does not touch the network. Several first starts may run at once: the kernel's lock on .bun/lock lets one install.
# With --in, the script runs in that folder in place of the project's, and reads no .env and no bunfig.toml there.
set -eu
folder=
if [ "${1:-}" = --in ]; then
  folder=$2
  shift 2
fi
cd "$(dirname "$0")/.."

version=$(sed -n 's/.*"packageManager": *"bun@\([^"]*\)".*/\1/p' package.json)
stamp=node_modules/.installed
# A package that root installed for everybody cannot be written to: then each user has a Bun.
installs=$PWD/.bun
[ -w . ] || [ -z "${HOME:-}" ] || installs=${XDG_CACHE_HOME:-$HOME/.cache}/waybill

say() { printf 'waybill: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# Prints the path of a Bun of the pinned version; fails when there is none.
find_bun() {
  for candidate in "$(command -v bun || :)" "$PWD/.bun/node_modules/.bin/bun" "$installs/node_modules/.bin/bun"; do
    if [ -x "$candidate" ] && [ "$("$candidate" --version 2>/dev/null)" = "$version" ]; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

dependencies_sum() { cksum package.json bun.lock; }
# The npm package has no bun.lock: npm has installed what it depends on.
dependencies_installed() { [ ! -f bun.lock ] || { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(dependencies_sum)" ]; }; }

# Only what runs the embedded queue needs a redis-server; `npm run format` should not install one.
redis_installed() {
  case "${1:-}" in
    src/*) [ -n "${REDIS_URL:-}" ] || command -v redis-server >/dev/null ;;
    test/* | bench/*) command -v redis-server >/dev/null ;;
  esac
}

all_installed() { find_bun >/dev/null && dependencies_installed && redis_installed "${1:-}"; }

install_bun() {
  command -v npm >/dev/null || fail "needs npm, or Bun $version in PATH; install one of them"
  say "installing Bun $version into ${installs#"$PWD"/}"
  npm install --prefix "$installs" --no-save --no-audit --no-fund --loglevel=error "bun@$version" >&2 ||
    fail "npm could not install bun@$version; its message is above"
  find_bun >/dev/null || fail "the npm package bun@$version does not run on this machine"
}

install_dependencies() {
  say "installing the dependencies from bun.lock"
  "$(find_bun)" install --frozen-lockfile --silent >&2 || fail "bun install failed; its message is above"
  dependencies_sum >"$stamp.$$" && mv "$stamp.$$" "$stamp"
}

install_redis() {
  missing="redis-server 7 or later is missing: install it (Debian and Ubuntu: apt-get install redis-server) or set REDIS_URL"
  command -v apt-get >/dev/null || fail "$missing"
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || fail "$missing"
    as_root="sudo -n"
  fi
  say "installing redis-server with apt-get"
  $as_root sh infra/install-debian.sh redis-server >&2 || fail "$missing"
}

install_missing() {
  find_bun >/dev/null || install_bun
  dependencies_installed || install_dependencies
  redis_installed "${1:-}" || install_redis
}

# Debian keeps server programs where only root's PATH looks.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

if ! all_installed "${1:-}"; then
  mkdir -p "$installs"
  (
    # Where there is no flock (macOS), two first starts at once may both install; each step can be repeated.
    if command -v flock >/dev/null; then flock 9; fi
    install_missing "${1:-}" 9>&-
  ) 9>"$installs/lock"
fi

bun=$(find_bun)
PATH=$(dirname "$bun"):$PATH
# In place of this shell, so that signals reach the program itself.
if [ -n "$folder" ]; then
  root=$PWD script=$PWD/$1
  shift
  cd "$folder"
  # The folder may be another project's, whose DATABASE_URL or preloaded modules are not meant for Waybill.
  exec "$bun" --no-env-file --no-install "--config=$root/bunfig.toml" "$script" "$@"
fi
exec "$bun" "$@"
