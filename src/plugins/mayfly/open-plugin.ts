import { isDeepStrictEqual } from 'node:util'
import type { CallOptions } from '@connectrpc/connect'
import {
  type Backend,
  type Handle,
  type Host,
  type IssueRequest,
  type Rotation,
  SECRET_MARK,
} from '../../backends/kind.ts'
import type { Description } from '../description.ts'
import type { PluginOptions } from '../process/isolation.ts'
import type { PinnedPlugin } from '../process/program.ts'
import { openSupervised } from '../process/supervise.ts'
import { hiderOf } from '../text.ts'
import { type Answering, ID_NAME, readIssued, readListed, readSecrets, readWarnings } from './answers.ts'
import { callKind, type KindClient, misconfigured, QUICK_MS, type Started, startClient } from './client.ts'
import { readDescription } from './describe.ts'

type Config = Readonly<Record<string, unknown>>
type Call = <O>(
  signal: AbortSignal,
  run: (client: KindClient, options: CallOptions) => Promise<O>,
) => Promise<O>

/** One backend: a process of its own, which no other configuration ever enters. */
export async function openPlugin(
  pinned: PinnedPlugin,
  { isolation, onEnd }: Pick<PluginOptions, 'isolation' | 'onEnd'>,
  config: Config,
  host: Host,
): Promise<Backend> {
  const { name, description } = pinned
  const hide = hiderOf(secretsOf(description, config))
  const parts = { name, isolation, log: host.log, hide, timeoutMs: host.timeoutMs }
  const supervised = await openSupervised(
    { ...parts, onEnd: (how) => onEnd?.(host.name, how) },
    (signal) => startClient(pinned, { ...parts, signal }),
    async (started, signal) => {
      await configure(started, pinned, config, host, { ...parts, signal })
      return started
    },
  )
  const call: Call = async (signal, run) => {
    const { value } = await supervised.get(signal)
    return callKind(value, { ...parts, signal }, run)
  }
  const of: Answering = { name, hide, revokes: description.revocation === 'exact', now: host.now }
  return backendOf(description, of, call, () => supervised.close())
}

/** A plugin that now says something else of itself than when it was added would be used against its kind. */
async function configure(
  started: Started,
  { name, description }: PinnedPlugin,
  config: Config,
  host: Host,
  parts: Parameters<typeof callKind>[1],
): Promise<void> {
  const quick = { ...parts, timeoutMs: QUICK_MS }
  const said = readDescription(
    await callKind(started, quick, (client, options) => client.describe({}, options)),
  )
  if (!isDeepStrictEqual(said, description)) {
    throw misconfigured(name, 'describes itself otherwise than when it was added; add it again')
  }
  const request = {
    configJson: JSON.stringify(config),
    name: host.name,
    uid: host.uid,
    issuer: host.issuer,
    issuerUrl: host.issuerUrl,
    timeoutMs: BigInt(host.timeoutMs),
  }
  await callKind(started, quick, (client, options) => client.open(request, options))
}

export function secretsOf({ config: schema }: Description, config: Config): string[] {
  const fields = Object.entries((schema['properties'] ?? {}) as Record<string, object>)
  const values = fields.filter(([, field]) => SECRET_MARK in field).map(([name]) => config[name])
  return values.flatMap(textsOf)
}

/** A secret may be a list, or an object. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

function backendOf(description: Description, of: Answering, call: Call, close: () => Promise<void>): Backend {
  const offers = new Set(description.offers)
  const keepUp = (signal: AbortSignal) => call(signal, (client, options) => client.keepUp({}, options))
  const retire = (signal: AbortSignal) => call(signal, (client, options) => client.retire({}, options))
  const common = {
    check: async (signal: AbortSignal) => {
      const { warnings } = await call(signal, (client, options) => client.check({}, options))
      return readWarnings(warnings, of)
    },
    issue: async (request: IssueRequest<unknown>, signal: AbortSignal) => {
      const reply = await call(signal, (client, options) => client.issue(issueOf(request), options))
      return readIssued(reply, request, of)
    },
    ...(offers.has('keepUp') ? { keepUp: async (signal: AbortSignal) => void (await keepUp(signal)) } : {}),
    ...(offers.has('retire') ? { retire: async (signal: AbortSignal) => void (await retire(signal)) } : {}),
    ...(offers.has('rotation') ? { rotation: rotationOf(description, of, call) } : {}),
    [Symbol.asyncDispose]: close,
  }
  if (description.revocation !== 'exact') return common
  return {
    ...common,
    async revoke(handle: Handle, signal: AbortSignal) {
      const { [ID_NAME]: id, ...own } = handle
      // Without a reply to `issue` there is only the id.
      const isLost = description.recovers && Object.keys(own).length === 0
      const request = { credentialId: String(id ?? ''), handleJson: isLost ? '' : JSON.stringify(own) }
      await call(signal, (client, options) => client.revoke(request, options))
    },
    recover: (credentialId) => (description.recovers ? { [ID_NAME]: credentialId } : undefined),
    ...(offers.has('list')
      ? {
          list: async (after: string | undefined, signal: AbortSignal) =>
            readListed(
              await call(signal, (client, options) => client.list({ after: after ?? '' }, options)),
              after,
              of,
            ),
        }
      : {}),
  }
}

function issueOf(request: IssueRequest<unknown>) {
  const { credentialId, agent, scopes, params, issuedAt, expiresAt } = request
  return {
    ...{ credentialId, agent: { id: agent.id, name: agent.name }, scopes: [...scopes] },
    paramsJson: JSON.stringify(params ?? {}),
    issuedAt: BigInt(issuedAt),
    expiresAt: BigInt(expiresAt),
  }
}

function rotationOf({ config }: Description, of: Answering, call: Call): Rotation {
  const known = Object.keys((config['properties'] ?? {}) as object)
  return {
    async propose(signal) {
      const { secrets } = await call(signal, (client, options) => client.proposeRoot({}, options))
      return readSecrets(secrets, known, of)
    },
    async adopt(next, signal) {
      await call(signal, (client, options) => client.adoptRoot({ secrets: { ...next } }, options))
    },
    async finish(old, signal) {
      await call(signal, (client, options) => client.finishRoot({ oldSecrets: { ...old } }, options))
    },
  }
}
