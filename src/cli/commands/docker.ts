import { addHelper, dockerConfigPath, removeHelper } from '../docker/config.ts'
import { configKey, needRegistry } from '../docker/host.ts'
import { usage } from '../frame/failure.ts'
import { listing, table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { wayTo } from '../git/wrapper.ts'
import { openAgentSession } from '../session/open.ts'
import { readHosts, writeHost } from '../tools/host-map.ts'
import { REQUEST_OPTIONS, type RequestOptions, requestOf } from '../tools/request.ts'

interface SetupOptions extends RequestOptions {
  username?: string
}

const HOST = { name: '<registry>', description: 'its host, such as registry.example.com:5000' }

export const setup = defineVerb<SetupOptions, [registry: string]>({
  description:
    'Makes docker get its credentials for a registry from a backend, by the helper docker-credential-mayfly. Writes credHelpers in the configuration of docker ($DOCKER_CONFIG).',
  arguments: [HOST],
  options: [
    ...REQUEST_OPTIONS,
    {
      flags: '--username <name>',
      description: 'user name where the backend gives none; "mayfly" by default',
    },
  ],
  examples: [
    {
      command: 'mayfly docker setup registry.example.com --backend registry',
      about: 'docker pull and push, with no login',
    },
  ],
  json: '{registry, backend, config: path of the configuration of docker}',
  exits: [3, 4, 5],
  run: async (context, options, registry) => {
    const host = needRegistry(registry)
    const { backend, ttl } = requestOf(options)
    const { scope, param, username } = options
    if (username !== undefined && !/^[\x21-\x39\x3b-\x7e]{1,255}$/.test(username))
      throw usage('--username is not of the accepted form.', 'Use no blanks and no colon.')
    const { client, target } = await openAgentSession(context)
    await client.backend(backend)
    const given = Object.fromEntries(
      Object.entries({ ttl, scope, param, username }).filter(([, value]) => value !== undefined),
    )
    // First ours: docker asks for a registry only once we can answer.
    await writeHost(context, 'docker', host, { backend, ...given, way: wayTo(context, target) })
    const config = await addHelper(context, configKey(host))
    await context.out.show({ registry: host, backend, config }, () =>
      listing({ [host]: `credentials of ${backend}`, config }),
    )
  },
})

export const list = defineVerb({
  description: 'Lists the registries that docker gets credentials for.',
  examples: [{ command: 'mayfly docker ls', about: 'which registry gets them from which backend' }],
  json: '[{registry, backend, server}]',
  run: async (context) => {
    const rows = [...(await readHosts(context, 'docker'))].map(([registry, { backend, way }]) => ({
      registry,
      backend,
      server: way.server,
    }))
    await context.out.show(rows, () =>
      table(
        ['REGISTRY', 'BACKEND', 'SERVER'],
        rows.map(({ registry, backend, server }) => [registry, backend, server]),
      ),
    )
  },
})

export const unset = defineVerb<object, [registry: string]>({
  description: 'Takes away what "docker setup" wrote for a registry.',
  arguments: [HOST],
  examples: [{ command: 'mayfly docker unset registry.example.com', about: 'docker is as it was' }],
  json: '{registry, config: path of the configuration of docker}',
  run: async (context, _options, registry) => {
    const host = needRegistry(registry)
    // First docker's: it must not ask for a registry that we no longer know.
    await removeHelper(context, configKey(host))
    if (!(await writeHost(context, 'docker', host, undefined)))
      throw usage('That registry is not set up.', 'See which are with `mayfly docker ls`.')
    const config = dockerConfigPath(context)
    await context.out.show({ registry: host, config }, () => listing({ [host]: 'no credentials any more' }))
  },
})
