import type { Backend, Issued } from '../../src/backends/kind.ts'
import type { Config } from '../../src/backends/redis/config.ts'
import { redis } from '../../src/backends/redis/kind.ts'
import { createTestHost } from './host.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

export interface RedisBench extends RedisServer {
  readonly settings: Config
  open(overrides?: Partial<Config>): Promise<Backend>
  logged(): string
  /** Writes a key of `shop` as an agent would. */
  canWrite(issued: Issued): Promise<boolean>
  close(): Promise<void>
}

/** The rules of docs/backends/redis.md. */
export const LEAST = '+acl|setuser +acl|deluser +acl|users +acl|save +acl|dryrun +script|kill +hello +ping'

/** A server with a user for Mayfly that has the least rights. */
export async function openRedisBench(): Promise<RedisBench> {
  const server = await startRedis([`user mayfly on >change-me resetchannels -@all ${LEAST}`])
  const { host, logged } = createTestHost('cache')
  const settings: Config = {
    host: '127.0.0.1',
    port: server.port,
    username: 'mayfly',
    password: 'change-me',
    local: true,
    database: 0,
    persist: false,
  }
  const opened: Backend[] = []
  return {
    ...server,
    settings,
    logged,
    async open(overrides = {}) {
      const backend = await redis.open({ ...settings, ...overrides }, host)
      opened.push(backend)
      return backend
    },
    async canWrite({ fields }) {
      const client = server.login({
        username: String(fields?.['username']),
        password: String(fields?.['password']),
      })
      try {
        return (await client.set('shop:1', 'x')) === 'OK'
      } finally {
        client.disconnect()
      }
    },
    async close() {
      await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
      await server.stop()
    },
  }
}
