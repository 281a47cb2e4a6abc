#!/usr/bin/env node
// Docker runs this as `docker-credential-mayfly`.
process.argv.splice(2, 0, 'docker-credential')
await import('./main.ts')

export {}
