import { DOCUMENTS_PER_MINUTE, JWT_TOLERANCE_MS, MINUTE_MS } from '../../domain/limits.ts'
import type { Operator } from '../../domain/people/operator.ts'
import {
  grantOf,
  type SsoClaims,
  SsoFailure,
  type SsoPerson,
  type SsoProvider,
} from '../../domain/people/sso.ts'
import { Problem } from '../../domain/problems.ts'
import { sha256 } from '../../keys/webauthn.ts'
import type { Actor, OperatorCaller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import { takeOrRefuse } from '../rates.ts'
import { countFailure, requireLoginRate } from './login-limits.ts'
import { newState, openState, type SsoState, sealState, useState } from './sso-state.ts'
import { type StartedSession, startFirstSession, startSession } from './start-session.ts'

type Parts = Pick<
  Core,
  'store' | 'sealer' | 'hasher' | 'ids' | 'rates' | 'settings' | 'denials' | 'meter' | 'sso' | 'log'
>

/** The names of the providers, in the order of the configuration. Throws `rate_limited`. */
export function loginWays(core: Pick<Core, 'rates' | 'store' | 'sso'>, { ipAddress }: Origin): string[] {
  const rate = { count: DOCUMENTS_PER_MINUTE, perMs: MINUTE_MS }
  const message = 'Too many requests from this network; try again later.'
  takeOrRefuse(core.rates, `login ways|${networkOf(ipAddress)}`, rate, core.store.now(), message)
  return core.sso.names()
}

/** The browser goes to `url`, and comes back with an answer that only the holder of `cookie` can use. */
export interface BegunSso {
  readonly url: string
  readonly cookie: string
}

/** Throws `not_found` for a provider that is not configured, `rate_limited`, `backend_unavailable` and `backend_error`. */
export async function beginSsoLogin(core: Parts, named: string, { ipAddress }: Origin): Promise<BegunSso> {
  const rate = { count: DOCUMENTS_PER_MINUTE, perMs: MINUTE_MS }
  const message = 'Too many logins begin in this network; try again later.'
  takeOrRefuse(core.rates, `login challenge|${networkOf(ipAddress)}`, rate, core.store.now(), message)
  const provider = core.sso.find(named)
  if (provider === undefined)
    throw new Problem('not_found', { message: 'This server has no such provider of single sign-on.' })
  return begin(core, provider, newState(core, provider.name))
}

/**
 * A person of single sign-on logs in again to confirm one request, whose refusal named `challenge`. Throws `conflict` for a
 * challenge that is not one of this session, or that is too old, and as `beginSsoLogin`.
 */
export async function beginSsoConfirmation(
  core: Parts,
  { caller }: Actor<OperatorCaller>,
  challenge: string,
): Promise<BegunSso> {
  const { store, sso } = core
  const { session, operatorId } = caller
  const given = await store.sessions.findChallenge(challenge)
  const isOpen = given?.purpose === 'confirm' && given.answer === null && given.expiresAt > store.now()
  if (!isOpen || given.sessionId !== session.id)
    throw new Problem('conflict', {
      message: 'There is nothing to confirm here any more: repeat what you were doing, and confirm that.',
    })
  const operator = await store.operators.findLiving(operatorId)
  const provider = sso.find(operator?.provider ?? '')
  if (provider === undefined || provider.issuer !== operator?.issuer)
    throw new Problem('conflict', {
      message:
        'The provider of single sign-on by which you logged in is not configured any more; log in again.',
    })
  return begin(core, provider, newState(core, provider.name, { challenge, sessionId: session.id }))
}

async function begin(core: Parts, provider: SsoProvider, state: SsoState): Promise<BegunSso> {
  try {
    const url = await provider.begin(requestOf(core, state), state.sessionId !== null)
    return { url, cookie: sealState(core, state) }
  } catch (error) {
    throw problemOf(core, provider, error)
  }
}

function requestOf({ settings }: Parts, { state, nonce, verifier }: SsoState) {
  return { state, nonce, verifier, redirectUri: `${settings.relyingParty.consoleUrl}/sso` }
}

export interface PresentedSso {
  /** Undefined: the browser sent none. */
  readonly cookie: string | undefined
  /** The query string with which the provider sent the browser back. */
  readonly parameters: string
}

/**
 * A login, or the confirmation of one request (`confirmed`: its challenge). Throws `unauthorized` for an answer that is not
 * one to this browser's login, `not_allowed` for a person whom the mapping gives nothing, `rate_limited`, `conflict`,
 * `backend_unavailable` and `backend_error`.
 */
export async function finishSso(
  core: Parts,
  { cookie = '', parameters }: PresentedSso,
  origin: Origin,
): Promise<StartedSession | { readonly confirmed: string }> {
  const subject = `sso ${sha256(cookie)}`
  requireLoginRate(core, subject, origin.ipAddress)
  const actor: Actor<undefined> = { caller: undefined, origin }
  try {
    const state = openState(core, cookie)
    // Before the provider hears of it: an answer that is sent twice costs nothing there.
    if (state === undefined || !(await useState(core, state))) throw new Refused('sso_state')
    const provider = core.sso.find(state.provider)
    if (provider === undefined) throw new Refused('sso_state')
    const claims = await answerOf(core, provider, state, parameters)
    return state.sessionId === null
      ? await logIn(core, provider, claims.person, origin)
      : { confirmed: await confirm(core, provider, claims, state, state.sessionId) }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    countFailure(core, subject, actor, error.reason)
    throw new Problem(error.reason === 'sso_no_scopes' ? 'not_allowed' : 'unauthorized', {
      message: error.publicMessage ?? MESSAGES[error.reason],
    })
  }
}

/** The reasons that denials have, and what people are told. */
const MESSAGES = {
  sso_state: 'This login was finished already, is too old, or was begun in another browser. Log in again.',
  sso_refused: 'The provider of single sign-on did not log you in. Try again.',
  sso_answer: 'This is not the answer of the provider to this login. Log in again.',
  sso_clock:
    'The clock of the provider of single sign-on and that of this server differ. Ask whoever runs this server.',
  sso_no_scopes: '',
  sso_not_again:
    'The provider did not ask you to log in again, so nothing is confirmed. Confirm it once more.',
  sso_other_person: 'Somebody else logged in than the person who is logged in here. Nothing is confirmed.',
} as const

class Refused extends Error {
  readonly reason: keyof typeof MESSAGES
  readonly publicMessage: string | undefined

  constructor(reason: keyof typeof MESSAGES, publicMessage?: string) {
    super(reason)
    this.reason = reason
    this.publicMessage = publicMessage
  }
}

async function answerOf(
  core: Parts,
  provider: SsoProvider,
  state: SsoState,
  parameters: string,
): Promise<SsoClaims> {
  try {
    return await provider.finish(requestOf(core, state), parameters)
  } catch (error) {
    throw problemOf(core, provider, error)
  }
}

/** What a failure of a provider is for the person, and in the log. */
function problemOf({ log }: Parts, { name }: SsoProvider, error: unknown): unknown {
  if (!(error instanceof SsoFailure)) return error
  const { reason, message: detail } = error
  log.warn({ sso: name, reason, detail }, 'a login by single sign-on failed')
  switch (reason) {
    case 'unreachable':
      return new Problem('backend_unavailable', {
        message:
          "The provider of single sign-on does not answer. Log in by passkey or link, or over admin.sock on the server's machine, or try again later.",
        retryAfterSeconds: 5,
        logged: true,
      })
    case 'misconfigured':
      return new Problem('backend_error', {
        message:
          'This server and the provider of single sign-on are not set up for each other. Ask whoever runs this server: its log says what is wrong.',
        logged: true,
      })
    case 'refused':
      return new Refused('sso_refused')
    case 'clock':
      return new Refused('sso_clock')
    case 'invalid':
      return new Refused('sso_answer')
    default: {
      const never: never = reason
      return never
    }
  }
}

/** Nobody is found by an e-mail address: it can change hands. */
async function logIn(
  core: Parts,
  provider: SsoProvider,
  person: SsoPerson,
  origin: Origin,
): Promise<StartedSession> {
  const { issuer, subject, email, name } = person
  const grant = grantOf(provider.groups, person.groups)
  if (grant.scopes.length + grant.backendScopes.length === 0)
    throw new Refused('sso_no_scopes', nothingGiven(provider, person))
  const said = { email, name, provider: provider.name, ...grant }
  const { operators } = core.store
  for (let tries = 1; tries <= 2; tries += 1) {
    const known = await operators.findBySubject(issuer, subject)
    if (known !== undefined) {
      const started = await startSession(core, known.id, { method: 'sso', said, steps: [] }, origin)
      if (started !== undefined) return started
      continue
    }
    const operator = newOperator(core, person, said)
    const login = { method: 'sso', steps: [operators.insert(operator)] } as const
    const { started, outcome } = await startFirstSession(core, operator, login, origin)
    if (outcome.done) return started
  }
  throw new Problem('conflict', { message: 'You were changed or removed at the same time; log in again.' })
}

function nothingGiven({ name }: SsoProvider, { isTruncated }: SsoPerson): string {
  const why = isTruncated
    ? 'The provider left your groups out, because you have too many: it must send only those that matter here. '
    : ''
  return `You are logged in there, but nothing here is given to any of your groups. ${why}Whoever runs this server says what groups get: in its setting sso, under groups of ${JSON.stringify(name)}.`
}

function newOperator(
  { store, ids }: Parts,
  { issuer, subject }: SsoPerson,
  said: Pick<Operator, 'email' | 'name' | 'provider' | 'scopes' | 'backendScopes'>,
): Operator {
  const now = store.now()
  return {
    ...said,
    id: ids.id('operator'),
    version: 1,
    logins: 1,
    createdAt: now,
    createdBy: 'system',
    joinedAt: now,
    lastLoginAt: now,
    endedAt: null,
    issuer,
    subject,
  }
}

/** Keeps what the provider said with the challenge. The page that asked may then repeat its request. */
async function confirm(
  { store }: Parts,
  provider: SsoProvider,
  { person, audience, authTime, issuedAt }: SsoClaims,
  { nonce: challenge }: SsoState,
  sessionId: string,
): Promise<string> {
  const [given, session] = await Promise.all([
    store.sessions.findChallenge(challenge),
    store.sessions.find(sessionId),
  ])
  const operator = await store.operators.findLiving(session?.operatorId ?? '')
  if (given === undefined || operator === undefined) throw new Refused('sso_state')
  if (operator.issuer !== provider.issuer || operator.subject !== person.subject)
    throw new Refused('sso_other_person')
  // The login must be one that the person made for this: not before the challenge was.
  if (authTime === undefined || authTime * 1_000 < given.madeAt - JWT_TOLERANCE_MS)
    throw new Refused('sso_not_again')
  const answer = { issuer: provider.issuer, subject: person.subject, audience, authTime, issuedAt }
  const outcome = await store.commit([store.sessions.answerChallenge(challenge, answer, store.now())])
  if (!outcome.done) throw new Refused('sso_state')
  return challenge
}
