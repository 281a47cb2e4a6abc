import { coversGranted } from '../../domain/scope.ts'
import type { ScopedCredential } from '../../store/tables/owned-credentials.ts'
import { traceOf } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { heldScopes } from '../held-scopes.ts'
import type { ScopePlan } from './plan-scopes.ts'

export type OutOfScope = ScopedCredential & { readonly isRevoked: boolean }

/** The living credentials of an agent, and those of them that its scopes no longer cover. */
export interface Beyond {
  /** Ids of all. */
  readonly living: readonly string[]
  readonly credentials: readonly ScopedCredential[]
}

/** How many revocations fit into the change itself. If there are more, the rest is revoked before it. */
export const REVOKED_AT_ONCE = 1_000
const PAGE = 2_000

export async function findBeyond(
  core: Pick<Core, 'store'>,
  { agent, scopes, grants }: ScopePlan & { readonly agent: { readonly id: string } },
): Promise<Beyond> {
  const held = heldScopes({ scopes }, grants)
  const living: ScopedCredential[] = []
  for (;;) {
    const cursor = living.at(-1)?.id ?? ''
    const page = await core.store.credentials.livingScopesOf(agent.id, core.store.now(), cursor, PAGE)
    living.push(...page)
    if (page.length < PAGE) break
  }
  return {
    living: living.map(({ id }) => id),
    credentials: living.filter((one) => !coversGranted(one.backend, held, one.scopes)),
  }
}

/** Revokes them, each with its entry, in changes that hold up no others for long. */
export async function revokeInSlices(
  core: Pick<Core, 'store'>,
  actor: Actor,
  { credentials }: Beyond,
): Promise<void> {
  const size = core.store.endSlice
  for (let start = 0; start < credentials.length; start += size) {
    const ids = credentials.slice(start, start + size).map(({ id }) => id)
    const ending = core.store.credentials.endSome(ids, 'revoked', core.store.now(), traceOf(actor))
    await commit(core, actor, ending, { urgent: true, bulk: true })
  }
}
