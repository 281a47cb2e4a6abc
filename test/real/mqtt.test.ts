import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Config } from '../../src/backends/mqtt/config.ts'
import { mqtt } from '../../src/backends/mqtt/kind.ts'
import { newCredentialId, newRequest } from '../contract/open-kind.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { createTestHost } from '../support/host.ts'
import { type Login, publishes, subscribe } from '../support/mosquitto-client.ts'
import { type MosquittoServer, startMosquitto } from '../support/mosquitto-server.ts'

interface Issued {
  id: string
  expires_at: string
  fields: Login
}

const signal = () => AbortSignal.timeout(60_000)

let server: MosquittoServer
let app: TestApp
let agent: NewAgent

beforeAll(async () => {
  server = await startMosquitto()
  app = await startApp({ jobs: true })
  const reply = await app.admin('POST', '/v1/admin/backends', {
    type: 'mqtt',
    name: 'broker',
    config: server.settings,
  })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  agent = await app.newAgent({ scopes: ['broker'] })
})
afterAll(async () => {
  await app.close()
  await server.stop()
})

async function issue(scopes: readonly string[]): Promise<Issued> {
  const reply = await agent.client.post('/v1/credentials/broker', { ttl: '5m', scopes })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  return reply.body
}

const clientExists = async ({ fields }: Pick<Issued, 'fields'>) => {
  const { stdout, stderr } = await server.control('getClient', fields.username)
  return !`${stdout}${stderr}`.includes('not found')
}

describe('a client of Mosquitto', () => {
  test('publishes and subscribes where its scopes say, and nowhere else', async () => {
    const issued = await issue(['sensors/hall/*:write', 'sensors/+/state:read', 'jobs'])
    expect(issued.fields.username).toBe(`mf_${issued.id.slice('cred_'.length)}`)
    expect(await publishes(issued.fields, 'sensors/hall/temperature')).toBe(true)
    expect(await publishes(issued.fields, 'jobs')).toBe(true)
    for (const topic of ['sensors/kitchen/temperature', 'jobs/1', '$CONTROL/dynamic-security/v1', '$SYS/a'])
      expect([topic, await publishes(issued.fields, topic)]).toEqual([topic, false])
    const read = async (topic: string) => {
      const { granted, ended, close } = subscribe(issued.fields, topic)
      const isGranted = await granted
      close()
      await ended
      return isGranted
    }
    for (const topic of ['sensors/hall/state', 'sensors/+/state', 'jobs'])
      expect(await read(topic)).toBe(true)
    for (const topic of ['sensors/#', '#', 'sensors/+/+', '+', 'jobs/#', '$SYS/#', '$share/a/#'])
      expect([topic, await read(topic)]).toEqual([topic, false])
  })

  test('revoked, it is refused, and its open connection has ended', async () => {
    const issued = await issue(['jobs'])
    const { granted, ended } = subscribe(issued.fields, 'jobs')
    expect(await granted).toBe(true)
    const since = performance.now()
    const reply = await agent.client.delete(`/api/v1/credentials/${issued.id}`)
    expect(reply.body).toMatchObject({ revoked: true })
    // "Administrative action" (MQTT 5.0, §3.14.2.1).
    expect(await ended).toContain('DISCONNECT (152)')
    expect(performance.now() - since).toBeLessThan(5_000)
    expect(await publishes(issued.fields, 'jobs')).toBe(false)
    expect(await clientExists(issued)).toBe(false)
  })

  test('expired, it is gone by the work of the sweeper, with its connection', async () => {
    const issued = await issue(['jobs'])
    const { granted, ended } = subscribe(issued.fields, 'jobs')
    expect(await granted).toBe(true)
    app.advancePast(issued.expires_at)
    expect(await ended).toContain('DISCONNECT (152)')
    await eventually(async () => expect(await clientExists(issued)).toBe(false))
  })

  test('outlives a restart of the broker, and can be ended after it', async () => {
    const issued = await issue(['jobs'])
    await server.restart()
    expect(await publishes(issued.fields, 'jobs')).toBe(true)
    await agent.client.delete(`/api/v1/credentials/${issued.id}`)
    await eventually(async () => expect(await clientExists(issued)).toBe(false))
    expect(await publishes((await issue(['jobs'])).fields, 'jobs')).toBe(true)
  })
})

describe('a backend of Mosquitto', () => {
  const openWith = (settings: Partial<Config>) =>
    mqtt.open({ ...server.settings, ...settings }, createTestHost('broker').host)

  test('says what its check misses', async () => {
    const fails = async (settings: Partial<Config>) => {
      const backend = await openWith(settings)
      return backend.check(signal()).then(
        () => 'works',
        ({ fault, message }) => `${fault}: ${message}`,
      )
    }
    expect(await fails({ password: 'wrong' })).toBe('denied: The broker refused the login.')
    const { fields = {} } = await (await openWith({})).issue({ ...newRequest(['*']), params: {} }, signal())
    const weak = { username: String(fields['username']), password: String(fields['password']) }
    expect(await fails(weak)).toContain('denied: The broker does not let Mayfly use $CONTROL')
    for (const type of ['publishClientSend', 'subscribe', 'publishClientReceive']) {
      await server.setDefault(type, true)
      const command = `mosquitto_ctrl dynsec setDefaultACLAccess ${type} deny`
      expect(await fails({})).toContain(`misconfigured: The broker allows ${type} by default`)
      expect(await fails({})).toContain(command)
      await server.setDefault(type, false)
    }
    expect(await fails({})).toBe('works')
    await expect(openWith({ url: 'mqtt://broker.test', local: false })).rejects.toThrow('mqtts')
  })

  test('verifies the certificate of the broker', async () => {
    const { url, ca } = server.tls
    await expect((await openWith({ url })).check(signal())).rejects.toMatchObject({ fault: 'misconfigured' })
    const backend = await openWith({ url, ca })
    await backend.check(signal())
    const request = { ...newRequest(['jobs']), params: {} }
    const { fields } = await backend.issue(request, signal())
    expect(await publishes(fields as never, 'jobs')).toBe(false)
    await backend.revoke?.(backend.recover?.(request.credentialId) ?? {}, signal())
    await backend[Symbol.asyncDispose]()
  })

  test('deletes no client but those of Mayfly', async () => {
    const backend = await openWith({})
    for (const username of ['mayfly', 'mf_admin', `mf_${newCredentialId().slice(6)}`])
      await expect(backend.revoke?.({ username }, signal())).rejects.toMatchObject({ fault: 'misconfigured' })
  })

  const listed = async (what: 'listGroups' | 'listRoles' | 'listClients') =>
    (await server.control(what)).stdout.split('\n').filter((name) => name.startsWith('mf_'))
  const lasting = (scopes: readonly string[], ttlMs: number) => ({
    ...newRequest(scopes, { ttlMs }),
    params: {},
  })

  async function openNamed(uid: string, now = () => Date.now()) {
    const backend = await mqtt.open(server.settings, { ...createTestHost('broker').host, uid, now })
    const groups = async (what: 'listGroups' | 'listRoles' = 'listGroups') =>
      (await listed(what)).filter((name) => name.startsWith(`mf_${uid}_`))
    return { backend, groups }
  }

  test('shares a group between credentials with equal access, of which each ends by itself', async () => {
    const { backend, groups } = await openNamed('be_equal')
    const first = lasting(['a:read', 'b'], 600_000)
    const second = { ...first, credentialId: newCredentialId(), scopes: ['b', 'a:read', 'b:write'] }
    const issued = await Promise.all([first, second].map((request) => backend.issue(request, signal())))
    expect([await groups(), await groups('listRoles')]).toEqual([[expect.any(String)], await groups()])
    await backend.issue({ ...first, credentialId: newCredentialId(), scopes: ['a:read'] }, signal())
    expect(await groups()).toHaveLength(2)
    await backend.revoke?.(issued[0]?.handle ?? {}, signal())
    const works = ({ fields }: (typeof issued)[number]) => publishes(fields as never, 'b')
    expect(await Promise.all(issued.map(works))).toEqual([false, true])
  })

  test('deletes a group once its credentials have expired, and creates it again for an issue that is late', async () => {
    let now = Date.now()
    const { backend, groups } = await openNamed('be_ended', () => now)
    const [short, long] = [lasting(['jobs'], 60_000), lasting(['jobs'], 86_400_000)]
    for (const request of [short, long]) await backend.issue(request, signal())
    const before = await groups()
    await backend.keepUp?.(signal())
    expect(await groups()).toEqual(before)
    now = short.expiresAt + 7_200_000
    await backend.keepUp?.(signal())
    expect(await groups()).toHaveLength(1)
    expect(await groups('listRoles')).toEqual(await groups())
    const { fields } = await backend.issue({ ...short, credentialId: newCredentialId() }, signal())
    expect(await groups()).toEqual(before)
    expect(await publishes(fields as never, 'jobs')).toBe(true)
  })

  test('deletes its groups with the backend, and no others', async () => {
    const { backend, groups } = await openNamed('be_gone')
    const other = await openNamed('be_other')
    for (const one of [backend, other.backend]) await one.issue(lasting(['jobs'], 86_400_000), signal())
    await backend.retire?.(signal())
    await backend.retire?.(signal())
    expect([await groups(), await groups('listRoles')]).toEqual([[], []])
    expect(await other.groups()).toHaveLength(1)
  })

  test('lists clients on from a name, even after those before it have ended', async () => {
    const { backend } = await openNamed('be_listed')
    const names = await listed('listClients')
    const page = await backend.list?.(names[1], signal())
    expect(page?.items.map(({ handle }) => handle['username'])).toEqual(names.slice(2))
    await backend.revoke?.({ username: names[0] ?? '' }, signal())
    expect(await backend.list?.(names[1], signal())).toEqual(page)
  })

  const BAD: [string, (socket: Socket) => void, string][] = [
    ['says nothing', () => undefined, 'timeout'],
    ['hangs up', (socket) => socket.end(), 'unavailable'],
    ['speaks HTTP', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'), 'unavailable'],
    ['sends too much', (socket) => socket.write(Buffer.alloc(400_000, 0x30)), 'unavailable'],
  ]
  test.each(BAD)('fails when the broker %s', async (_, answer, fault) => {
    const sockets: Socket[] = []
    const bad = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.once('data', () => answer(socket))
    })
    await new Promise<void>((resolve) => bad.listen(0, '127.0.0.1', resolve))
    const { port } = bad.address() as { port: number }
    const backend = await openWith({ url: `mqtt://127.0.0.1:${port}` })
    const request = { ...newRequest(['jobs']), params: {} }
    const soon = AbortSignal.timeout(500)
    await expect(backend.issue(request, soon)).rejects.toMatchObject({ name: 'BackendError', fault })
    for (const socket of sockets) socket.destroy()
    await backend[Symbol.asyncDispose]()
    await new Promise((resolve) => bad.close(resolve))
  })
})
