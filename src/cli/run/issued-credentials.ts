import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import { MayflyError } from '../../client/errors.ts'
import { isAnswer, isFinalAnswer } from '../../client/issue-outcome.ts'
import { newKey } from '../../client/new-key.ts'
import type { IssueRequest } from '../../client/wire.ts'
import { unlessAborted } from '../../domain/abort.ts'
import { CliError } from '../frame/failure.ts'
import { type HeldCredential, requireToken } from '../session/held-credential.ts'
import type { OpenRun } from './open-run.ts'

/** An issued credential and its lifetime by this machine's clock. */
export interface Issuance {
  readonly credential: HeldCredential
  /** Epoch milliseconds. The server sets the lifetime; we count it from the moment we asked. */
  readonly askedAt: number
  readonly endsAt: number
}

export interface Outcome {
  readonly id: string
  readonly backend: string
  readonly expires_at: string
  readonly revoked: boolean
}

/** What happens to the credentials of a run. */
export type IssueEvent =
  /** About to be sent; the server may carry it out from now on. */
  | { readonly asked: string; readonly request: IssueRequest }
  /** The answer to the request with this key. */
  | { readonly obtained: string; readonly key: string }
  /** Nothing was issued for this key. */
  | { readonly refused: string }
  | { readonly revoked: string }

/** Every credential of one run, so that none is forgotten. */
export interface IssuedCredentials {
  /** Adds a credential that another process obtained. */
  adopt(id: string, known?: Pick<Outcome, 'backend' | 'expires_at'>): void
  /** Adds a request that another process sent under this idempotency key, and whose answer nobody knows. */
  adoptRequest(key: string, request: IssueRequest): void
  /** Throws as `client.issue`. Records the reply before doing anything else with it. */
  obtain(request: IssueRequest): Promise<Issuance>
  /** Tries once. Returns whether it worked. */
  revoke(id: string): Promise<boolean>
  /** Drops requests under way; the server revokes what it cannot deliver. */
  hangUp(): void
  /** Waits for requests under way, then hangs up after `withinMs`. */
  settle(withinMs: number): Promise<void>
  /** Revokes all that are left, by the end of the run if there is one, with retries. Returns the last failure, if any. */
  revokeAll(signal: AbortSignal): Promise<unknown>
  /** In the order of issue. */
  outcomes(): Outcome[]
  /** Backends that may have issued a credential whose reply never arrived. */
  unknown(): string[]
}

const TRY_MS = 4_000
const WAITS_MS = [300, 1_000, 2_000]

const UNSEEN = { backend: '', expires_at: '' }
const NO_RUN = Promise.resolve(undefined)

/**
 * `tell` hears of each event; a request is sent only once `tell` has settled. With a run, requests wait for it and name it,
 * and its end revokes them all.
 */
export function trackIssued(
  client: Pick<Client, 'issue' | 'revoke'>,
  now: () => number,
  tell: (event: IssueEvent) => unknown = () => {},
  opening: Promise<Pick<OpenRun, 'id' | 'end'> | undefined> = NO_RUN,
): IssuedCredentials {
  const entries = new Map<string, Outcome>()
  const open = new Set<Promise<unknown>>()
  const line = new AbortController()
  /** Requests that the server may have carried out, with their idempotency keys. */
  const unanswered = new Map<IssueRequest, { readonly key: string; readonly askedAt: number }>()

  /** Reuses the key of an unanswered request: the server replays what it issued then, or issues now. */
  const ask = async (request: IssueRequest, signal: AbortSignal) => {
    const run = await unlessAborted(opening, signal)
    signal.throwIfAborted()
    const sent = run === undefined ? request : { ...request, run: run.id }
    const before = unanswered.get(request)
    const { key, askedAt } = before ?? { key: newKey(), askedAt: now() }
    unanswered.set(request, { key, askedAt })
    await tell({ asked: key, request: sent })
    try {
      const issued = await client.issue(sent, { signal, idempotencyKey: key })
      unanswered.delete(request)
      const { id, backend, expires_at } = issued
      entries.set(id, { id, backend, expires_at, revoked: false })
      void tell({ obtained: id, key })
      return { issued, askedAt }
    } catch (error) {
      if (before === undefined ? isAnswer(error) : isFinalAnswer(error)) {
        unanswered.delete(request)
        void tell({ refused: key })
      }
      throw error
    }
  }

  const obtain = async (request: IssueRequest): Promise<Issuance> => {
    const first = await ask(request, line.signal)
    // A replay of a credential that has ended comes without its secret: request a new one.
    const { issued, askedAt } = first.issued.token === undefined ? await ask(request, line.signal) : first
    const life = Date.parse(issued.expires_at) - Date.parse(issued.created_at)
    if (!(life > 0)) throw await expired(request, revokeOne(issued.id))
    return { credential: requireToken(issued), askedAt, endsAt: askedAt + life }
  }

  const revokeOne = async (id: string, signal?: AbortSignal): Promise<void> => {
    await client.revoke(id, { signal: briefly(signal) })
    ended(id)
  }

  const ended = (id: string): void => {
    const entry = entries.get(id)
    if (entry !== undefined) entries.set(id, { ...entry, revoked: true })
    void tell({ revoked: id })
  }

  const held = { entries, unanswered, ask, revokeOne, ended }
  const tryAll = async (signal: AbortSignal): Promise<unknown> => {
    const run = await opening.catch(() => undefined)
    return run === undefined ? endEach(held, signal) : endWithRun(held, run, signal)
  }

  return {
    adopt: (id, known = UNSEEN) => void entries.set(id, { id, ...known, revoked: false }),
    adoptRequest: (key, request) => void unanswered.set(request, { key, askedAt: now() }),
    obtain: (request) => {
      const under = obtain(request)
      open.add(under)
      return under.finally(() => open.delete(under))
    },
    revoke: (id) =>
      revokeOne(id).then(
        () => true,
        () => false,
      ),
    hangUp: () => line.abort(new Error('hung up')),
    settle: async (withinMs) => {
      const timer = setTimeout(() => line.abort(new Error('hung up')), withinMs)
      await Promise.allSettled(open)
      clearTimeout(timer)
    },
    revokeAll: (signal) => withRetries(tryAll, signal),
    outcomes: () => [...entries.values()],
    unknown: () => [...unanswered.keys()].map(({ backend }) => backend),
  }
}

interface Held {
  readonly entries: Map<string, Outcome>
  readonly unanswered: Map<IssueRequest, unknown>
  ask(request: IssueRequest, signal: AbortSignal): Promise<unknown>
  revokeOne(id: string, signal: AbortSignal): Promise<void>
  /** It has been revoked. */
  ended(id: string): void
}

const leftOf = ({ entries }: Held) => [...entries.values()].filter(({ revoked }) => !revoked)

/** Each by itself, so that each is gone upstream, too, when we exit. */
const revokeLeft = (held: Held, signal: AbortSignal) =>
  Promise.allSettled(leftOf(held).map(({ id }) => held.revokeOne(id, signal)))

/** Tries once. Returns a failure, if any. */
async function endEach(held: Held, signal: AbortSignal): Promise<unknown> {
  const requests = [...held.unanswered.keys()]
  const asked = await Promise.allSettled(requests.map((request) => held.ask(request, briefly(signal))))
  return failureIn([...asked, ...(await revokeLeft(held, signal))])
}

/** One request: with the run ends all that was issued for it, also what we have not heard of. */
async function endWithRun(held: Held, run: Pick<OpenRun, 'end'>, signal: AbortSignal): Promise<unknown> {
  try {
    await run.end({ signal: briefly(signal) })
  } catch (error) {
    // One that answers otherwise, such as a node of an older version, may revoke each by itself.
    if (error instanceof MayflyError) await revokeLeft(held, signal)
    // Without anything left, the run ends by itself, and nobody needs to wait.
    return leftOf(held).length + held.unanswered.size === 0 ? undefined : error
  }
  for (const { id } of leftOf(held)) held.ended(id)
  held.unanswered.clear()
  return undefined
}

const briefly = (signal?: AbortSignal) => {
  const timeout = AbortSignal.timeout(TRY_MS)
  return signal === undefined ? timeout : AbortSignal.any([signal, timeout])
}

const failureIn = (results: readonly PromiseSettledResult<unknown>[]): unknown =>
  results.find((one) => one.status === 'rejected')?.reason

/** Renewing such a credential would never end. */
async function expired({ backend }: IssueRequest, revoking: Promise<void>): Promise<CliError> {
  await revoking.catch(() => {})
  return new CliError('expired', `The server sent a credential of ${backend} that has expired.`, {
    hint: 'Tell the administrator of the server.',
  })
}

/** Returns the failure of the last try, if any. */
async function withRetries(
  work: (signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): Promise<unknown> {
  let failure = await work(signal)
  for (const wait of WAITS_MS) {
    if (failure === undefined || signal.aborted) break
    await pause(wait, signal).catch(() => {})
    if (!signal.aborted) failure = await work(signal)
  }
  return failure
}
