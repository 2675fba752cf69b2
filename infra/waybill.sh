#!/bin/sh
# The command `waybill` of the npm package. Runs Waybill in the folder that it is called in, so `.waybill` is made there and
# files are named from there. infra/bootstrap.sh gets Bun and redis-server if they are missing; npm has installed the rest.
set -eu

# npm links node_modules/.bin/waybill to this file.
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done

exec sh "$(dirname "$self")/bootstrap.sh" --in "$PWD" src/main.ts "$@"
