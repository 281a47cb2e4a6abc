import { OAuthProblem } from '../../domain/oauth-problem.ts'
import type { CommandLogin } from '../../domain/people/session.ts'
import { invalid } from '../../domain/problems.ts'
import { isLoginSecret } from '../../keys/login-secrets.ts'
import { sha256 } from '../../keys/webauthn.ts'
import type { Origin } from '../caller.ts'
import { endEntry } from '../sessions/end-session.ts'
import { countFailure, requireLoginRate } from '../sessions/login-limits.ts'
import { requireCommandClient } from './command-client.ts'
import { type CommandParts, type StartedCommand, startCommandSession } from './start-command-session.ts'

/** The fields of the form (RFC 6749 §4.1.3, RFC 7636 §4.5). */
export interface CodeCommand {
  readonly client_id?: string | undefined
  readonly code?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly code_verifier?: string | undefined
}

/** RFC 7636 §4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/

/**
 * Exchanges an authorization code, which works once: a second use ends the session that the first began (RFC 6749 §4.1.2). Throws
 * `OAuthProblem`, the same for a code that is unknown, has expired, was used, or is not this command's; `invalid_request`
 * and `rate_limited`.
 */
export async function redeemAuthorizationCode(
  core: CommandParts,
  { client_id, code, redirect_uri, code_verifier }: CodeCommand,
  origin: Origin,
): Promise<StartedCommand> {
  requireCommandClient(client_id)
  if (code === undefined || redirect_uri === undefined || code_verifier === undefined)
    throw invalid('"code", "redirect_uri" and "code_verifier" are needed.')
  const { commandLogins } = core.store
  const codeHash = core.hasher.hash(code)
  const subject = `code ${codeHash}`
  requireLoginRate(core, subject, origin.ipAddress)
  const login = isLoginSecret('authorization', code) ? await commandLogins.findByCode(codeHash) : undefined
  const isOwn =
    login?.state === 'allowed' &&
    login.redirectUri === redirect_uri &&
    VERIFIER.test(code_verifier) &&
    login.codeChallenge === sha256(code_verifier)
  const started = isOwn ? await startCommandSession(core, login, origin) : 'over'
  if (typeof started === 'object') return started
  // Also of two uses at once, of which this was the second.
  const used = started === 'used' ? await commandLogins.findByCode(codeHash) : login
  if (used?.state === 'used') await endFirst(core, used, origin)
  countFailure(core, subject, { caller: undefined, origin }, 'authorization_code')
  throw new OAuthProblem(
    'invalid_grant',
    'The code is not valid for this command: it is unknown, has expired, or was used. Log in again.',
  )
}

async function endFirst(core: CommandParts, { sessionId }: CommandLogin, origin: Origin): Promise<void> {
  const { sessions, operators, commit } = core.store
  const session = await sessions.find(sessionId ?? '')
  if (session === undefined) return
  const operator = await operators.findLiving(session.operatorId)
  const entry = endEntry(core, { caller: undefined, origin }, session, operator, 'code_used_again')
  await commit([sessions.end(session.id), entry], { urgent: true })
}
