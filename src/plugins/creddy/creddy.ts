import { type CallOptions, Code, ConnectError } from '@connectrpc/connect'
import type { Backend, Handle, Host, Issued, IssueRequest } from '../../backends/kind.ts'
import { BackendError, misconfigured, unavailable, unsupported } from '../../domain/backend-error.ts'
import { garbage } from '../mayfly/answers.ts'
import { endIfDead } from '../mayfly/client.ts'
import type { PluginProcess } from '../process/process.ts'
import { unlessLate } from '../process/supervise.ts'
import type { GetCredentialResponse } from '../proto/creddy_plugin_v1_pb.ts'
import { cleanMessage, type Hide } from '../text.ts'
import { type CreddyClient, type CreddyParams, parametersOf } from './description.ts'
import { type ScopePattern, theirScope } from './scopes.ts'

/** A process that has its configuration. */
export interface CreddySession {
  readonly process: PluginProcess
  readonly client: CreddyClient
  readonly patterns: readonly ScopePattern[]
}

export interface CreddyParts {
  /** The name of the plugin, for messages. */
  readonly plugin: string
  /** What it calls itself, and looks for in scopes. */
  readonly ownName: string
  readonly host: Pick<Host, 'name' | 'now' | 'timeoutMs' | 'log'>
  readonly hide: Hide
  /** The running process, or a new one. Throws `BackendError`. */
  connect(signal: AbortSignal): Promise<CreddySession>
  close(): Promise<void>
}

const MAX_VALUE = 64 * 1024
const MAX_FACTS = 32
/** The plugin counts from when it was asked, in whole seconds and by its own clock. */
const CLOCKS_MS = 5_000
/** A call that was given up is followed so long. */
const LATE_MS = 300_000
/** How long closing waits for the answers to calls that were given up. */
const CLOSE_MS = 1_500

/** A backend of a plugin of the protocol `creddy.plugin.v1`. The texts of its errors go to the log only: anything may be in them. */
export function creddyBackend(parts: CreddyParts): Backend<CreddyParams> {
  const late = new Set<Promise<void>>()
  return {
    async check(signal) {
      const { valid, error } = await call(parts, signal, ({ client }, options) =>
        client.validate({}, options),
      )
      if (!valid) throw failed(parts, 'reports that its configuration or its upstream does not work', error)
      return []
    },
    issue: (request, signal) => issueAt(parts, request, signal, (answer) => follow(parts, late, answer)),
    revoke: (handle, signal) => revokeAt(parts, handle, signal),
    recover: () => undefined,
    async [Symbol.asyncDispose]() {
      await Promise.race([Promise.all(late), new Promise((resolve) => setTimeout(resolve, CLOSE_MS))])
      await parts.close()
    },
  }
}

async function issueAt(
  parts: CreddyParts,
  request: IssueRequest<CreddyParams>,
  signal: AbortSignal,
  onLate: (answer: Promise<GetCredentialResponse>) => void,
): Promise<Issued> {
  const [relative, ...others] = request.scopes
  if (relative === undefined || others.length > 0) {
    throw unsupported('A credential of this backend has exactly one scope; name it.')
  }
  const ttlSeconds = Math.floor((request.expiresAt - request.issuedAt) / 1_000)
  const answer = await call(parts, signal, async ({ client, patterns }, options) => {
    const names = { plugin: parts.ownName, backend: parts.host.name }
    const scope = theirScope(names, patterns, relative)
    await requireMatch(client, scope, options)
    const agent = { id: request.agent.id, name: request.agent.name, scopes: [scope] }
    const asked = { agent, scope, ttlSeconds: BigInt(ttlSeconds), parameters: parametersOf(request.params) }
    // Without the signal: a call that is cancelled leaves behind what nobody can name any more.
    const asking = client.getCredential(asked, { timeoutMs: LATE_MS })
    return unlessLate(asking, signal, parts.plugin).catch((error: unknown) => {
      if (signal.aborted) onLate(asking)
      throw error
    })
  })
  if (answer.error !== '') throw failed(parts, 'did not issue', answer.error)
  return accept(parts, request, answer)
}

/** Says that the request is at fault, and not the plugin, before anything is made. */
async function requireMatch(client: CreddyClient, scope: string, options: CallOptions): Promise<void> {
  const { matches } = await client.matchScope({ scope }, options).catch((error: unknown) => {
    if (error instanceof ConnectError && error.code === Code.Unimplemented) return { matches: true }
    throw error
  })
  if (!matches) throw unsupported('The plugin of this backend does not know the scope.')
}

/** What answers after its call was given up is revoked at once: nobody gets it, and only this answer names it. */
function follow(parts: CreddyParts, late: Set<Promise<void>>, asking: Promise<GetCredentialResponse>): void {
  const { plugin, host } = parts
  const done = asking
    .then(async ({ externalId, error }) => {
      if (error !== '') return
      if (externalId !== '') await revokeNow(parts, externalId, AbortSignal.timeout(host.timeoutMs))
      host.log.warn({ plugin, revoked: externalId !== '' }, 'The plugin issued too late.')
    })
    .catch((error: unknown) => {
      host.log.warn(
        { plugin, detail: detailOf(parts, error) },
        'What the plugin issued too late may be left.',
      )
    })
    .finally(() => late.delete(done))
  late.add(done)
}

async function accept(
  parts: CreddyParts,
  { expiresAt: asked }: IssueRequest<CreddyParams>,
  answer: GetCredentialResponse,
): Promise<Issued> {
  const { value, externalId } = answer
  const now = parts.host.now()
  // Zero, and Go's zero time, which is before 1970: the upstream knows no expiry.
  const ends = answer.expiresAtUnix > 0n ? Number(answer.expiresAtUnix) * 1_000 : undefined
  if (value === '' || value.length > MAX_VALUE)
    return undo(parts, externalId, 'without a value, or with one that is too long')
  if (ends !== undefined && (ends <= now || !Number.isSafeInteger(ends))) {
    return undo(parts, externalId, 'with an expiry that has passed')
  }
  if (externalId === '' && (ends === undefined || ends > asked + CLOCKS_MS)) {
    return undo(parts, externalId, 'with what neither ends in time nor can be revoked')
  }
  return {
    secret: value,
    handle: { external_id: externalId, expires_at: ends ?? null },
    facts: factsOf(parts, answer),
    ...(ends === undefined ? {} : { upstreamExpiresAt: ends }),
  }
}

/** Of a credential that nobody may get. Once it is revoked, it is certain that nothing exists. */
async function undo(parts: CreddyParts, externalId: string, what: string): Promise<never> {
  const answered = garbage(parts.plugin, what)
  if (externalId === '') throw answered
  try {
    await revokeNow(parts, externalId, AbortSignal.timeout(parts.host.timeoutMs))
  } catch (cause) {
    throw unavailable(answered.message, { cause, detail: detailOf(parts, cause) })
  }
  throw misconfigured(answered.message)
}

async function revokeAt(parts: CreddyParts, handle: Handle, signal: AbortSignal): Promise<void> {
  const { external_id: externalId, expires_at: ends } = handle
  if (typeof externalId !== 'string') {
    throw misconfigured('The handle does not name what the plugin issued.')
  }
  // What the upstream has ended itself needs no revocation, and many a plugin fails to do it.
  const hasEnded = typeof ends === 'number' && parts.host.now() > ends + CLOCKS_MS
  if (externalId === '') {
    if (hasEnded) return
    const says = `The plugin ${parts.plugin} cannot revoke this credential; it lasts until its own expiry.`
    throw misconfigured(says)
  }
  try {
    await revokeNow(parts, externalId, signal)
  } catch (error) {
    if (!hasEnded || signal.aborted) throw error
  }
}

async function revokeNow(parts: CreddyParts, externalId: string, signal: AbortSignal): Promise<void> {
  const { revoked, error } = await call(parts, signal, ({ client }, options) =>
    client.revokeCredential({ externalId }, options),
  )
  if (!revoked || error !== '') throw failed(parts, 'did not revoke', error)
}

async function call<T>(
  parts: CreddyParts,
  signal: AbortSignal,
  work: (session: CreddySession, options: CallOptions) => Promise<T>,
): Promise<T> {
  const session = await parts.connect(signal)
  try {
    return await work(session, { signal, timeoutMs: parts.host.timeoutMs })
  } catch (error) {
    const fault = faultOf(parts, error, signal)
    if (fault.fault === 'timeout') void endIfDead(session.process, parts.host.timeoutMs)
    throw fault
  }
}

/** The call itself failed: the process ended, or does not answer. This protocol gives the codes of gRPC no meaning. */
function faultOf(parts: CreddyParts, error: unknown, signal: AbortSignal): BackendError {
  if (error instanceof BackendError) return error
  const options = { cause: error, detail: detailOf(parts, error) }
  return signal.aborted
    ? new BackendError('timeout', `The plugin ${parts.plugin} did not answer in time.`, options)
    : unavailable(`The plugin ${parts.plugin} failed.`, options)
}

/** It answered that it failed, not why in a form to rely on: whether something exists upstream is open. */
function failed(parts: CreddyParts, what: string, error: string): BackendError {
  const detail = cleanMessage(error, parts.hide)
  return unavailable(`The plugin ${parts.plugin} ${what}.`, { detail })
}

function detailOf({ hide }: CreddyParts, error: unknown): string {
  const own = error instanceof BackendError ? error.detail : undefined
  return cleanMessage(own ?? (error instanceof Error ? error.message : String(error)), hide)
}

const SECRET_NAME = /pass|secret|token|key|credential|auth/i

/** For the audit, which is never secret: without what is, or is called, one. */
function factsOf({ hide }: CreddyParts, { value, metadata }: GetCredentialResponse): Record<string, string> {
  const entries = Object.entries(metadata)
    .filter(
      ([name, text]) => /^\w[\w.-]{0,63}$/.test(name) && !SECRET_NAME.test(name) && !text.includes(value),
    )
    .map(([name, text]) => [name, cleanMessage(text, hide)] as const)
  return Object.fromEntries(entries.slice(0, MAX_FACTS))
}
