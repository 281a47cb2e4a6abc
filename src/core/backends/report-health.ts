import { secretFields } from '../../backends/config-fields.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import type { BackendHealth } from '../../domain/backend-health.ts'
import { hideValues } from '../../log/filter.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'
import { isFullAdministrator } from './backend-power.ts'

type BreakerState = 'closed' | 'open' | 'trying'

/** The health of a backend as an administrator sees it. */
export interface HealthReport extends BackendHealth {
  readonly breakers: { readonly issuing: BreakerState; readonly revoking: BreakerState }
  /** Since when Mayfly has the secret that it logs in with, epoch ms; undefined for a configuration without one. */
  readonly secretSince: number | undefined
}

/** A backend in use, as opposed to its stored form. */
export type Reported = OpenBackend

/** Words of the upstream are for the local host and holders of `admin:*` alone. */
export function reportHealth(
  core: Pick<Core, 'health'>,
  actor: Actor,
  backend: Pick<Reported, 'uid' | 'version' | 'config' | 'kind' | 'breakers' | 'rootSetAt' | 'createdAt'>,
): HealthReport {
  const { lastFailureDetail: detail, ...health } = core.health.of(backend)
  const { issuing, revoking } = backend.breakers
  const hasSecret = secretFields(backend.kind.config).length > 0
  return {
    ...health,
    lastFailureDetail: detail !== undefined && isFullAdministrator(actor) ? hideValues(detail) : undefined,
    breakers: { issuing: stateOf(issuing), revoking: stateOf(revoking) },
    secretSince: hasSecret ? (backend.rootSetAt ?? backend.createdAt) : undefined,
  }
}

/** As `reportHealth`, for one that was just stored; undefined when it has been deleted since. */
export async function reportStored(
  core: Pick<Core, 'health' | 'backends' | 'store'>,
  actor: Actor,
  uid: string,
): Promise<HealthReport | undefined> {
  const { byUid } = await core.backends.at(await core.store.generation())
  const backend = byUid.get(uid)
  return backend && reportHealth(core, actor, backend)
}

function stateOf(breaker: OpenBackend['breakers']['issuing']): BreakerState {
  if (breaker.wait() > 0) return 'open'
  return breaker.isTrying() ? 'trying' : 'closed'
}

/** Of all backends that are neither deleted nor being deleted, by name, without words of the upstream. */
export async function readAllHealth(core: Pick<Core, 'health' | 'backends' | 'store'>) {
  const { byName } = await core.backends.at(await core.store.generation())
  return [...byName.values()]
    .map((one) => ({ backend: one.name, health: { ...core.health.of(one), lastFailureDetail: undefined } }))
    .sort((a, b) => (a.backend < b.backend ? -1 : 1))
}
