import { Code, ConnectError } from '@connectrpc/connect'
import type { Backend, Handle, IssueRequest } from '../backends/kind.ts'
import { BackendError, type Fault, misconfigured } from '../domain/backend-error.ts'
import type { IssueRequest as IssueMessage, Kind, OpenRequest } from '../plugins/proto/mayfly_plugin_v1_pb.ts'
import type { DefinedKind } from './define-kind.ts'
import { createHost } from './host.ts'
import type { CallContext, Methods } from './unary-server.ts'

const CODES: Readonly<Record<Fault, Code>> = {
  unavailable: Code.Unavailable,
  timeout: Code.DeadlineExceeded,
  denied: Code.PermissionDenied,
  misconfigured: Code.FailedPrecondition,
  unsupported: Code.InvalidArgument,
}
const LONGEST_DETAIL = 1_000

function toConnectError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error
  if (!(error instanceof BackendError)) {
    // A fault of the plugin: its words may hold anything, so they go to the log of its own process alone.
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
    return new ConnectError('the plugin failed', Code.Internal)
  }
  const detail = error.detail?.replace(/[^\x20-\x7e]+/g, ' ').slice(0, LONGEST_DETAIL)
  return new ConnectError(
    error.message,
    error.isLogin ? Code.Unauthenticated : CODES[error.fault],
    detail === undefined ? undefined : { 'mayfly-detail': detail },
  )
}

type Method<I, O> = (request: I, context: CallContext) => O | Promise<O>

function guarded<I, O>(run: Method<I, O>): Method<I, O> {
  return async (request, context) => {
    try {
      return await run(request, context)
    } catch (error) {
      throw toConnectError(error)
    }
  }
}

const unsupported = (what: string) => misconfigured(`This plugin cannot ${what}.`)

export function createService(kind: DefinedKind): Methods<typeof Kind> {
  let opening: Promise<Backend> | undefined
  const backend = () => {
    if (opening === undefined) throw misconfigured('The plugin has no configuration yet.')
    return opening
  }
  const issues = createIssues()
  return {
    describe: guarded(() => describe(kind)),
    complete: guarded(async ({ configJson }) => {
      if (kind.complete === undefined) throw unsupported('complete a configuration')
      return { configJson: JSON.stringify(await kind.complete(JSON.parse(configJson))) }
    }),
    open: guarded(async (request) => {
      if (opening !== undefined) throw misconfigured('The plugin has a configuration.')
      opening = open(kind, request)
      await opening
      return {}
    }),
    check: guarded(async (_, { signal }) => ({ warnings: [...(await (await backend()).check(signal))] })),
    issue: guarded(async (message, { signal }) => {
      const request = readRequest(kind, message)
      const open = await backend()
      return issues.run(request.credentialId, () => issue(open, request, signal))
    }),
    revoke: guarded(async ({ credentialId, handleJson }, { signal }) => {
      const open = await backend()
      if (open.revoke === undefined) throw unsupported('revoke')
      // An issue that was given up may still be under way.
      await issues.ended(credentialId)
      await open.revoke(handleOf(open, credentialId, handleJson), signal)
      return {}
    }),
    list: guarded(async ({ after }, { signal }) => {
      const page = await (await backend()).list?.(after === '' ? undefined : after, signal)
      if (page === undefined) throw unsupported('list')
      const items = page.items.map(({ credentialId, handle, expiresAt = 0 }) => ({
        ...{ credentialId, handleJson: JSON.stringify(handle), expiresAt: BigInt(expiresAt) },
      }))
      return { items, next: page.next ?? '' }
    }),
    ...upkeep(backend),
  }
}

function upkeep(backend: () => Promise<Backend>) {
  const rotation = async () => {
    const { rotation: found } = await backend()
    if (found === undefined) throw unsupported('rotate its secrets')
    return found
  }
  return {
    keepUp: guarded(async (_: object, { signal }) => {
      await (await backend()).keepUp?.(signal)
      return {}
    }),
    retire: guarded(async (_: object, { signal }) => {
      await (await backend()).retire?.(signal)
      return {}
    }),
    proposeRoot: guarded(async (_: object, { signal }) => ({
      secrets: { ...(await (await rotation()).propose(signal)) },
    })),
    adoptRoot: guarded(async ({ secrets }: { secrets: Record<string, string> }, { signal }) => {
      await (await rotation()).adopt(secrets, signal)
      return {}
    }),
    finishRoot: guarded(async ({ oldSecrets }: { oldSecrets: Record<string, string> }, { signal }) => {
      await (await rotation()).finish?.(oldSecrets, signal)
      return {}
    }),
  }
}

function open(kind: DefinedKind, request: OpenRequest): Promise<Backend> {
  const config = JSON.parse(request.configJson)
  return kind.open(config, createHost(request, kind, config))
}

function describe(kind: DefinedKind) {
  const { limits, scopes, offers } = kind
  return {
    type: kind.type,
    title: kind.title,
    version: kind.version,
    configSchemaJson: JSON.stringify(kind.config),
    paramsSchemaJson: JSON.stringify(kind.params),
    minTtlMs: BigInt(limits.minTtlMs ?? 0),
    maxTtlMs: BigInt(limits.maxTtlMs ?? 0),
    limitsWhy: limits.why ?? '',
    revokes: kind.revocation === 'exact',
    recovers: kind.revocation === 'exact' && kind.recovery !== 'none',
    scopes: scopes.forms.map(({ form, gives }) => ({ form, gives })),
    scopesHelp: scopes.help,
    environment: { ...kind.environment },
    completes: kind.complete !== undefined,
    lists: offers.includes('list'),
    keepsUp: offers.includes('keepUp'),
    retires: offers.includes('retire'),
    rotates: offers.includes('rotation'),
  }
}

function readRequest(kind: DefinedKind, message: IssueMessage): IssueRequest<unknown> {
  const { credentialId, agent, scopes, paramsJson } = message
  const unknown = scopes.find((scope) => !kind.scopes.valid(scope))
  if (unknown !== undefined) throw unsupported(kind.scopes.help)
  return {
    ...{ credentialId, agent: { id: agent?.id ?? '', name: agent?.name ?? '' }, scopes },
    params: paramsJson === '' ? {} : JSON.parse(paramsJson),
    issuedAt: Number(message.issuedAt),
    expiresAt: Number(message.expiresAt),
  }
}

async function issue(backend: Backend, request: IssueRequest<unknown>, signal: AbortSignal) {
  const issued = await backend.issue(request, signal)
  const json = (value: object | undefined) => (value === undefined ? '' : JSON.stringify(value))
  return {
    secret: issued.secret ?? '',
    fieldsJson: json(issued.fields),
    upstreamExpiresAt: BigInt(issued.upstreamExpiresAt ?? 0),
    handleJson: json(issued.handle),
    factsJson: json(issued.facts),
  }
}

function handleOf(backend: Backend, credentialId: string, json: string): Handle {
  const handle = json === '' ? backend.recover?.(credentialId) : (JSON.parse(json) as Handle)
  if (handle !== undefined) return handle
  throw misconfigured('Without the reply to its issue this credential cannot be found.')
}

/** The issues under way, by the id of the credential. */
function createIssues() {
  const running = new Map<string, Promise<unknown>>()
  return {
    async run<T>(id: string, work: () => Promise<T>): Promise<T> {
      const issuing = work()
      running.set(id, issuing)
      try {
        return await issuing
      } finally {
        running.delete(id)
      }
    },
    async ended(id: string): Promise<void> {
      await running.get(id)?.catch(() => undefined)
    },
  }
}
