#!/usr/bin/env node
// What docker runs as `docker-credential-mayfly`.
process.argv.splice(2, 0, 'docker-credential')
await import('./main.ts')

export {}
