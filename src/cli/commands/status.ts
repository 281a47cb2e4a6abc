import type { AgentStatus } from '../../client/wire.ts'
import { EXIT } from '../frame/failure.ts'
import { globalFlags } from '../frame/global-flags.ts'
import { flag } from '../frame/options.ts'
import { listing, table } from '../frame/output.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAgentSession } from '../session/open.ts'
import { LOGIN_WORDS } from '../session/session.ts'

export const status = defineVerb({
  description:
    'Shows your agent: its scopes, expiry, active credentials and pending requests. With --all it asks the server of each profile.',
  options: {
    all: flag('a line for each profile'),
  },
  examples: {
    'mayfly status': 'what you may do, and what you hold',
    'mayfly status --all': 'at every server that you are logged in to',
  },
  json: async () => (await import('../../api/v1.ts')).AgentStatus,
  exits: [3, 4],
  run: async (context, { all }) => {
    if (all === true) return (await import('../session/status-of-all.ts')).showAll(context)
    const status = await (await openAgentSession(context)).client.status()
    await context.out.show(status, () => inWords(context, status))
    return EXIT.done
  },
})

/** Enough for a person to see what the agent does. */
const MOST_HELD = 20

function inWords({ globals, now: clock }: Context, status: AgentStatus): string {
  const now = clock()
  const parts = [
    listing({
      Agent: `${status.name} (${status.id})`,
      Scopes: status.scopes.join(' ') || 'none',
      Created: relative(status.created_at, now),
      'Last used': relative(status.last_used ?? 'never', now),
      Expires: relative(status.expires_at ?? 'never', now),
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

export const whoami = defineVerb({
  description: 'Asks the server which agent you are, and shows the server and the login.',
  examples: { 'mayfly whoami': 'who you are on this server' },
  json: '{agent: {id, name}, server, profile: string or null, login, login_from: environment, keychain or file}',
  exits: [3, 4],
  run: async (context) => {
    const { client, target, login } = await openAgentSession(context)
    const { id, name } = await client.status()
    const profile = login.from === 'environment' ? null : target.profileName
    await context.out.show(
      {
        agent: { id, name },
        server: target.server.text,
        profile,
        login: login.auth.kind,
        login_from: login.from,
      },
      () =>
        listing({
          Agent: `${name} (${id})`,
          Server: target.server.text,
          Profile: profile ?? undefined,
          Login: `${LOGIN_WORDS[login.auth.kind]}, from ${FROM[login.from]}`,
        }),
    )
  },
})

const FROM = { environment: 'the environment', keychain: 'the keychain', file: 'a file' } as const
