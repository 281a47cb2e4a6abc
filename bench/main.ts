/** `npm run bench`: compares Mayfly with what this machine can do, or with another checkout. See `--help`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Pace } from './bursts.ts'
import { type KindOptions, readKindOptions } from './postgres-kind/options.ts'
import { cleanUp, cleanUpOnSignals } from './processes.ts'
import { type Row, toMarkdown } from './report.ts'
import type { Bench } from './scenario.ts'
import { SCENARIOS } from './scenarios.ts'
import { OWN_CHECKOUT } from './server.ts'

const HELP = `Usage: npm run bench -- [options]

Measures the Mayfly server and, in alternating bursts, what this machine can do: a bare
node:http server, the disk, openssl. All traffic stays on loopback, and the bench removes
everything that it creates. Prints progress to standard error and a Markdown table to
standard output, and writes one JSON file per run to bench/results/.

With --against, the table compares this checkout with another one instead. A ratio above 1
means higher throughput, a longer time or more memory; the goal allows for the noise of the
pairs. CPU ratio, the CPU time per request of the other checkout ÷ ours, depends least on
what else the machine does.

Options:
  --only <name,name>   run only these scenarios:
                       ${SCENARIOS.map((one) => one.name).join(', ')}
  --against <dir>      compare with the checkout in <dir>, which must be built
  --quick              short bursts, few clients, small stores: to check that the bench works
  --pairs <n>          bursts of each server at every concurrency (default 5)
  --clients <n,n>      concurrencies (default 1,16,64,256; of postgres-kind 1,8)
  --postgres <server>  for postgres-kind: a major version from npm (default 18), or the URL of a
                       superuser of a server that may keep some roles of the bench
  --way <way>          for postgres-kind: functions (default) or direct
  --tables <n,n>       for postgres-kind: tables in the database (default 1)
  --live <n,n>         for postgres-kind: live credentials beforehand (default 0)
  --iterations <n,n>   for postgres-kind: SCRAM iterations (default 4096,256)
  --dir <path>         directory for temporary data, on the disk to be measured
  --source             run the server from src/ instead of dist/
  --node-arg <arg>     argument for Node when it runs the server, such as --cpu-prof; may be repeated
  --help               show this help`

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    against: { type: 'string' },
    quick: { type: 'boolean', default: false },
    pairs: { type: 'string' },
    clients: { type: 'string' },
    postgres: { type: 'string' },
    way: { type: 'string' },
    tables: { type: 'string' },
    live: { type: 'string' },
    iterations: { type: 'string' },
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
    console.error(`unknown scenario: ${unknown.join(', ')}\n\n${HELP}`)
    return 2
  }
  let kind: KindOptions
  try {
    kind = readKindOptions(values)
  } catch (error) {
    console.error(`${String((error as Error).message)}\n\n${HELP}`)
    return 2
  }
  const checkout = (directory: string) => ({ directory, fromSource: values.source })
  const bench: Bench = {
    pace: paceOf(),
    quick: values.quick,
    checkout: checkout(OWN_CHECKOUT),
    against: values.against === undefined ? undefined : checkout(resolve(values.against)),
    directory: values.dir,
    nodeArgs: values['node-arg'],
    kind,
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
  const file = writeResult({ machine: machine(), options: values, pace: bench.pace, rows, failed })
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

function writeResult(run: object): string {
  const directory = join(import.meta.dirname, 'results')
  mkdirSync(directory, { recursive: true })
  const file = join(directory, `${new Date().toISOString().replaceAll(':', '')}.json`)
  writeFileSync(file, `${JSON.stringify(run, undefined, 2)}\n`)
  return file
}
