import { IdentityRefused, nameOfEntry, type ProvenWorkload } from '../../domain/identity/identity.ts'
import { MAX_FOREIGN_JWT_BYTES, MINUTE_MS } from '../../domain/limits.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { Actor, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { agentOfWorkload, nameOf } from '../identities/agent-of-workload.ts'
import type { OwnedAgent } from '../identities/owned-agent.ts'
import { countNetworkFailure, tooMany } from './authenticate-client.ts'
import {
  type Denied,
  type IssuedToken,
  issuedEntry,
  planToken,
  signToken,
  type TokenCommand,
  type TokenHolder,
  takeToken,
  whileInRun,
} from './mint-token.ts'

/** RFC 8693 §2.1. */
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
/** RFC 7523 §2.1. */
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** RFC 8693 §3. */
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const SUBJECT_TYPES = ['urn:ietf:params:oauth:token-type:jwt', 'urn:ietf:params:oauth:token-type:id_token']

export interface ExchangeCommand extends TokenCommand {
  readonly subject_token?: string | undefined
  readonly subject_token_type?: string | undefined
  readonly requested_token_type?: string | undefined
  readonly actor_token?: string | undefined
  readonly assertion?: string | undefined
}

/** How long an access token may outlive the token that it was given for. */
const OUTLIVES_MS = 10 * MINUTE_MS
/** Many jobs may be one agent, so that it may log in as often as this many agents with secrets. */
const JOBS_OF_AN_AGENT = 10
/** Jobs that log in at once as an agent that there was not. */
const TRIES = 5

const REFUSED =
  'No entry of "identities" or "platforms" accepts this token. An administrator finds the reason in the audit, and must add or change the entry.'
const NO_KEYS = 'The keys of the issuer of this token cannot be fetched at present; try again.'

/**
 * Keyless login (ADR 0069): a token that somebody else signed, for an access token of the agent that the workload is. The agent, the use of the
 * token, the login and their entries are durable, in one commit, before the access token leaves. A refusal says nothing of its
 * reason, which the audit has. Throws `OAuthProblem`, `invalid_request`, `rate_limited`, `conflict`, `audit_unavailable`.
 */
export async function exchangeToken(
  core: Core,
  command: ExchangeCommand,
  origin: Origin,
): Promise<IssuedToken> {
  const presented = presentedToken(command)
  try {
    const proven = await core.identities.prove(presented)
    return await logIn(core, proven, command, origin)
  } catch (error) {
    throw error instanceof IdentityRefused ? refuse(core, error, origin) : error
  }
}

/** Throws `invalid_request`. */
function presentedToken(command: ExchangeCommand): string {
  const isExchange = command.grant_type === TOKEN_EXCHANGE
  const token = isExchange ? command.subject_token : command.assertion
  if (token === undefined) throw invalid(`"${isExchange ? 'subject_token' : 'assertion'}" is missing.`)
  if (token.length > MAX_FOREIGN_JWT_BYTES) throw invalid('The token is longer than 16 KiB.')
  if (!isExchange) return token
  const { subject_token_type: type, requested_token_type: wanted } = command
  if (type === undefined || !SUBJECT_TYPES.includes(type))
    throw invalid(`"subject_token_type" must be ${SUBJECT_TYPES.join(' or ')}.`)
  if (wanted !== undefined && wanted !== ACCESS_TOKEN)
    throw invalid(`"requested_token_type" must be ${ACCESS_TOKEN}, or absent.`)
  if (command.actor_token !== undefined) throw invalid('"actor_token" is not supported.')
  return token
}

/** An entry on trial grants nothing: the audit has what it would have granted. */
class Observed extends IdentityRefused {
  readonly would: Readonly<Record<string, unknown>>

  constructor(name: string, would: Observed['would']) {
    super('observed', [name])
    this.would = would
  }
}

async function logIn(
  core: Core,
  proven: ProvenWorkload,
  command: ExchangeCommand,
  origin: Origin,
): Promise<IssuedToken> {
  if (proven.entry.kind === 'identity' && proven.entry.identity.mode === 'observe') {
    const { identity } = proven.entry
    throw new Observed(identity.name, { agent: nameOf(identity, proven).name, scopes: identity.scopes })
  }
  const nobody = { caller: undefined, origin }
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const generation = await core.store.generation()
    const owned = await agentOfWorkload(core, nobody, proven)
    const who = holderOf(core, owned, origin, generation)
    // Where there is no agent yet, each try would be another one.
    const denied = { actor: owned.isNew ? nobody : who.actor, details: provenBy(proven) }
    if (tries === 1) takeLogin(core, who, proven, denied)
    const outcome = await tryLogin(core, proven, command, { nobody, owned, who, denied })
    if (outcome !== undefined) return outcome
  }
  throw new Problem('conflict', { message: 'The agent was changed at the same time; try again.' })
}

function holderOf(
  core: Core,
  { agent, grants }: OwnedAgent,
  origin: Origin,
  generation: number,
): TokenHolder {
  const client = core.callers.clientOf(agent, grants, generation)
  return { client, actor: { caller: { ...client.caller, method: 'identity' }, origin } }
}

/** By the entry and what its agents are bound to: where each login is an agent of its own, these are one. Throws `rate_limited`. */
function takeLogin(core: Core, { client }: TokenHolder, { entry }: ProvenWorkload, denied: Denied): void {
  const { identity, identityValues, name } = client.agent
  const isSuffixed = entry.kind === 'identity' && entry.identity.concurrent === 'suffix'
  const who = JSON.stringify([identity, identityValues, isSuffixed ? '' : name])
  takeToken(core, denied, `keyless|${who}`, core.settings.tokensPerMinute * JOBS_OF_AN_AGENT)
}

interface Attempt {
  readonly nobody: Actor<undefined>
  readonly owned: OwnedAgent
  readonly who: TokenHolder
  readonly denied: Denied
}

/** Undefined when the agent or its name has changed in the meantime. Throws `IdentityRefused` for a token that was used before. */
async function tryLogin(
  core: Core,
  proven: ProvenWorkload,
  command: ExchangeCommand,
  { nobody, owned, who, denied }: Attempt,
): Promise<IssuedToken | undefined> {
  const { agent } = owned
  const plan = await planToken(core, who, command, denied)
  const made = await signToken(core, who, plan, longestMs(core, proven))
  if (made === undefined) throw new OAuthProblem('invalid_grant', 'The agent is about to end.')
  const use = proven.use && core.store.tokens.useProof(proven.use.id, proven.use.rememberUntil)
  const change: Step[] = [
    // Guards come first: such a change is merged with others.
    ...whileInRun(plan),
    ...owned.steps,
    ...(use === undefined ? [] : [use]),
    core.store.logins.insert({
      jti: made.jti,
      agentId: agent.id,
      expiresAt: made.expiresAt,
      runId: plan.run?.id ?? null,
    }),
    issuedEntry(core, who, plan, made, provenBy(proven)),
  ]
  // Not by the agent, whose row this may be about to add.
  const outcome = await commit(core, nobody, change, { code: 'audit_unavailable' })
  if (!outcome.done) {
    if (use !== undefined && change[outcome.step] === use)
      throw new IdentityRefused('repeated', [nameOfEntry(proven.entry)])
    return undefined
  }
  core.meter.authenticated('identity', 'ok')
  // Only the second login promises a third.
  if (!owned.isNew) core.callers.keepNamed(who.client)
  core.lastUse.touch(agent.id, { at: core.store.now(), from: nobody.origin.ipAddress })
  return made
}

function longestMs(core: Core, { entry, expiresAt }: ProvenWorkload): number {
  const chosen = entry.kind === 'identity' ? entry.identity.tokenTtlMs : undefined
  return chosen ?? Math.min(core.settings.accessTokenTtlMs, expiresAt + OUTLIVES_MS - core.store.now())
}

function provenBy(proven: ProvenWorkload) {
  return { [proven.entry.kind]: nameOfEntry(proven.entry), issuer: proven.issuer, subject: proven.subject }
}

/** Records the refusal and returns the answer, which is the same for all that the token may lack. */
function refuse(core: Core, refused: IdentityRefused, origin: Origin): OAuthProblem | Problem {
  const { reason, entries, detail } = refused
  const isAway = reason === 'keys_unavailable'
  core.meter.authenticated('identity', 'failed')
  core.denials.record(
    { caller: undefined, origin },
    {
      action: 'token.refused',
      details: {
        code: isAway ? 'temporarily_unavailable' : 'invalid_grant',
        reason,
        ...(entries.length === 0 ? {} : { entries }),
        ...(detail === undefined ? {} : { detail }),
        ...(refused instanceof Observed ? { would: refused.would } : {}),
      },
    },
  )
  // Whoever configured an entry on trial expects this.
  const wait = reason === 'observed' ? 0 : countNetworkFailure(core, origin)
  if (wait > 0) return tooMany(wait)
  const { console, relyingParty } = core.settings
  const uri = console === 'on' ? `${relyingParty.consoleUrl}/activity?action=token.refused` : undefined
  return isAway
    ? new OAuthProblem('temporarily_unavailable', NO_KEYS, { uri })
    : new OAuthProblem('invalid_grant', REFUSED, { uri })
}
