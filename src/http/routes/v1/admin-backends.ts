import { checkBackend } from '../../../core/backends/check-backend.ts'
import { changeBackend, createBackend, type StoredNow } from '../../../core/backends/configure-backend.ts'
import { type ConfiguredBackend, shownConfig } from '../../../core/backends/definition.ts'
import { deleteBackend, readDeletion } from '../../../core/backends/delete-backend.ts'
import { listAllBackends, readAnyBackend } from '../../../core/backends/list-backends.ts'
import { type BackendFacts, readFacts } from '../../../core/backends/read-facts.ts'
import { reconcileBackend } from '../../../core/backends/reconcile-backend.ts'
import { type Reported, reportHealth, reportStored } from '../../../core/backends/report-health.ts'
import { rotateRoot } from '../../../core/backends/rotate-root.ts'
import type { Actor } from '../../../core/caller.ts'
import { tryBackend } from '../../../core/credentials/try-backend.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { formatRate } from '../../../domain/policy.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage, isAfter, sortedAfter } from '../paging.ts'
import { presentBackend } from '../present-backend.ts'
import { presentFailure, presentHealth } from '../present-health.ts'
import { presentTried } from '../present-tried.ts'
import { presentUseRules } from '../present-uses.ts'
import { optional, timestamp } from '../wire.ts'

export function adminBackendRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/backends', async (call) => {
    const all = await listAllBackends(core, call.actor.caller)
    const rest = all.filter((one) => isAfter(one.name, call.query.cursor))
    const page = firstPage(call, rest, ({ name }) => name)
    const known = await readFacts(core, page)
    return Promise.all(known.map(({ backend, facts }) => presentOpen(core, call.actor, backend, facts)))
  })

  addRoute(http, 'POST /v1/admin/backends', async ({ actor, body, query }) =>
    presentStored(core, actor, await createBackend(core, actor, body, query.check ?? true)),
  )

  addRoute(http, 'GET /v1/admin/backends/:name', async ({ actor, params }) => {
    const found = await readAnyBackend(core, actor.caller, params.name)
    const [one] = await readFacts(core, [found])
    return one && presentOpen(core, actor, found, one.facts)
  })

  addRoute(http, 'PUT /v1/admin/backends/:name', async ({ actor, params, body, query }) => {
    const options = { check: query.check ?? true, force: query.force ?? false }
    return presentStored(core, actor, await changeBackend(core, actor, params.name, body, options))
  })

  addRoute(http, 'DELETE /v1/admin/backends/:name', async ({ actor, params, query, reply }) => {
    const deletion = await deleteBackend(core, actor, params.name, query.force ?? false)
    if (deletion === undefined) return reply.code(204).send()
    const { name, since, remaining } = deletion
    const path = `/v1/admin/backends/${encodeURIComponent(name)}`
    reply.code(202).header('location', path)
    return { name, since: timestamp(since), remaining, poll_url: path }
  })
  upstreamRoutes(http)
}

/** What concerns the upstream as a whole, and the kinds. */
function upstreamRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/admin/backends/:name/check', async ({ actor, params }) => {
    const { backend, warnings } = await checkBackend(core, actor, params.name)
    return {
      name: backend.name,
      health: presentHealth(reportHealth(core, actor, backend)),
      ...optional('warnings', warnings.length === 0 ? undefined : warnings),
    }
  })

  addRoute(http, 'POST /v1/admin/backends/:name/try', async ({ actor, params, body }) =>
    presentTried(await tryBackend(core, actor, params.name, body?.scopes)),
  )

  addRoute(http, 'POST /v1/admin/backends/:name/rotate-root', async ({ actor, params }) => {
    const { name, fields, rotatedAt, isResumed, isFinished } = await rotateRoot(core, actor, params.name)
    return {
      name,
      fields: [...fields],
      rotated_at: timestamp(rotatedAt),
      resumed: isResumed,
      old_ended: isFinished,
    }
  })

  addRoute(http, 'POST /v1/admin/backends/:name/reconcile', async ({ actor, params, body }) => {
    const { name, seen, unowned, nextCursor } = await reconcileBackend(core, actor, params.name, body ?? {})
    return {
      name,
      seen,
      accounts: unowned.map(({ credentialId, expiresAt, outcome }) => ({
        credential_id: credentialId,
        ...optional('expires_at', expiresAt === undefined ? undefined : timestamp(expiresAt)),
        outcome,
      })),
      next_cursor: nextCursor ?? null,
    }
  })

  addRoute(http, 'GET /v1/admin/kinds', async (call) => {
    // Another node may have added a plugin.
    await http.core.backends.at(call.actor.caller.generation)
    const rest = sortedAfter([...http.core.backends.kinds.values()], call.query.cursor, ({ type }) => type)
    return firstPage(call, rest, ({ type }) => type).map((kind) => ({
      type: kind.type,
      title: kind.title,
      revocation: kind.revocation,
      ...optional('recovery', kind.recovery),
      ...optional('environment', kind.environment),
      scopes: {
        help: kind.scopes.help,
        examples: kind.scopes.forms.map(({ form }) => form),
        forms: [...kind.scopes.forms],
      },
      config: kind.config,
      params: kind.params,
    }))
  })
}

/** What was just stored, with what is known of its upstream. */
async function presentStored(core: Http['core'], actor: Actor, stored: StoredNow) {
  const health = await reportStored(core, actor, stored.uid)
  const [known] = await readFacts(core, [stored])
  return {
    ...present(stored),
    ...optional('health', health && presentHealth(health)),
    ...(known && presentFacts(known.facts)),
  }
}

async function presentOpen(core: Http['core'], actor: Actor, backend: Reported, facts: BackendFacts) {
  const shown = {
    ...present(backend),
    health: presentHealth(reportHealth(core, actor, backend)),
    ...presentFacts(facts),
  }
  if (backend.ending === null) return shown
  const { since, remaining } = await readDeletion(core, { ...backend, ending: backend.ending })
  return { ...shown, deletion: { since: timestamp(since), remaining } }
}

function presentFacts({ unended, live, lastSuccess, lastFailure: failure }: BackendFacts) {
  return {
    ...optional('unended', unended && { count: unended.count, since: timestamp(unended.since) }),
    live,
    ...optional('last_revocation', lastSuccess === undefined ? undefined : timestamp(lastSuccess)),
    ...optional('last_revocation_failure', presentFailure(failure)),
  }
}

function presentRotation({ since, proposed }: NonNullable<ConfiguredBackend['rotation']>) {
  return { since: timestamp(since), stage: proposed === undefined ? 'finishing' : 'proposed' } as const
}

function present(backend: ConfiguredBackend & { readonly warnings?: readonly string[] }) {
  return {
    ...presentBackend(backend),
    name: backend.name,
    created_at: timestamp(backend.createdAt),
    ...optional('rate', backend.rate === undefined ? undefined : formatRate(backend.rate)),
    ...optional('max_active', backend.maxActive),
    ...optional(
      'rotate_root_after',
      backend.rotateRootAfterMs === null ? undefined : formatDuration(backend.rotateRootAfterMs),
    ),
    config: shownConfig(backend),
    ...optional('uses', backend.uses === null ? undefined : presentUseRules(backend.uses)),
    ...optional('rotation', backend.rotation && presentRotation(backend.rotation)),
    ...optional('warnings', backend.warnings?.length === 0 ? undefined : backend.warnings),
  }
}
