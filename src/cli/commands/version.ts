import { installation } from '../../installation.ts'
import { flag } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { openPublicClient } from '../session/open.ts'

export const verb = defineVerb({
  description: 'Prints the versions of this command and of the server.',
  options: { client: flag('only the version of this command; asks no server') },
  examples: {
    'mayfly version': 'both versions',
    'mayfly version --client --json': 'the version of this command, as JSON',
  },
  json: '{client, server: {address, version}}; no server with --client',
  exits: [3],
  run: async (context, options) => {
    const { version } = installation
    if (options.client === true) {
      await context.out.show({ client: version }, () => listing({ Client: version }))
      return
    }
    const { client, target } = await openPublicClient(context)
    const health = await client.health()
    const server = { address: target.server.text, version: health.version ?? null }
    await context.out.show({ client: version, server }, () =>
      listing({ Client: version, Server: `${server.version ?? 'unknown'} at ${server.address}` }),
    )
  },
})
