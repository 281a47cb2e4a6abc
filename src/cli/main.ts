#!/usr/bin/env node
// Check the version before importing anything: an older Node would fail on the first feature it lacks.
const major = Number(process.versions.node.split('.')[0])
if (major >= 24) {
  // Without a listener, this signal opens Node's debugger, on a port that every local user can reach.
  process.on('SIGUSR1', () => {})
  const { run } = await import('./frame/program.ts')
  const { processHost } = await import('./frame/process-host.ts')
  process.exitCode = await run(process.argv.slice(2), processHost())
} else {
  process.stderr.write(
    `mayfly needs Node.js 24 or later; this is ${process.versions.node}.\n` +
      'Install it from https://nodejs.org, or with a version tool such as: nvm install 24\n',
  )
  process.exitCode = 1
}

export {}
