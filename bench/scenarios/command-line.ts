import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { alternatePairs } from '../against.ts'
import { median } from '../median.ts'
import { plainEnvironment, temporaryDirectory } from '../processes.ts'
import { againstRow, atMost, type MeasuredPair, type Row } from '../report.ts'
import type { Scenario } from '../scenario.ts'
import { addAgents, BACKEND, mainOf, startOurs } from '../server.ts'

/** Multiples of the time of `node -e 0`, for commands that read a file or two and call a server on this machine. */
const GOAL = 3
const COMMANDS = { 'mayfly --version': ['--version'], 'mayfly get': ['get', BACKEND] }

/** Both issue one credential, run a program that does nothing, and revoke. */
const RUN = ['run', '--env', `T=${BACKEND}`, '--', 'true']
const WITHOUT = ['run', '--no-run', '--env', `T=${BACKEND}`, '--', 'true']
/** What a run may add to `mayfly run`, in ms. */
const RUN_GOAL_MS = 2

/** From the start of the process to its exit, alternating with a Node that does nothing. */
export const commandLine: Scenario = {
  name: 'command-line',
  title: 'Command line',
  async run(bench) {
    const server = await startOurs({ ...bench, dataDir: temporaryDirectory(bench.directory) })
    const [agent] = await addAgents(server, 1)
    const home = temporaryDirectory(bench.directory)
    const env = {
      ...plainEnvironment(),
      HOME: home,
      XDG_CONFIG_HOME: join(home, 'config'),
      XDG_CACHE_HOME: join(home, 'cache'),
      MAYFLY_SERVER: `http://127.0.0.1:${server.port}`,
      MAYFLY_TOKEN: agent?.token,
    }
    const { against, checkout } = bench
    const rows: Row[] = []
    for (const [title, words] of Object.entries(COMMANDS)) {
      const ours = [mainOf(checkout), ...words]
      const reference = against === undefined ? ['-e', '0'] : [mainOf(against), ...words]
      const pairs = await timePairs(bench.quick ? 3 : 25, ours, reference, env)
      bench.say(`${title}: ${pairs.map((pair) => pair.ours.toFixed(0)).join(' ')} ms`)
      rows.push(
        against === undefined ? rowOf(title, pairs) : againstRow(title, against.directory, pairs, 'ms'),
      )
    }
    if (against === undefined) {
      const main = mainOf(checkout)
      const pairs = await timePairs(bench.quick ? 3 : 100, [main, ...RUN], [main, ...WITHOUT], env)
      rows.push(rowOfRun(pairs))
    }
    await server.stop()
    return rows
  },
}

async function timePairs(
  count: number,
  ours: string[],
  reference: string[],
  env: NodeJS.ProcessEnv,
): Promise<MeasuredPair[]> {
  // The first two pairs fill the caches of compiled code.
  const warmUp = 2
  const measure = { ours: () => timed(ours, env), reference: () => timed(reference, env) }
  return (await alternatePairs(warmUp + count, measure)).slice(warmUp)
}

function rowOf(title: string, pairs: readonly MeasuredPair[]): Row {
  const ratio = median(pairs.map((pair) => pair.ours / pair.reference))
  return {
    scenario: title,
    clients: undefined,
    figures: { p50: median(pairs.map((pair) => pair.ours)) },
    comparedWith: `node -e 0: ${median(pairs.map((pair) => pair.reference)).toFixed(1)} ms`,
    ratio,
    goal: atMost(ratio, GOAL),
    detail: { pairs },
  }
}

function rowOfRun(pairs: readonly MeasuredPair[]): Row {
  const ours = median(pairs.map((pair) => pair.ours))
  const without = median(pairs.map((pair) => pair.reference))
  const added = median(pairs.map((pair) => pair.ours - pair.reference))
  return {
    scenario: 'mayfly run, with a run',
    clients: undefined,
    figures: { p50: ours },
    comparedWith: `--no-run: ${without.toFixed(1)} ms; a run adds ${added.toFixed(1)} ms`,
    ratio: ours / without,
    goal: atMost(added, RUN_GOAL_MS),
    detail: { pairs, addedMs: added },
  }
}

/** In ms. Throws if the command fails. */
async function timed(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const began = performance.now()
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 2] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${args.join(' ')} exited with ${code}`)
  return performance.now() - began
}
