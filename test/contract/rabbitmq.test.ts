import { connect } from 'amqplib'
import type { Handle, Issued } from '../../src/backends/kind.ts'
import { rabbitmq } from '../../src/backends/rabbitmq/kind.ts'
import { type AnsweringProxy, startAnsweringProxy } from '../support/answering-proxy.ts'
import { createTestHost } from '../support/host.ts'
import { mqttSession, opensInALoop, staysSilent, stompSession } from '../support/rabbitmq-holds.ts'
import { startRabbit } from '../support/rabbitmq-server.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('rabbitmq', async (): Promise<OpenKind> => {
  const server = await startRabbit(['rabbitmq_mqtt', 'rabbitmq_stomp'])
  const { settings } = server
  const { host, logged } = createTestHost('rabbit')
  await server.api('PUT', '/queues/%2F/contract', {})
  let proxy: AnsweringProxy | undefined
  return {
    kind: rabbitmq as unknown as OpenKind['kind'],
    backend: await rabbitmq.open(settings, host),
    scopes: ['/'],
    logged,
    tricks: {
      'connections in a loop': opensInALoop,
      'a connection that answers nothing': staysSilent,
      'a session of MQTT': (issued) => mqttSession(issued, server),
      'a session of STOMP': (issued) => stompSession(issued, server.stompPort),
    },
    async disarmed() {
      proxy = await startAnsweringProxy(server.url, (method, path) =>
        method === 'DELETE' && path.startsWith('/api/users/') ? { status: 204 } : undefined,
      )
      return rabbitmq.open({ ...settings, url: proxy.url }, host)
    },
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
    async close() {
      await proxy?.[Symbol.asyncDispose]()
      await server.stop()
    },
  }
})
