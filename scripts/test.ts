import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { joinedMain } from '../test/support/joined-main.ts'

/**
 * `npm test`: builds, then runs the checks and the tests side by side, because the tests spend much of their time waiting for
 * servers. Arguments go to vitest: `npm test -- src/domain`.
 */
if ((await start('node', ['scripts/build.ts']).ended) !== 0) process.exit(1)
// Once, before several workers want it.
joinedMain()
const check = start('npm', ['run', '--silent', 'check'], 'pipe')
const said = Promise.all([text(check.child.stdout!), text(check.child.stderr!)])
const tests = await start('vitest', ['run', ...process.argv.slice(2)]).ended
const checks = await check.ended
console.log(`\nnpm run check ${checks === 0 ? 'passed' : 'failed'}:\n${(await said).join('')}`)
process.exit(tests || checks)

function start(program: string, words: readonly string[], output: 'inherit' | 'pipe' = 'inherit') {
  const child = spawn(program, words, { stdio: ['ignore', output, output] })
  const ended = once(child, 'exit').then(([code]) => (typeof code === 'number' ? code : 1))
  return { child, ended }
}
