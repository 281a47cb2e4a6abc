import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../../client/client.ts'
import { MayflyError, UnreachableError } from '../../client/errors.ts'
import type { PendingEnrollment } from '../../client/wire.ts'
import { oneLine } from '../frame/terminal-text.ts'
import type { Context } from '../frame/verb.ts'
import { pendingCells } from './pending.ts'

const POLL_MS = 2_000

/**
 * Writes each request that waits, once, and goes on with new ones until it is interrupted. Waits for a server that is down. With
 * --json one object per line.
 */
export async function followPending(context: Context, client: Client): Promise<void> {
  const { out, signal } = context
  let seen = new Set<string>()
  let isAway = false
  for (;;) {
    const all = await listAll(client).catch((error: unknown) => {
      if (!isPassing(error)) throw error
      if (!isAway) out.note(`${error.message} Retrying.`)
      return undefined
    })
    isAway = all === undefined
    for (const one of all ?? []) {
      if (seen.has(one.id)) continue
      if (out.isJson) await out.json(one, 'line')
      else await out.result(lineOf(one, context.now()))
    }
    // What was decided does not come back.
    if (all !== undefined) seen = new Set(all.map(({ id }) => id))
    await wait(POLL_MS, undefined, { signal })
  }
}

async function listAll(client: Client): Promise<PendingEnrollment[]> {
  const all: PendingEnrollment[] = []
  for await (const one of client.admin.pending.list({}, { limit: 1_000 })) all.push(one)
  return all
}

const lineOf = (one: PendingEnrollment, now: number) =>
  oneLine([...pendingCells(one, now), one.reason ?? ''].filter((cell) => cell !== '').join('  '))

function isPassing(error: unknown): error is Error {
  if (error instanceof UnreachableError) return true
  return error instanceof MayflyError && (error.status === 429 || error.status >= 500)
}
