import type { Redis } from 'ioredis'
import type { Issued } from '../../src/backends/kind.ts'
import type { Hold, Tricks } from '../contract/open-kind.ts'
import type { RedisServer } from './redis-server.ts'

/** What the holder of a Redis credential may do in order to keep it. */
export function redisTricks(server: RedisServer): Tricks {
  const open = (issued: Issued) => openHolder(server, issued)
  return {
    'a client that waits for a list': async (issued) => {
      const holder = open(issued)
      const client = await holder.login()
      client.blpop('shop:nothing', 0).catch(() => undefined)
      while (!String(await server.call('CLIENT', 'LIST')).includes('cmd=blpop'));
      return holder
    },
    'a client in a transaction that watches a key': async (issued) => {
      const holder = open(issued)
      const client = await holder.login()
      await client.watch('shop:1')
      await client.call('MULTI')
      await client.call('SET', 'shop:1', 'planted')
      return holder
    },
    'a client that listens, and one that hears no answers': async (issued) => {
      const holder = open(issued)
      const [listening, deaf] = [await holder.login(), await holder.login()]
      await listening.subscribe('shop:news')
      deaf.call('CLIENT', 'REPLY', 'OFF').catch(() => undefined)
      while (!String(await server.call('CLIENT', 'LIST')).includes('cmd=client|reply'));
      return holder
    },
    'clients that connect in a loop': async (issued) => {
      const holder = open(issued)
      const stopped = new AbortController()
      const loop = async () => {
        while (!stopped.signal.aborted) await holder.login()
      }
      await holder.login()
      const loops = [loop(), loop()].map((one) => one.catch(() => undefined))
      return {
        works: holder.works,
        async [Symbol.asyncDispose]() {
          stopped.abort()
          await Promise.all(loops)
          await holder[Symbol.asyncDispose]()
        },
      }
    },
    'a script that does not end': async (issued) => {
      const holder = open(issued)
      await server.call('CONFIG', 'SET', 'busy-reply-threshold', '100')
      const client = await holder.login()
      client.eval('while true do end', 0).catch(() => undefined)
      const isBusy = () =>
        server.call('PING').then(
          () => false,
          () => true,
        )
      while (!(await isBusy()));
      return {
        // The server has ended the script before it answers anybody.
        works: async () => (await isBusy()) || (await holder.works()),
        [Symbol.asyncDispose]: () => holder[Symbol.asyncDispose](),
      }
    },
  }
}

/** Works while the server has one of its clients, or admits a new one. */
function openHolder(server: RedisServer, { fields }: Issued): Hold & { login(): Promise<Redis> } {
  const user = { username: String(fields?.['username']), password: String(fields?.['password']) }
  const clients: Redis[] = []
  const login = async () => {
    const client = server.login(user)
    clients.push(client)
    await client.ping()
    return client
  }
  return {
    login,
    async works() {
      if (String(await server.call('CLIENT', 'LIST')).includes(`user=${user.username} `)) return true
      return login().then(
        () => true,
        () => false,
      )
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.disconnect()
    },
  }
}
