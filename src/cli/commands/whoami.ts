import { listing } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAgentSession } from '../session/open.ts'

export const verb = defineVerb({
  description: 'Asks the server which agent you are, and shows the server and the login.',
  examples: {
    'mayfly whoami': 'who you are on this server',
  },
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
          Login: `${LOGINS[login.auth.kind]}, from ${FROM[login.from]}`,
        }),
    )
  },
})

const LOGINS = {
  bearer: 'token',
  client_secret: 'client secret',
  private_key_jwt: 'enrolled key',
  none: 'none',
} as const

const FROM = { environment: 'the environment', keychain: 'the keychain', file: 'a file' } as const
