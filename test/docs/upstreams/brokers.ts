import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connect, credsAuthenticator } from '@nats-io/transport-node'
import { expect } from 'vitest'
import { shellQuote } from '../../../src/domain/formats/shell-word.ts'
import { freePort } from '../../support/free-port.ts'
import { pluginFile, startMosquittoWith } from '../../support/mosquitto-server.ts'
import { startNats } from '../../support/nats-server.ts'
import type { RabbitServer } from '../../support/rabbitmq-server.ts'
import { run } from '../../support/run-program.ts'
import type { StartUpstream } from '../backend-page.ts'

/** On a server that other tests use, too: Mayfly's user has a name of its own. */
export const rabbitmqAt =
  (server: RabbitServer): StartUpstream =>
  async () => {
    const user = 'mayfly-of-the-page'
    const assignments = Object.entries(server.env).map(([name, value]) => `${name}=${shellQuote(value)}`)
    const tool = (name: string) => `${assignments.join(' ')} exec /usr/lib/rabbitmq/bin/${name} "$@"`
    await server.api('DELETE', '/queues/shop/orders.new/contents')
    return {
      programs: { rabbitmqctl: tool('rabbitmqctl'), 'rabbitmq-plugins': tool('rabbitmq-plugins') },
      replace: [
        ['https://rabbit.example.com:15671', `${server.url} --amqp-url ${server.amqpUrl} --local`],
        ...['add_user', 'set_user_tags', '--username'].map(
          (word) => [`${word} mayfly`, `${word} ${user}`] as const,
        ),
      ],
      async verify() {
        const get = { count: 1, ackmode: 'ack_requeue_false', encoding: 'auto' }
        const taken = await server.api('POST', '/queues/shop/orders.new/get', get)
        expect(taken.body).toMatchObject([{ payload: 'hello' }])
        // Mayfly works with the tag alone.
        expect((await server.api('GET', `/users/${user}/permissions`)).body).toEqual([])
        expect((await server.api('GET', `/users/${user}`)).body).toMatchObject({ tags: ['administrator'] })
      },
      stop: async () => {},
    }
  }

/** The page makes the file of the plugin, and names it to a broker that knows nothing of it before. */
export const mqtt: StartUpstream = async ({ cwd, etc, var: variable }) => {
  const port = await freePort()
  await mkdir(join(variable, 'lib/mosquitto'), { recursive: true })
  await mkdir(join(etc, 'mosquitto/conf.d'), { recursive: true })
  const server = await startMosquittoWith(`listener ${port} 127.0.0.1\ninclude_dir ${etc}/mosquitto/conf.d\n`)
  const options = join(cwd, 'options')
  await mkdir(options)
  await writeFile(join(options, 'mosquitto_ctrl'), `-h 127.0.0.1\n-p ${port}\n`)
  const control = (...args: string[]) =>
    run(['sh', '-c', `mosquitto_ctrl -u admin dynsec ${args.join(' ')} < admin-password`], env, { cwd })
  const env = { PATH: process.env['PATH'] ?? '', XDG_CONFIG_HOME: options }
  return {
    programs: {
      mosquitto_ctrl: `XDG_CONFIG_HOME=${options} exec /usr/bin/mosquitto_ctrl "$@"`,
      // The broker of this test runs as the user who runs the tests.
      chown: '[ "$1" = mosquitto ]',
    },
    services: { mosquitto: server.restart },
    replace: [
      ['--url mqtts://mqtt.example.com:8883', `--url mqtt://127.0.0.1:${port} --local`],
      ['/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so', pluginFile()],
    ],
    async verify(results) {
      // Nothing was refused.
      expect(results.at(-1)?.output).toBe('')
      expect((await control('getClient', 'mayfly')).stdout).toMatch(/^Roles:\s+mayfly \(.*\)\s*$/m)
      // A client has gone with its command.
      expect((await control('listClients')).stdout).not.toContain('mf_')
    },
    stop: server.stop,
  }
}

/** `nsc` is not in Debian; the operator and the account of the page are made by the libraries that it uses. */
export const nats: StartUpstream = async ({ cwd }) => {
  const server = await startNats()
  const everything = await connect({
    servers: server.url,
    authenticator: credsAuthenticator(server.superuser),
  })
  const seen: string[] = []
  everything.subscribe('orders.>', {
    callback: (_, message) => void seen.push(`${message.subject} ${message.string()}`),
  })
  await everything.flush()
  // As `npm install` leaves them.
  await symlink(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(cwd, 'node_modules'))
  await writeFile(join(cwd, 'mayfly.nk'), `${server.signingSeed}\n`, { mode: 0o600 })
  return {
    replace: [
      ['--url tls://nats.example.com:4222', `--url ${server.url}`],
      ['ABJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA', server.account],
    ],
    async verify() {
      // The reply to it comes after what the server had to deliver.
      await everything.flush()
      expect(seen).toEqual(['orders.new hello'])
    },
    async stop() {
      await everything.close()
      await server.stop()
    },
  }
}
