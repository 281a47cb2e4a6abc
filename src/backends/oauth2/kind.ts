import { randomBytes } from 'node:crypto'
import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, denied, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { connectionError } from '../../egress/network.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Handle, Host, Issued, IssueRequest } from '../kind.ts'
import { readNamed } from '../named-scopes.ts'
import { type Config, config, gives, requireConsistent, revocableConfig, translate } from './config.ts'
import { createRefresh } from './refresh.ts'
import { createServer, type Server, type Token } from './server.ts'

const shared = {
  /** Only the reply names a token. */
  recovery: 'none',
  scopes: {
    valid: isScope,
    gives,
    forms: [
      { form: '<scope>', gives: 'do what the server takes this scope for' },
      { form: '*', gives: 'do all that the configured scopes permit' },
    ],
    help:
      'Scopes of the authorization server, or the names that the backend configures for them. ' +
      'A * is all configured scopes that it matches; without configured ones there is no *.',
  },
  validate: requireConsistent,
} as const

/** An access token of any authorization server (RFC 6749), which lasts as long as the server says. */
export const oauth2 = defineKind({
  ...shared,
  type: 'oauth2',
  title: 'OAuth 2.0',
  config,
  revocation: 'expiry_only',
  async open(settings, host) {
    const tokens = await openTokens(settings, host)
    return {
      check: tokens.check,
      issue: async (request, signal) => (await tokens.issue(request, signal)).issued,
      [Symbol.asyncDispose]: tokens.close,
    }
  },
})

/** The same at a server that revokes (RFC 7009). */
export const oauth2Revocable = defineKind({
  ...shared,
  type: 'oauth2-revocable',
  title: 'OAuth 2.0 with revocation',
  config: revocableConfig,
  revocation: 'exact',
  async open(settings, host): Promise<Opened> {
    const tokens = await openTokens(settings, host)
    return {
      check: tokens.check,
      async issue(request, signal) {
        const { issued, token } = await tokens.issue(request, signal)
        // Sealed at rest: the server knows a token only by itself.
        return { ...issued, handle: { token } }
      },
      revoke: (handle, signal) => tokens.server.revoke(tokenOf(handle), signal),
      recover: () => undefined,
      [Symbol.asyncDispose]: tokens.close,
    }
  },
})

function tokenOf(handle: Handle): string {
  const token = handle['token']
  if (typeof token !== 'string') throw misconfigured('The handle does not hold a token.')
  return token
}

interface Tokens {
  readonly server: Server
  check(signal: AbortSignal): Promise<readonly string[]>
  issue(
    request: IssueRequest<unknown>,
    signal: AbortSignal,
  ): Promise<{ readonly issued: Issued; readonly token: string }>
  close(): Promise<void>
}

async function openTokens(settings: Config, host: Host): Promise<Tokens> {
  const server = await createServer(settings, host)
  const refresh = createRefresh(settings, server, host)
  const obtain = createObtain(settings, host, server, refresh.use)
  return {
    server,
    check: (signal) => tryOut(settings, host, { server, obtain }, signal),
    async issue({ scopes, agent }, signal) {
      const asked = translate(settings, scopes)
      const now = host.now()
      const token = await obtain(asked, agent, signal)
      const upstreamExpiresAt = expiryOf(settings, token, now)
      const facts = { scope: token.scope ?? asked.join(' ') }
      const issued = { secret: token.accessToken, facts }
      return {
        issued: upstreamExpiresAt === undefined ? issued : { ...issued, upstreamExpiresAt },
        token: token.accessToken,
      }
    },
    async close() {
      await refresh.idle()
    },
  }
}

type Obtain = (scope: readonly string[], agent: Agent, signal: AbortSignal) => Promise<Token>

/** Obtains a token and, where that is configured, ends it: a right to do so that is missing is found here. */
async function tryOut(
  settings: Config,
  host: Host,
  { server, obtain }: { readonly server: Server; readonly obtain: Obtain },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const scope = [...new Set(readNamed(settings.scopes ?? []).flatMap(([, theirs]) => theirs.split(' ')))]
  const now = host.now()
  const rotates = settings.grant === 'refresh_token' && !settings.refresh_token_reusable
  if (rotates && settings.revocation_endpoint === undefined) return probe(server, signal)
  const token = await obtain(scope, host, signal).catch((error: unknown) => {
    // The login and the grant were accepted; without configured scopes this names none.
    if (error instanceof BackendError && error.fault === 'unsupported' && scope.length === 0) return
    throw error
  })
  if (token === undefined) return []
  expiryOf(settings, token, now)
  if (settings.revocation_endpoint === undefined) return []
  await server.revoke(token.accessToken, signal)
  if (settings.grant !== 'refresh_token') return []
  // RFC 7009 §2.1: a server may revoke the refresh token with the access token.
  const next = await obtain(scope, host, signal).catch((error: unknown) => {
    if (!(error instanceof BackendError) || error.fault !== 'denied') throw error
    throw misconfigured(ENDS_ALL, { cause: error })
  })
  await server.revoke(next.accessToken, signal)
  return []
}

/**
 * Where each use of the refresh token replaces it, the check must not: if the backend is not stored in the end, the new one would
 * be lost. A server that refuses an unknown one as such (RFC 6749 §5.2) has accepted the login and the grant.
 */
async function probe(server: Server, signal: AbortSignal): Promise<readonly string[]> {
  const form = { grant_type: 'refresh_token', refresh_token: randomBytes(32).toString('base64url') }
  await server.token(form, signal).catch((error: unknown) => {
    if (!(error instanceof BackendError) || error.cause !== 'invalid_grant') throw error
  })
  return []
}

const ENDS_ALL =
  'This authorization server ends the whole sign-in when one access token is revoked; use the kind oauth2 with a new refresh token.'

const GRANTS_MORE =
  "The authorization server grants scopes that were not asked for: remove the default scopes of Mayfly's client there, or name them " +
  'in "scopes" with those that agents ask for.'

type Agent = Pick<Host, 'name'> & { readonly id?: string }

/** Returns what obtains a token for exactly these scopes. One that nobody will receive is ended, if that can be. */
function createObtain(
  settings: Config,
  host: Host,
  server: Server,
  refresh: ReturnType<typeof createRefresh>['use'],
): Obtain {
  const { audience, resource, grant } = settings
  const targets = Object.entries({ audience, resource }).filter(([, value]) => value !== undefined)

  async function obtain(scope: readonly string[], agent: Agent, signal: AbortSignal): Promise<Token> {
    const form = {
      ...Object.fromEntries(targets),
      ...(scope.length === 0 ? {} : { scope: scope.join(' ') }),
    }
    if (grant === 'refresh_token') return refresh(form, signal)
    const more = grant === 'token_exchange' ? await subjectOf(settings, host, agent) : { grant_type: grant }
    return server.token({ ...form, ...more }, signal)
  }

  async function discard({ accessToken }: Token): Promise<void> {
    if (settings.revocation_endpoint === undefined) return
    await server.revoke(accessToken, AbortSignal.timeout(host.timeoutMs)).catch((error: unknown) => {
      host.log.warn({ detail: String(error) }, 'a token that nobody received could not be revoked')
    })
  }

  return async (scope, agent, signal) => {
    const obtaining = obtain(scope, agent, signal)
    const token = await unlessAborted(obtaining, signal, discard).catch((error: unknown) => {
      throw error instanceof BackendError ? error : connectionError(error, 'The authorization server', signal)
    })
    const granted = token.scope?.split(' ').filter((text) => text !== '') ?? []
    if (scope.length > 0 && !granted.every((text) => scope.includes(text))) {
      await discard(token)
      throw denied(GRANTS_MORE)
    }
    return token
  }
}

/** Epoch ms. Unknown only where the token can be revoked. */
function expiryOf(settings: Config, token: Token, asked: number): number | undefined {
  const { token_lifetime: assumed, revocation_endpoint: revocation } = settings
  const known = token.expiresAt ?? (assumed === undefined ? undefined : asked + assumed * 1000)
  if (known !== undefined || revocation !== undefined) return known
  throw unavailable(
    'The authorization server does not say how long its tokens live; configure "token_lifetime".',
  )
}

/** RFC 8693 §2.1. */
async function subjectOf(settings: Config, host: Host, agent: Agent): Promise<Record<string, string>> {
  const ours = () =>
    host.idToken({
      audience: settings.subject_audience ?? settings.token_endpoint,
      subject: agent.id ?? host.uid,
      expiresAt: host.now() + 60_000,
      claims: { backend: host.name, agent_name: agent.name },
    })
  return {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: settings.subject_token ?? (await ours()),
    subject_token_type: settings.subject_token_type,
  }
}
