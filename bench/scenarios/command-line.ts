import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { median } from '../histogram.ts'
import { plainEnvironment, temporaryDirectory } from '../processes.ts'
import { atMost, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { BACKEND, furnish, startOurs } from '../server.ts'

/** Times `node -e 0`: what a command may take that reads a file or two and asks a server on the same machine. */
const GOAL = 3
const ROOT = join(import.meta.dirname, '..', '..')

/** From the start of a command to its end, in turns with a Node that does nothing. */
export const commandLine: Scenario = {
  name: 'command-line',
  title: 'Command line',
  async run(bench) {
    const server = await startOurs({ ...bench, dataDir: temporaryDirectory(bench.directory) })
    const [agent] = await furnish(server, 1)
    const home = temporaryDirectory(bench.directory)
    const env = {
      ...plainEnvironment(),
      HOME: home,
      XDG_CONFIG_HOME: join(home, 'config'),
      XDG_CACHE_HOME: join(home, 'cache'),
      MAYFLY_SERVER: `http://127.0.0.1:${server.port}`,
      MAYFLY_TOKEN: agent?.token,
    }
    const main = join(ROOT, bench.fromSource ? 'src/cli/main.ts' : 'dist/cli/main.js')
    const commands = { 'mayfly --version': ['--version'], 'mayfly get': ['get', BACKEND] }
    const rows: Row[] = []
    for (const [title, words] of Object.entries(commands)) {
      rows.push(await beside(bench, title, [main, ...words], env))
    }
    await server.stop()
    return rows
  },
}

async function beside(bench: Bench, title: string, args: string[], env: NodeJS.ProcessEnv): Promise<Row> {
  const nothing: number[] = []
  const ours: number[] = []
  // The first two of each fill the caches of compiled code and are left out.
  for (let n = -2; n < (bench.quick ? 3 : 25); n += 1) {
    const floor = await timed(['-e', '0'], env)
    const taken = await timed(args, env)
    if (n < 0) continue
    nothing.push(floor)
    ours.push(taken)
  }
  const ratio = median(ours.map((ms, n) => ms / (nothing[n] ?? Number.NaN)))
  bench.say(`${title}: ${median(ours).toFixed(0)} ms, node -e 0 ${median(nothing).toFixed(0)} ms`)
  return {
    scenario: title,
    clients: undefined,
    figures: { p50: median(ours) },
    floor: `node -e 0: ${median(nothing).toFixed(1)} ms`,
    ratio,
    goal: atMost(ratio, GOAL),
    detail: { ours, nothing },
  }
}

/** Milliseconds. Throws where the command fails. */
async function timed(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const began = performance.now()
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 2] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`)
  return performance.now() - began
}
