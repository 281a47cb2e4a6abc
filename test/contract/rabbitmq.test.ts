import { connect } from 'amqplib'
import type { Handle, Issued } from '../../src/backends/kind.ts'
import { rabbitmq } from '../../src/backends/rabbitmq/kind.ts'
import { createTestHost } from '../support/host.ts'
import { startRabbit } from '../support/rabbitmq-server.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('rabbitmq', async (): Promise<OpenKind> => {
  const server = await startRabbit()
  const { settings } = server
  const { host, logged } = createTestHost('rabbit')
  await server.api('PUT', '/queues/%2F/contract', {})
  return {
    kind: rabbitmq as unknown as OpenKind['kind'],
    backend: await rabbitmq.open(settings, host),
    scopes: ['/:contract:read'],
    logged,
    // A port where nothing listens.
    unreachable: () => rabbitmq.open({ ...settings, url: 'http://127.0.0.1:1' }, host),
    hostile: (url) => rabbitmq.open({ ...settings, url }, host),
    probe: {
      exists: async (handle: Handle) =>
        (await server.api('GET', `/users/${String(handle['username'])}`)).status === 200,
      async use(issued: Issued) {
        const connection = await connect(String(issued.fields?.['url']))
        const channel = await connection.createChannel()
        const got = await channel.get('contract')
        await connection.close()
        return got === false
      },
    },
    close: () => server.stop(),
  }
})
