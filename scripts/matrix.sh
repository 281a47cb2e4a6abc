#!/usr/bin/env bash
# Runs the tests on each supported line of Node.js, or on the given ones: scripts/matrix.sh 26
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$#" -gt 0 ] || set -- 24 26
for line in "$@"; do
  npx -y -p "node@$line" -c 'echo "Node $(node --version)" && node node_modules/vitest/vitest.mjs run' </dev/null
done
