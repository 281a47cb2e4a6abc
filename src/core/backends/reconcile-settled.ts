import { setTimeout as pause } from 'node:timers/promises'
import type { ListedPage } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import { DAY_MS } from '../../domain/limits.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { endAll, type Found, listPage, MOST, recordsOf } from './reconcile-backend.ts'

/** Between two pages, for those who wait for the upstream. */
const PAUSE_MS = 500
/** An account that its upstream does not end, or still lists after its end, is not tried every night for ever. */
const TRIED_MS = 7 * DAY_MS

type Parts = Pick<Core, 'store' | 'backends' | 'settings' | 'ids' | 'log' | 'health'>

/**
 * Ends the accounts whose credentials the store knows as settled, such as one that came into being after the last look for it
 * (ADR 0044). Never those that the store does not know: they may belong to another installation. Returns whether it saw all.
 * Throws `invalid_request` for a kind that cannot list, and the `backend_*` problems.
 */
export async function reconcileSettled(
  core: Parts,
  backend: OpenBackend,
  signal: AbortSignal,
  pauseMs = PAUSE_MS,
): Promise<boolean> {
  const { found, isComplete } = await listSettled(core, backend, signal, pauseMs)
  let left: Found[] = found
  while (left.length > 0 && !signal.aborted) {
    await endAll(core, SYSTEM, backend, left)
    left = left.filter(({ outcome }) => outcome === undefined)
  }
  const ended = found.filter(({ outcome }) => outcome === 'revoked').length
  if (ended > 0)
    core.log.warn(
      { backend: backend.name, ended },
      'accounts were upstream although their credentials had ended',
    )
  return isComplete && left.length === 0
}

/** All of them before the first one ends: that end would move the accounts after it to earlier pages. */
async function listSettled(core: Parts, backend: OpenBackend, signal: AbortSignal, pauseMs: number) {
  const found: Found[] = []
  let after: string | undefined
  do {
    const begunAt = core.store.now()
    const { items, next }: ListedPage = await listPage(core, backend, after)
    const accounts = new Map(items.map((account) => [account.credentialId, account]))
    for (const credential of await recordsOf(core, items)) {
      const account = accounts.get(credential.id)
      const { settledAt } = credential
      // Settled since the upstream was asked: it is gone by now.
      if (account === undefined || settledAt === null || settledAt >= begunAt) continue
      if (settledAt > begunAt - TRIED_MS) found.push({ account, credential, outcome: undefined })
    }
    after = next
    if (after !== undefined) await pause(pauseMs, undefined, { signal }).catch(() => undefined)
  } while (after !== undefined && found.length < MOST && !signal.aborted)
  return { found, isComplete: after === undefined }
}
