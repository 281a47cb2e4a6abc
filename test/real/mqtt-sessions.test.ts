import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mqtt } from '../../src/backends/mqtt/kind.ts'
import { newRequest } from '../contract/open-kind.ts'
import { createTestHost } from '../support/host.ts'
import { type Login, publishes, subscribe } from '../support/mosquitto-client.ts'
import { type MosquittoServer, startMosquitto } from '../support/mosquitto-server.ts'

const signal = () => AbortSignal.timeout(60_000)
let server: MosquittoServer

beforeAll(async () => {
  server = await startMosquitto()
})
afterAll(() => server.stop())

const open = () => mqtt.open(server.settings, createTestHost('broker').host)

describe('a persistent session of Mosquitto', () => {
  const lasting = (id: string) => ['-i', id, '-c', '-x', '600', '-q', '1']

  test.each([
    ['denies', false],
    ['allows', true],
  ])(
    'resumed by a narrow credential gives what that may read, where the broker %s receiving',
    async (_, allow) => {
      await using backend = await open()
      await server.setDefault('publishClientReceive', allow)
      const issue = async (...scopes: string[]) => {
        const { fields, handle = {} } = await backend.issue({ ...newRequest(scopes), params: {} }, signal())
        return { login: fields as unknown as Login, end: () => backend.revoke?.(handle, signal()) }
      }
      const [wide, sender] = [await issue('*'), await issue('*:write')]
      const session = lasting(`shared-${allow}`)
      const left = subscribe(wide.login, 'secret', ...session, '-E')
      expect(await left.granted).toBe(true)
      await left.ended
      expect(await publishes(sender.login, 'secret')).toBe(true)
      await wide.end()
      const narrow = await issue('jobs:read')
      const resumed = subscribe(narrow.login, 'jobs', ...session)
      await resumed.granted
      for (const topic of ['secret', 'jobs']) expect(await publishes(sender.login, topic)).toBe(true)
      expect(await resumed.first).toBe('jobs')
      resumed.close()
      await server.setDefault('publishClientReceive', false)
    },
  )
})
