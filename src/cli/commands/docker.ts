import { addHelper, dockerConfigPath, removeHelper } from '../docker/config.ts'
import { configKey, needRegistry } from '../docker/host.ts'
import { usage } from '../frame/failure.ts'
import { showRows } from '../frame/list.ts'
import { text } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { wayTo } from '../git/wrapper.ts'
import { openAgentSession } from '../session/open.ts'
import { changeHosts, hostRows, writeHost } from '../tools/host-map.ts'
import { REQUEST_OPTIONS, requestOf } from '../tools/request.ts'

const HOST = {
  name: '<registry>',
  description: 'host of the registry, such as registry.example.com:5000',
} as const

export const setup = defineVerb({
  description:
    'Makes docker get its credentials for a registry from a backend, through the helper docker-credential-mayfly. Writes credHelpers in the configuration of docker ($DOCKER_CONFIG).',
  arguments: [HOST],
  options: {
    ...REQUEST_OPTIONS,
    username: text('<name>', 'user name if the backend gives none; by default "mayfly"'),
  },
  examples: [
    {
      command: 'mayfly docker setup registry.example.com --backend registry',
      about: 'docker pull and push work without a login',
    },
  ],
  json: '{registry, backend, config: path of the configuration of docker}',
  exits: [3, 4, 5],
  run: async (context, options, registry) => {
    const host = needRegistry(registry)
    const { backend, ttl } = requestOf(options)
    const { scope, param, username } = options
    if (username !== undefined && !/^[\x21-\x39\x3b-\x7e]{1,255}$/.test(username))
      throw usage('--username is not valid.', 'Use no spaces and no colon.')
    const session = await openAgentSession(context)
    await session.client.backend(backend)
    const way = wayTo(context, session)
    // Ours first: docker must not ask for a registry before we can answer.
    const config = await changeHosts(context, async () => {
      await writeHost(context, 'docker', host, { backend, ttl, scope, param, username, way })
      return addHelper(context, configKey(host))
    })
    await context.out.show({ registry: host, backend, config }, () =>
      listing({ [host]: `credentials of ${backend}`, config }),
    )
  },
})

export const list = defineVerb({
  description: 'Lists the registries for which docker gets its credentials from a backend.',
  examples: [{ command: 'mayfly docker ls', about: 'each registry and its backend' }],
  json: '[{registry, backend, server}]',
  run: async (context) => {
    const hosts = await hostRows(context, 'docker')
    const rows = hosts.map(({ host, ...rest }) => ({ registry: host, ...rest }))
    await showRows(context, rows, {
      things: 'registries',
      none: 'No registries are set up.',
      heading: ['REGISTRY', 'BACKEND', 'SERVER'],
      cells: ({ registry, backend, server }) => [registry, backend, server],
    })
  },
})

export const unset = defineVerb({
  description: 'Undoes "docker setup" for a registry.',
  arguments: [HOST],
  examples: [{ command: 'mayfly docker unset registry.example.com', about: 'docker works as before' }],
  json: '{registry, config: path of the configuration of docker}',
  run: async (context, _options, registry) => {
    const host = needRegistry(registry)
    const wasSetUp = await changeHosts(context, async () => {
      // Docker's first: it must not ask for a registry we no longer know.
      await removeHelper(context, configKey(host))
      return writeHost(context, 'docker', host, undefined)
    })
    if (!wasSetUp) throw usage('That registry is not set up.', 'List the registries with `mayfly docker ls`.')
    const config = dockerConfigPath(context)
    await context.out.show({ registry: host, config }, () => listing({ [host]: 'removed' }))
  },
})
