import type { KeyObject } from 'node:crypto'
import { BackendError, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { HOUR_MS } from '../../domain/limits.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Handle, Host, Issued, IssueRequest } from '../kind.ts'
import { createClient, type GitHub, type Installation, type Token, type TokenPlan } from './client.ts'
import { type Config, config, enterpriseHost, type Params, params, requireConsistent } from './config.ts'
import { accountOf, canGive, parseWishes, planToken, rank } from './plan.ts'
import { isLevel, PERMISSIONS, parseScope, SCOPE_FORMS, SCOPE_HELP } from './scopes.ts'
import { usesOf } from './uses.ts'

const VARIABLES = { GITHUB_TOKEN: '{secret}', GH_TOKEN: '{secret}' }
/** What gh reads for any host but github.com (`gh help environment`). */
const ENTERPRISE_VARIABLES = { GH_ENTERPRISE_TOKEN: '{secret}', GH_HOST: '{host}' }

/** How long installations and their repositories are assumed to be unchanged. */
const KNOWN_MS = 60_000
/** The end of a token by GitHub's clock, which differs from ours. */
const CLOCK_MS = 60_000

/**
 * Installation access tokens of a GitHub App ("Create an installation access token for an app"), for the repositories and
 * permissions that the scopes name. Revoking needs the token itself, so it is part of the handle.
 */
export const github = defineKind({
  type: 'github',
  title: 'GitHub',
  config,
  params,
  limits: { maxTtlMs: HOUR_MS, why: 'GitHub ends a token of an installation after an hour.' },
  revocation: 'exact',
  recovery: 'none',
  scopes: {
    valid: (scope) => parseScope(scope) !== undefined,
    gives: canGive,
    forms: SCOPE_FORMS,
    help: SCOPE_HELP,
  },
  environment: { ...VARIABLES, ...ENTERPRISE_VARIABLES },
  environmentFor({ base_url }) {
    const host = enterpriseHost(base_url)
    return host === undefined ? VARIABLES : { ...VARIABLES, ...ENTERPRISE_VARIABLES, GH_HOST: host }
  },
  uses: usesOf,
  validate: requireConsistent,
  open: openGitHub,
})

async function openGitHub(settings: Config, host: Host, key: KeyObject): Promise<Opened<Params>> {
  const client = createClient(settings, key, host)
  const known = new Map<string, { readonly at: number; readonly value: unknown }>()

  async function remember<T>(name: string, load: () => Promise<T>): Promise<T> {
    const found = known.get(name)
    if (found !== undefined && Math.abs(host.now() - found.at) < KNOWN_MS) return found.value as T
    const value = await load()
    known.set(name, { at: host.now(), value })
    return value
  }

  const installationOf = (owner: string | undefined, signal: AbortSignal): Promise<Installation> =>
    remember(`installation of ${owner}`, () => client.installationOf(owner, signal))

  /** Throws where the configuration names no account, and neither does the request. */
  async function findInstallation(request: IssueRequest<Params>, signal: AbortSignal) {
    const wishes = parseWishes(request.scopes)
    const fixed =
      settings.installation_id === undefined ? undefined : await installationOf(settings.owner, signal)
    const owner = accountOf(fixed?.owner ?? settings.owner, wishes, request.params)
    return { wishes, installation: fixed ?? (await installationOf(owner, signal)) }
  }

  async function tryIssue(request: IssueRequest<Params>, signal: AbortSignal): Promise<Issued> {
    const { wishes, installation } = await findInstallation(request, signal)
    const list = () =>
      remember(`repositories of ${installation.id}`, () => client.listRepositories(installation.id, signal))
    const plan = await planToken(wishes, request.params, installation, list)
    const created = await client.createToken(installation.id, plan, signal)
    await requireNarrow(client, created, plan, signal)
    return present(created, plan, installation)
  }

  return {
    check: (signal) => preflight(client, settings, signal),
    async issue(request, signal) {
      const wasKnown = known.size > 0
      try {
        return await tryIssue(request, signal)
      } catch (error) {
        // Our data may be out of date: the App was installed again, a repository was added or removed.
        const mayBeOld = error instanceof BackendError && /unsupported|misconfigured/.test(error.fault)
        if (!wasKnown || !mayBeOld) throw error
        known.clear()
        return tryIssue(request, signal)
      }
    },
    async revoke(handle, signal) {
      const { token, expiresAt } = readHandle(handle)
      if (host.now() > expiresAt + CLOCK_MS) return
      await client.endToken(token, signal)
    },
    recover: () => undefined,
    async [Symbol.asyncDispose]() {
      known.clear()
    },
  }
}

function readHandle({ token, expires_at: expiresAt }: Handle) {
  if (typeof token !== 'string' || typeof expiresAt !== 'number') {
    throw misconfigured('The handle does not hold a token of GitHub.')
  }
  return { token, expiresAt }
}

function present({ token, expiresAt }: Token, plan: TokenPlan, { owner, id }: Installation): Issued {
  return {
    secret: token,
    upstreamExpiresAt: expiresAt,
    handle: { token, expires_at: expiresAt },
    facts: {
      owner,
      installation_id: id,
      repositories: plan.repositories.length,
      permissions: Object.entries(plan.permissions).join(' ').replaceAll(',', ':'),
    },
  }
}

/** An Enterprise Server that does not know a field would ignore it. Ends a token that can do more, and throws. */
async function requireNarrow(
  client: GitHub,
  { token, permissions, repositories }: Token,
  plan: TokenPlan,
  signal: AbortSignal,
): Promise<void> {
  const wanted = new Set(plan.repositories.map((name) => name.toLowerCase()))
  const isWithin = repositories?.every((name) => wanted.has(name.toLowerCase())) === true
  const tooMuch = Object.entries(permissions).filter(([name, level]) => {
    // Every token reads the metadata of its repositories ("Choosing permissions for a GitHub App").
    const most = plan.permissions[name] ?? (name === 'metadata' ? 'read' : undefined)
    return most === undefined || !isLevel(level) || rank(level) > rank(most)
  })
  if (isWithin && tooMuch.length === 0) return
  await client.endToken(token, signal).catch((cause: unknown) => {
    throw unavailable('GitHub gave more than was requested.', { cause })
  })
  throw misconfigured(
    'GitHub gave more than was requested; Mayfly has ended the token. Is the server too old?',
  )
}

async function preflight(client: GitHub, settings: Config, signal: AbortSignal): Promise<string[]> {
  const ahead = Math.round((await client.requireApp(signal)) / 1000)
  const warnings: string[] = []
  if (Math.abs(ahead) > 30) {
    warnings.push(`The clock of this machine differs from GitHub's by ${Math.abs(ahead)} seconds.`)
  }
  if (settings.owner === undefined && settings.installation_id === undefined) {
    if (await client.hasInstallation(signal)) return warnings
    throw misconfigured('No account has installed the App; install it first.')
  }
  const { owner, permissions } = await client.installationOf(settings.owner, signal)
  accountOf(settings.owner ?? owner, parseWishes([`${owner}/*`]), {})
  const usable = PERMISSIONS.filter((name) => permissions[name] !== undefined && name !== 'metadata')
  if (usable.length === 0) {
    throw misconfigured(`The installation in ${owner} has no permission on repositories; grant the App one.`)
  }
  if (permissions['administration'] === 'write') {
    warnings.push('The App may administer repositories: an agent that is granted that can delete them.')
  }
  return warnings
}
