import type { Transport, TransportReply, TransportRequest } from '../../client/transport.ts'
import { parseJson } from '../../domain/formats/json.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { type KeptOperator, nameOf } from '../session/profiles.ts'
import type { Target } from '../session/session.ts'

/** The operator's login of the profile, as requests are sent with it. */
export interface Using {
  readonly target: Target
  readonly operator: KeptOperator
  readonly token: string
}

/**
 * Sends with the operator's login. What the server takes only soon after a login, it asks the person to log in for, once for
 * each request, if there is a terminal to ask at; the new login is kept. Throws `CliError` for a login that has ended.
 */
export function withFreshLogin(context: Context, first: Using, transport: Transport): Transport {
  let using = first
  const send = (request: TransportRequest) =>
    transport({ ...request, headers: { ...request.headers, authorization: `Bearer ${using.token}` } })
  return async (request) => {
    const reply = await send(request)
    if (reply.status === 401) throw ended(using.target, using.operator)
    if (context.stdin.isTTY !== true || !needsFreshLogin(reply)) return reply
    using = await renew(context, using)
    return send(request)
  }
}

interface Refusal {
  readonly error?: { readonly code?: unknown; readonly options?: { readonly command?: unknown } }
}

function needsFreshLogin({ status, text }: TransportReply): boolean {
  if (status !== 403) return false
  const { error } = (parseJson(text) ?? {}) as Refusal
  return error?.code === 'confirmation_required' && error.options?.command === true
}

/** A login of somebody else would do in their name what this person has asked for. */
async function renew(context: Context, { target, operator }: Using): Promise<Using> {
  const { method, issuer, id } = operator
  context.out.note(
    'This must be confirmed by a fresh login, and counts as confirmed for 15 minutes after it.',
  )
  const { keepInstead, logIn } = await import('./log-in.ts')
  const login = await logIn(context, target, { method, issuer })
  if (login.operator.id !== id) {
    const { endSession } = await import('./end-login.ts')
    await endSession(context, target, login.token, login.operator.session).catch(() => undefined)
    throw new CliError(
      'other_operator',
      `You logged in as ${nameOf(login.operator)}, and asked for this as ${nameOf(operator)}; nothing was done.`,
      {
        exit: EXIT.refused,
        hint: `Log in as ${nameOf(operator)}, or run \`mayfly login --${method}\` first.`,
      },
    )
  }
  const { place: secret_in } = await keepInstead(context, target, login)
  const kept: KeptOperator = { ...login.operator, secret_in }
  const profile = target.profile && { ...target.profile, operator: kept }
  return { target: { ...target, profile }, operator: kept, token: login.token }
}

/** Nothing falls back to another login: that would be a silent change of identity. */
export function ended({ server }: Target, operator: KeptOperator): CliError {
  return new CliError(
    'operator_login_ended',
    `Your login as ${nameOf(operator)} at ${server.text} has ended.`,
    {
      exit: EXIT.unauthenticated,
      hint: `Run \`mayfly login --${operator.method}\`; to go on without it, \`mayfly logout --operator\`.`,
    },
  )
}
