import type { Backend } from '../../../../src/client/wire.ts'
import { secondsOf } from '../../ui/lifetimes.tsx'
import type { Look } from '../../ui/status.tsx'

/** A closed reason in a list: `permission missing`. */
export const reasonWord = (reason: string | null | undefined): string =>
  (reason ?? 'failed').replaceAll('_', ' ')

export interface State {
  readonly look: Look
  readonly words: string
}

/** What stands out about a backend, the worst first; never empty. */
export function statesOf(backend: Backend, now: number): readonly [State, ...State[]] {
  const { health, unended, deletion, rotation } = backend
  const found: State[] = []
  const add = (isSo: boolean, look: Look, words: string) => isSo && found.push({ look, words })
  add(backend.broken === true, 'bad', 'cannot be opened')
  add(
    health?.state === 'down' && backend.broken !== true,
    'bad',
    `down: ${reasonWord(health?.last_failure_reason)}`,
  )
  add(unended !== undefined, 'bad', `${unended?.count ?? 0} not ended`)
  add(deletion !== undefined, 'wait', 'being deleted')
  add(health?.breakers.issuing === 'open', 'wait', 'issuing is paused')
  add(health?.breakers.revoking === 'open', 'wait', 'ending is paused')
  add(rotation !== undefined, 'wait', 'changing its secret')
  add(isSecretOld(backend, now), 'wait', 'its secret is old')
  const [first = calm(backend), ...rest] = found
  return [first, ...rest]
}

const calm = ({ health }: Backend): State =>
  health?.state === 'up' ? { look: 'ok', words: 'works' } : { look: 'off', words: 'not used yet' }

export const needsPerson = (backend: Backend, now: number): boolean =>
  statesOf(backend, now).some(({ look }) => look === 'bad' || look === 'wait')

/** When Mayfly's own secret is due for another one; null: no time is set, or there is no secret. */
export function secretDue({ health, rotate_root_after }: Backend): string | null {
  const seconds = rotate_root_after === undefined ? undefined : secondsOf(rotate_root_after)
  if (health?.secret_since === undefined || seconds === undefined) return null
  return new Date(Date.parse(health.secret_since) + seconds * 1_000).toISOString()
}

function isSecretOld(backend: Backend, now: number): boolean {
  const due = secretDue(backend)
  return due !== null && Date.parse(due) <= now
}

/** The filters of the list; all that are given must fit. */
export interface Wanted {
  readonly q?: string | undefined
  readonly kind?: string | undefined
  readonly state?: string | undefined
}

export function matching(
  backends: readonly Backend[],
  { q, kind, state }: Wanted,
  now: number,
): readonly Backend[] {
  const text = q?.toLowerCase()
  return backends.filter(
    (one) =>
      (text === undefined || `${one.name} ${one.description ?? ''}`.toLowerCase().includes(text)) &&
      (kind === undefined || one.type === kind) &&
      (state === undefined || isIn(one, state, now)),
  )
}

function isIn(backend: Backend, state: string, now: number): boolean {
  switch (state) {
    case 'attention':
      return needsPerson(backend, now)
    case 'down':
      return backend.health?.state === 'down' || backend.broken === true
    case 'unended':
      return backend.unended !== undefined
    case 'unused':
      return backend.health?.state === 'unknown'
    default:
      return true
  }
}

/** By kind, in the order of the kinds' names. */
export function byKind(backends: readonly Backend[]): readonly (readonly [string, readonly Backend[]])[] {
  const groups = Map.groupBy(backends, ({ type }) => type)
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
}
