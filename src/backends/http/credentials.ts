import { BackendError, denied, unavailable } from '../../domain/backend-error.ts'
import type { Opened } from '../define-kind.ts'
import type { Handle, Host, Issued, IssueRequest } from '../kind.ts'
import type { Config, Reply, Send } from './calls.ts'
import { createIdentity, type Identity } from './identity.ts'
import { type Accounts, accountsOf, createListing, expiryOf, type Listing } from './listing.ts'
import type { Recipe } from './schema.ts'
import type { Grammar } from './scopes.ts'
import { createSend, odd, takeAll, takeOne } from './send.ts'
import { pointAt, type Vars } from './template.ts'

type Expected = NonNullable<NonNullable<Recipe['revoke']>['expect']>[number]

interface Parts {
  readonly recipe: Recipe
  readonly accounts: Accounts
  readonly grammar: Grammar
  readonly config: Config
  /** The fields that are not secret. */
  readonly settings: Vars
  readonly send: Send
  readonly listing: Listing | undefined
  readonly identity: Identity | undefined
}

/** An open backend of a recipe. */
export function createCredentials(
  recipe: Recipe,
  grammar: Grammar,
  config: Config,
  host: Host,
  base: URL,
): Opened {
  const send = createSend(recipe, config, host, base)
  const isOpen = ([name]: [string, unknown]) => recipe.fields[name]?.secret !== true
  const settings = Object.fromEntries(Object.entries(config).filter(isOpen))
  const places = grammar.places(config)
  const listing =
    recipe.list === undefined ? undefined : createListing(recipe, recipe.list, places, settings, send)
  const identity =
    recipe.identity === undefined ? undefined : createIdentity(recipe, recipe.identity, settings, send)
  const accounts = accountsOf(recipe)
  const parts = { recipe, accounts, grammar, config, settings, send, listing, identity }
  const opened = {
    check: (signal: AbortSignal) => check(parts, signal),
    issue: (request: IssueRequest<unknown>, signal: AbortSignal) => issue(parts, request, host.now(), signal),
  }
  if (recipe.revoke === undefined) return opened
  const isNamed = recipe.list !== undefined || recipe.issue.handle === undefined
  return {
    ...opened,
    revoke: (handle, signal) => revoke(parts, handle, signal),
    recover: (credentialId) => (isNamed ? accounts.recover(credentialId) : undefined),
    ...(listing === undefined ? {} : { list: listing.page }),
  }
}

async function check(
  { recipe, grammar, config, settings, send, listing, identity }: Parts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const places = grammar.places(config)
  await listing?.requireReadable(undefined, signal)
  for (const { expect = [], ...request } of recipe.check ?? []) {
    const reply = await send(request, { vars: { ...settings, ...places[0] }, signal })
    requireExpected(recipe, expect, reply)
  }
  return (await identity?.warnings(signal)) ?? []
}

function requireExpected(recipe: Recipe, expect: readonly Expected[], reply: Reply): void {
  for (const { at, is, is_not: other, needs } of expect) {
    const value = pointAt(reply.json(), at)
    if (value === undefined) throw odd(recipe)
    const isThere = Array.isArray(value) ? value.includes(is) : value === is
    const isFine = other === undefined ? isThere : !new RegExp(`^(?:${other})$`, 'u').test(String(value))
    if (!isFine) throw denied(`${recipe.title}: Mayfly's login needs ${needs}.`)
  }
}

async function issue(
  parts: Parts,
  request: IssueRequest<unknown>,
  now: number,
  signal: AbortSignal,
): Promise<Issued> {
  const { recipe, accounts, grammar, config, settings, send } = parts
  const { vars: granted, each } = grammar.read(config, request.scopes)
  const name = accounts.nameOf(request.credentialId)
  const own = await parts.identity?.forHandle(signal)
  let vars: Vars = { ...settings, ...granted, ...variablesOf(request, now), name }
  let reply: unknown
  for (const [index, { take, ...step }] of recipe.issue.requests.entries()) {
    try {
      const answer = await send(step, { vars, each, signal })
      reply = answer.json()
      vars = { ...vars, ...takeAll(recipe, take, reply, vars) }
    } catch (error) {
      throw index === 0 ? error : leftToRevocation(recipe, error)
    }
  }
  try {
    return issuedOf(recipe, { name, ...own }, reply, vars)
  } catch (error) {
    throw leftToRevocation(recipe, error)
  }
}

/** Something exists upstream: whatever the fault is, Mayfly must revoke it. */
function leftToRevocation(recipe: Recipe, error: unknown): BackendError {
  if (!(error instanceof BackendError)) return odd(recipe)
  if (error.fault === 'unavailable' || error.fault === 'timeout') return error
  return unavailable(error.message, {
    cause: error,
    ...(error.detail === undefined ? {} : { detail: error.detail }),
  })
}

function issuedOf(recipe: Recipe, known: Handle, reply: unknown, vars: Vars): Issued {
  const { secret, fields, handle, expires, facts } = recipe.issue
  const upstreamExpiresAt = expires === undefined ? undefined : expiryOf(recipe, expires, reply)
  return {
    ...(secret === undefined ? {} : { secret: String(takeOne(recipe, secret, reply, vars)) }),
    ...(fields === undefined ? {} : { fields: takeAll(recipe, fields, reply, vars) }),
    ...(upstreamExpiresAt === undefined ? {} : { upstreamExpiresAt }),
    ...(recipe.revoke === undefined ? {} : { handle: { ...known, ...takeAll(recipe, handle, reply, vars) } }),
    facts: { name: String(known['name']), ...takeAll(recipe, facts, reply, vars) },
  }
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)

/** The variables of every issue; `schema.ts` has the list for the documentation. */
function variablesOf({ credentialId, agent, expiresAt }: IssueRequest<unknown>, now: number): Vars {
  const seconds = Math.floor(expiresAt / 1000)
  return {
    credential_id: credentialId,
    agent_id: agent.id,
    agent_name: agent.name,
    ttl_seconds: Math.max(1, Math.floor((expiresAt - now) / 1000)),
    expires_iso: new Date(expiresAt).toISOString(),
    expires_iso_seconds: new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'),
    expires_seconds: seconds,
    expires_ms: expiresAt,
    // The first day that begins at or after the expiry.
    expires_date: dayOf(expiresAt + DAY_MS - 1),
    // UTC+14 is ahead of all others.
    expires_date_anywhere: dayOf(expiresAt + 14 * HOUR_MS + DAY_MS),
  }
}

async function revoke(
  { recipe, accounts, settings, send, listing, identity }: Parts,
  handle: Handle,
  signal: AbortSignal,
): Promise<void> {
  const { revoke: request, issue: spec } = recipe
  if (request === undefined) return
  const name = accounts.nameIn(handle)
  await identity?.requireSame(handle, signal)
  const isKnown = Object.keys(spec.handle ?? {}).every((one) => handle[one] !== undefined)
  const found = isKnown || listing === undefined ? [handle] : await listing.find(name, signal)
  for (const one of found) {
    const { gone = [404], expect = [], ...step } = request
    const reply = await send(step, { vars: { ...settings, ...one, name }, expected: gone, signal })
    // Many services also answer so to a login that may not see it: believe it only where listing works.
    if (!gone.includes(reply.status)) requireExpected(recipe, expect, reply)
    else await listing?.requireReadable(one, signal)
  }
}
