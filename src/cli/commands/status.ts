import type { AgentStatus } from '../../client/wire.ts'
import { EXIT } from '../frame/failure.ts'
import { globalFlags } from '../frame/global-flags.ts'
import { flag } from '../frame/options.ts'
import { listing, table } from '../frame/output.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { findLogin } from '../session/find-login.ts'
import { clientFor } from '../session/open.ts'
import { lookAtOperator, type OperatorStatus, operatorInWords } from '../session/operator-status.ts'
import { LOGIN_WORDS, type Login, notLoggedIn, readTarget, type Target } from '../session/session.ts'

export const verb = defineVerb({
  description:
    "Shows your agent with its scopes, expiry, active credentials and pending requests, and the server and the login that lead to it; and the operator's login, if you have one. With --all it asks the server of each profile.",
  options: {
    all: flag('a line for each profile'),
  },
  examples: {
    'mayfly status': 'who you are on this server, what you may do, and what you hold',
    'mayfly status --all': 'at every server that you are logged in to',
  },
  json: shape,
  exits: [3, 4],
  run: async (context, { all }) => {
    if (all === true) return (await import('../session/status-of-all.ts')).showAll(context)
    const target = await readTarget(context)
    const login = await findLogin(context, target)
    // What the environment names is all that commands use then.
    const operator = login?.from === 'environment' ? undefined : await lookAtOperator(context, target)
    if (login === undefined) return showOperator(context, target, operator)
    const status = await (await clientFor(context, target, login.auth)).status()
    const { auth, from } = login
    const way: Way = {
      server: target.server.text,
      profile: from === 'environment' || from === 'identity' ? null : target.profileName,
      login: auth.kind,
      login_from: from,
      identity: auth.kind === 'identity' ? { source: auth.source, audience: auth.audience } : undefined,
      operator,
    }
    await context.out.show({ ...status, ...way }, () => inWords(context, status, way))
    return EXIT.done
  },
})

/** Of a profile that no agent is logged in with. */
async function showOperator(
  context: Context,
  target: Target,
  operator: OperatorStatus | undefined,
): Promise<number> {
  if (operator === undefined) throw notLoggedIn(target)
  const { server, profileName: profile } = target
  await context.out.show({ server: server.text, profile, operator }, () =>
    listing({ Server: server.text, Profile: profile, ...operatorLines(operator, context.now()) }),
  )
  return operator.state === 'active' ? EXIT.done : EXIT.unauthenticated
}

function operatorLines(operator: OperatorStatus | undefined, now: number) {
  if (operator === undefined) return {}
  const { login, login_from, session, state } = operator
  const again = state === 'active' ? '' : `: run \`mayfly login --${login}\``
  return {
    Operator: `${operatorInWords(operator, now)}${again}`,
    Session: `${session}, by ${METHODS[login]}, from ${FROM[login_from]}`,
  }
}

const METHODS = { browser: 'the browser', device: 'a code' }

/** How the command came to this agent. */
interface Way {
  readonly server: string
  /** Null for a login from the environment, and by an identity. */
  readonly profile: string | null
  readonly login: Login['auth']['kind']
  readonly login_from: Login['from']
  readonly identity: { readonly source: string; readonly audience: string } | undefined
  readonly operator: OperatorStatus | undefined
}

async function shape() {
  const { Type } = await import('typebox')
  const { AgentStatus } = await import('../../api/v1.ts')
  const operator = Type.Object({
    id: Type.String(),
    email: Type.Union([Type.String(), Type.Null()]),
    name: Type.String(),
    login: Type.Enum(['browser', 'device']),
    login_from: Type.Enum(['keychain', 'file']),
    session: Type.String(),
    expires_at: Type.String(),
    state: Type.Enum(['active', 'ended']),
  })
  return Type.Object({
    // Of an agent's login.
    ...Type.Partial(AgentStatus).properties,
    server: Type.String(),
    profile: Type.Union([Type.String(), Type.Null()]),
    login: Type.Optional(Type.Enum(['bearer', 'client_secret', 'private_key_jwt', 'identity'])),
    login_from: Type.Optional(Type.Enum(['environment', 'keychain', 'file', 'identity'])),
    identity: Type.Optional(Type.Object({ source: Type.String(), audience: Type.String() })),
    operator: Type.Optional(operator),
  })
}

/** Enough for a person to see what the agent does. */
const MOST_HELD = 20

function inWords({ globals, now: clock }: Context, status: AgentStatus, way: Way): string {
  const now = clock()
  const parts = [
    listing({
      Agent: `${status.name} (${status.id})`,
      Server: way.server,
      Profile: way.profile ?? undefined,
      Login: loginInWords(way),
      Scopes: status.scopes.join(' ') || 'none',
      Created: relative(status.created_at, now),
      'Last used': relative(status.last_used ?? 'never', now),
      Expires: relative(status.expires_at ?? 'never', now),
      ...operatorLines(way.operator, now),
    }),
  ]
  const held = status.active_credentials.slice(0, MOST_HELD)
  if (held.length > 0)
    parts.push(
      table(
        ['CREDENTIAL', 'BACKEND', 'EXPIRES'],
        held.map((one) => [one.id, one.backend, relative(one.expires_at, now)]),
      ),
    )
  if (held.length < status.active_credentials.length)
    parts.push(
      `There are more active credentials: \`mayfly credentials ls${globalFlags(globals)}\` lists them.`,
    )
  if (status.pending_requests.length > 0)
    parts.push(
      table(
        ['REQUEST', 'SCOPES', 'EXPIRES'],
        status.pending_requests.map((one) => [one.id, one.scopes.join(' '), relative(one.expires_at, now)]),
      ),
    )
  return parts.join('\n\n')
}

const FROM = { environment: 'the environment', keychain: 'the keychain', file: 'a file' } as const

function loginInWords({ login, login_from: from, identity }: Way): string {
  if (identity !== undefined) return `identity, by ${identity.source}, for ${identity.audience}`
  return from === 'identity' ? LOGIN_WORDS[login] : `${LOGIN_WORDS[login]}, from ${FROM[from]}`
}
