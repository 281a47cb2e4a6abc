/** Runs bare SQL with pgbench or, where that is missing, with the pg driver, at the same number of clients. */
import { execFile, execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { createLatencyHistogram, quantilesOf } from './latency.ts'
import { temporaryDirectory } from './processes.ts'

/** Statements about one role; `n` makes its name. */
export interface Script {
  /** `random`: any number; `next`: 1, 2, 3 and so on. */
  readonly n: 'random' | 'next'
  readonly statements: (n: string) => readonly string[]
}

/** For so many seconds, or so many times by each client. */
export type Amount = { readonly seconds: number } | { readonly times: number }

export interface Measured {
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

export interface BareRunner {
  readonly tool: 'pgbench' | 'pg driver'
  run(script: Script, clients: number, amount: Amount): Promise<Measured>
}

/** `url` is a superuser's, in a database that has the sequence `bare_next`. */
export function bareRunner(url: string): BareRunner {
  const program = findPgbench()
  if (program === undefined) {
    return { tool: 'pg driver', run: (script, clients, amount) => runDriver(url, script, clients, amount) }
  }
  const directory = temporaryDirectory(undefined)
  return {
    tool: 'pgbench',
    run: (script, clients, amount) => runPgbench(program, directory, url, script, clients, amount),
  }
}

const HIGHEST = 2 ** 47

const NUMBER = {
  random: `\\set n random(1, ${HIGHEST})`,
  next: "SELECT nextval('bare_next') AS n \\gset",
}

/** The file that pgbench runs. */
export function pgbenchScript({ n, statements }: Script): string {
  return [NUMBER[n], ...statements(':n').map((statement) => `${statement};`), ''].join('\n')
}

/** What pgbench prints, and its log of each transaction, whose third column is the time in µs. */
export function readPgbench(printed: string, log: string): Measured {
  const perSecond = Number(/^tps = ([\d.]+)/m.exec(printed)?.[1] ?? Number.NaN)
  if (Number.isNaN(perSecond)) throw new Error(`pgbench printed no rate:\n${printed}`)
  const histogram = createLatencyHistogram()
  for (const line of log.split('\n')) {
    if (line !== '') histogram.record(Math.max(1, Number(line.split(' ')[2])))
  }
  return { perSecond, ...quantilesOf(histogram) }
}

/** Debian keeps it outside of the path, in a folder of its version. */
function findPgbench(): string | undefined {
  const folders = listed('/usr/lib/postgresql').map((version) => `/usr/lib/postgresql/${version}/bin/pgbench`)
  return ['pgbench', ...folders.reverse()].find((program) => {
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  })
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

const execute = promisify(execFile)

async function runPgbench(
  program: string,
  directory: string,
  url: string,
  script: Script,
  clients: number,
  amount: Amount,
): Promise<Measured> {
  const file = join(directory, 'script.sql')
  writeFileSync(file, pgbenchScript(script))
  const length = 'seconds' in amount ? ['-T', String(amount.seconds)] : ['-t', String(amount.times)]
  const load = ['-c', String(clients), '-j', '1', ...length]
  const args = ['-n', '-f', file, ...load, '-l', `--log-prefix=${join(directory, 'log')}`, url]
  const { stdout } = await execute(program, args)
  const logs = readdirSync(directory).filter((name) => name.startsWith('log'))
  const log = logs.map((name) => readFileSync(join(directory, name), 'utf8')).join('')
  for (const name of logs) rmSync(join(directory, name))
  return readPgbench(stdout, log)
}

async function runDriver(url: string, script: Script, clients: number, amount: Amount): Promise<Measured> {
  const sessions = Array.from({ length: clients }, () => new pg.Client(url))
  const histogram = createLatencyHistogram()
  try {
    await Promise.all(sessions.map((session) => session.connect()))
    const began = performance.now()
    const isOver = (done: number) =>
      'seconds' in amount ? performance.now() - began >= amount.seconds * 1_000 : done >= amount.times
    const work = sessions.map(async (session) => {
      for (let done = 0; !isOver(done); done += 1) {
        const from = performance.now()
        const n = script.n === 'next' ? await nextNumber(session) : String(randomInt(HIGHEST))
        for (const statement of script.statements(n)) await session.query(statement)
        histogram.record(Math.max(1, Math.round((performance.now() - from) * 1_000)))
      }
    })
    await Promise.all(work)
    const seconds = (performance.now() - began) / 1_000
    return { perSecond: histogram.count / seconds, ...quantilesOf(histogram) }
  } finally {
    await Promise.all(sessions.map((session) => session.end()))
  }
}

async function nextNumber(session: pg.Client): Promise<string> {
  return (await session.query("SELECT nextval('bare_next') AS n")).rows[0]?.n
}
