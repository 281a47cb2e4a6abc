/** `npm run bench`: what Mayfly does beside what this machine could do. `--help` tells the rest. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cleanUp, cleanUpOnSignals } from './processes.ts'
import { type Row, toMarkdown } from './report.ts'
import type { Bench } from './scenario.ts'
import { SCENARIOS } from './scenarios.ts'
import type { Pace } from './turns.ts'

const HELP = `Usage: npm run bench -- [options]

Measures our server and, in turns with it, what the machine gives: a bare node:http
server, its disk, openssl. Everything is on loopback, and nothing is left over.
Progress goes to standard error, a Markdown table to standard output, and one JSON
file of the run to bench/results/.

Options:
  --only <name,name>   of: ${SCENARIOS.map((one) => one.name).join(', ')}
  --quick              short bursts, few clients, small stores: to see that it works
  --large              10,000,000 audit entries beside the 1,000,000
  --pairs <n>          bursts of each side at every concurrency (default 5)
  --clients <n,n>      concurrencies (default 1,16,64,256)
  --dir <path>         where temporary data go; must be on the disk in question
  --source             run the server from src/ instead of dist/
  --node-arg <arg>     for Node when it runs the server, such as --cpu-prof; may be repeated
  --help`

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    large: { type: 'boolean', default: false },
    pairs: { type: 'string' },
    clients: { type: 'string' },
    dir: { type: 'string' },
    source: { type: 'boolean', default: false },
    'node-arg': { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log(HELP)
  process.exit(0)
}
cleanUpOnSignals()
process.exitCode = await main()

async function main(): Promise<number> {
  const names = values.only?.split(',') ?? SCENARIOS.map((one) => one.name)
  const unknown = names.filter((name) => !SCENARIOS.some((one) => one.name === name))
  if (unknown.length > 0) {
    console.error(`There is no scenario ${unknown.join(', ')}.\n\n${HELP}`)
    return 2
  }
  const bench: Bench = {
    pace: paceOf(),
    quick: values.quick,
    large: values.large,
    fromSource: values.source,
    directory: values.dir,
    nodeArgs: values['node-arg'],
    say: (line) => console.error(`${new Date().toISOString().slice(11, 19)} ${line}`),
  }
  const rows: Row[] = []
  const failed: { scenario: string; message: string }[] = []
  for (const scenario of SCENARIOS.filter((one) => names.includes(one.name))) {
    bench.say(`— ${scenario.title}`)
    try {
      rows.push(...(await scenario.run(bench)))
    } catch (error) {
      failed.push({ scenario: scenario.name, message: String(error) })
      bench.say(`${scenario.name} failed: ${error instanceof Error ? error.stack : error}`)
    }
    await cleanUp()
  }
  const file = keep({ machine: machine(), options: values, pace: bench.pace, rows, failed })
  console.log(toMarkdown(rows))
  bench.say(`written to ${file}`)
  return failed.length > 0 ? 1 : 0
}

function paceOf(): Pace {
  const pace = values.quick
    ? { pairs: 2, warmMs: 100, burstMs: 300, concurrencies: [1, 16] }
    : { pairs: 5, warmMs: 400, burstMs: 2_000, concurrencies: [1, 16, 64, 256] }
  const clients = values.clients?.split(',').map(Number)
  return { ...pace, concurrencies: clients ?? pace.concurrencies, pairs: Number(values.pairs ?? pace.pairs) }
}

function machine(): object {
  return {
    at: new Date().toISOString(),
    node: process.version,
    cpu: cpus()[0]?.model,
    cores: availableParallelism(),
    memoryMb: Math.round(totalmem() / 1_048_576),
    load: loadavg(),
  }
}

function keep(run: object): string {
  const directory = join(import.meta.dirname, 'results')
  mkdirSync(directory, { recursive: true })
  const file = join(directory, `${new Date().toISOString().replaceAll(':', '')}.json`)
  writeFileSync(file, `${JSON.stringify(run, undefined, 2)}\n`)
  return file
}
