/**
 * Loaded before the server (`node --import`). While the file CRASH_CONTROL exists, the process kills itself with
 * SIGKILL at the point that the file names:
 *   {"at":"before","sees":["…"]}  before the COMMIT of a SQLite transaction whose statements contain all these texts
 *   {"at":"after","sees":["…"]}   after that COMMIT
 *   {"at":"reply","sees":["POST /api/v1/credentials"]}  before it writes the reply to such a request
 */
import { readFileSync } from 'node:fs'
import { ServerResponse } from 'node:http'
import { DatabaseSync, StatementSync } from 'node:sqlite'

export interface CrashPoint {
  readonly at: 'before' | 'after' | 'reply'
  readonly sees: readonly string[]
}

const control = process.env['CRASH_CONTROL'] ?? ''

function armed(): CrashPoint | undefined {
  try {
    return JSON.parse(readFileSync(control, 'utf8')) as CrashPoint
  } catch {
    return undefined
  }
}

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}

/** Statements of the current transaction, with their values. */
let statements: string[] = []
const { exec } = DatabaseSync.prototype
DatabaseSync.prototype.exec = function (sql: string): void {
  if (sql.startsWith('BEGIN')) statements = []
  const point = sql === 'COMMIT' ? armed() : undefined
  const here = point?.sees.every((word) => statements.some((one) => one.includes(word))) === true
  if (here && point?.at === 'before') die()
  exec.call(this, sql)
  if (here && point?.at === 'after') die()
}

const { run } = StatementSync.prototype
StatementSync.prototype.run = function (this: StatementSync, ...values: never[]) {
  // The job that counts entries of the audit writes their actions, too, at a time of its own.
  if (!this.sourceSQL.startsWith('INSERT INTO activity '))
    statements.push(`${this.sourceSQL} ${JSON.stringify(values)}`)
  return Reflect.apply(run, this, values)
} as typeof run

const { writeHead } = ServerResponse.prototype
ServerResponse.prototype.writeHead = function (this: ServerResponse, ...values: never[]) {
  const point = armed()
  if (point?.at === 'reply' && `${this.req.method} ${this.req.url}`.startsWith(point.sees[0] ?? '')) die()
  return Reflect.apply(writeHead, this, values)
} as typeof writeHead
