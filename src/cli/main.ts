#!/usr/bin/env node
// Runs from the sources; `launch.ts` starts what is built.
import { checkNode } from './node-version.ts'

// Before anything else is imported: an older Node would fail on the first feature it lacks.
if (checkNode()) {
  const { start } = await import('./start.ts')
  await start()
}
