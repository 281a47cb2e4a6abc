import fc from 'fast-check'
import { expect } from 'vitest'
import { covers } from '../../src/domain/scope.ts'
import { type Command, command, pick } from './command.ts'
import {
  type IssueRequest,
  issue,
  isTokenGood,
  listActive,
  type Revoker,
  read,
  revoke,
} from './credential-commands.ts'
import { endNow, isAlive, isNear, type Model, type ModelAgent, statusOf } from './model.ts'

const HOUR = 3_600_000
const GRANTS = [['tok:*', 'db:*'], ['tok:read'], ['*'], [], ['db', 'tok:read']]
const LIFETIMES: [string, number][] = [
  ['10m', 600_000],
  ['3h', 3 * HOUR],
]

function livingAgent(model: Model, name: string, now: number): ModelAgent | undefined {
  return model.agents.find((one) => one.name === name && isAlive(one, now))
}

const createAgent = (index: number, grant: number, lifetime: number) =>
  command(`createAgent(${index}, ${grant}, ${lifetime})`, async (model, world) => {
    const name = `a${index}`
    const [text, ms] = LIFETIMES[lifetime] ?? []
    const now = world.now()
    const reply = await world.admin('POST', '/v1/admin/agents', {
      name,
      scopes: GRANTS[grant],
      ...(text !== undefined && { expires_in: text }),
    })
    const holders = model.agents.filter((one) => one.name === name && !one.deleted)
    if (holders.length === 0) expect(reply.status).toBe(200)
    if (holders.some((one) => isAlive(one, now) && !isNear(now, one.expiresAt)))
      expect(reply.status).toBe(409)
    if (reply.status !== 200)
      return void expect(reply).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
    // An expired agent keeps its name until it is swept, so creating it succeeds only after that.
    const { token, oidc } = reply.body
    world.secrets.add(token).add(oidc.client_secret)
    model.done['agent.created'] += 1
    model.agents.push({
      name,
      id: reply.body.id,
      token: reply.body.token,
      clientId: reply.body.oidc.client_id,
      clientSecret: reply.body.oidc.client_secret,
      scopes: GRANTS[grant] ?? [],
      expiresAt: reply.body.expires_at === null ? null : Date.parse(reply.body.expires_at),
      deleted: false,
    })
    if (ms !== undefined) {
      const createdAt = Date.parse(reply.body.expires_at) - ms
      expect(createdAt).toBeGreaterThanOrEqual(now)
      expect(createdAt).toBeLessThanOrEqual(world.now())
    }
  })

const deleteAgent = (index: number, itself: boolean) =>
  command(`deleteAgent(${index}, ${itself})`, async (model, world) => {
    const now = world.now()
    const agent = pick(model.agents, index)
    if (agent === undefined || isNear(now, agent.expiresAt)) return
    const alive = isAlive(agent, now)
    if (itself) {
      const reply = await world.send('DELETE', '/v1/self', agent.token)
      expect(reply.status).toBe(alive ? 204 : 401)
    } else {
      if (!alive && livingAgent(model, agent.name, now) !== undefined) return
      const reply = await world.admin('DELETE', `/v1/admin/agents/${agent.name}`)
      // An expired agent exists until it is swept.
      if (alive) expect(reply.status).toBe(204)
      else if (model.agents.every((one) => one.name !== agent.name || one.deleted))
        expect(reply.status).toBe(404)
      else if (reply.status === 204)
        for (const one of model.agents) if (one.name === agent.name) one.deleted = true
    }
    if (!alive) return
    agent.deleted = true
    for (const one of model.credentials) if (one.agent === agent) endNow(one, now)
  })

const createBackend = (name: 'tok' | 'db') =>
  command(`createBackend(${name})`, async (model, world) => {
    const settings =
      name === 'tok'
        ? { type: 'jwt', config: { audience: 'demo' } }
        : { type: 'postgres', config: world.upstreamConfig }
    const exists = model.backends.some((one) => one.name === name && !one.deleted)
    const reply = await world.admin('POST', '/v1/admin/backends', { name, ...settings })
    expect(reply.status).toBe(exists ? 409 : 200)
    if (exists) return
    model.backends.push({ name, upstream: name === 'db', deleted: false })
    model.done['backend.created'] += 1
  })

const deleteBackend = (name: 'tok' | 'db', force: boolean) =>
  command(`deleteBackend(${name}, ${force})`, async (model, world) => {
    const now = world.now()
    const backend = model.backends.find((one) => one.name === name && !one.deleted)
    const own = model.credentials.filter((one) => one.backend === backend)
    const reply = await world.admin('DELETE', `/v1/admin/backends/${name}${force ? '?force=true' : ''}`)
    if (backend === undefined) return void expect(reply.status).toBe(404)
    if (force || own.length === 0) expect(reply.status).toBe(204)
    else if (own.some((one) => statusOf(one, now) === 'active' && !one.uncertain))
      expect(reply.status).toBe(409)
    // An ended credential may still have to be settled.
    else expect([204, 409]).toContain(reply.status)
    if (reply.status !== 204) return
    backend.deleted = true
    model.done['backend.deleted'] += 1
    for (const one of own) endNow(one, now)
  })

const login = (index: number, narrow: boolean) =>
  command(`login(${index}, ${narrow})`, async (model, world) => {
    const now = world.now()
    const agent = pick(model.agents, index)
    if (agent === undefined || isNear(now, agent.expiresAt)) return
    const narrowed = narrow && agent.scopes.some((one) => covers(one, 'tok:read'))
    const reply = await world.login(agent.clientId, agent.clientSecret, narrowed ? 'tok:read' : undefined)
    // 429 after ten failed logins from this address.
    if (!isAlive(agent, now)) return void expect([401, 429]).toContain(reply.status)
    expect(reply.status).toBe(200)
    const text: string = reply.body.access_token
    world.secrets.add(text).add(text.split('.')[2] ?? '')
    model.done['token.issued'] += 1
    const scopes = narrowed ? ['tok:read'] : agent.scopes
    model.tokens.push({ text, agent, scopes, expiresAt: now + reply.body.expires_in * 1_000, dead: false })
  })

const present = (index: number) =>
  command(`present(${index})`, async (model, world) => {
    const now = world.now()
    const token = pick(model.tokens, index)
    if (token === undefined || Math.abs(token.expiresAt - now) < 10_000 || isNear(now, token.agent.expiresAt))
      return
    const reply = await world.send('GET', '/v1/status', token.text)
    expect(reply.status).toBe(isTokenGood(token, now) ? 200 : 401)
    if (reply.status === 200) expect(reply.body).toMatchObject({ id: token.agent.id, scopes: token.scopes })
  })

const signingKey = (index: number) =>
  command(`signingKey(${index})`, async (model, world) => {
    const now = world.now()
    const agent = pick(model.agents, index)
    if (agent === undefined || isNear(now, agent.expiresAt)) return
    const reply = await world.send('GET', '/v1/signing-key', agent.token)
    expect(reply.status).toBe(isAlive(agent, now) ? 200 : 401)
    const [, , longest = ''] = [...(reply.body.private_key?.split('\n') ?? [])]
      .sort((a, b) => a.length - b.length)
      .reverse()
    if (longest.length > 40) world.secrets.add(longest.trim())
  })

const advance = (ms: number) => command(`advance(${ms})`, async (_, world) => world.advance(ms))
const sweep = () => command('sweep()', async (_, world) => world.sweep())
const restart = () => command('restart()', async (_, world) => world.restart())
const rotate = () =>
  command('rotate()', async (model, world) => {
    expect((await world.admin('POST', '/v1/admin/keys/rotate')).status).toBe(200)
    for (const token of model.tokens) token.dead = true
    model.done['keys.rotated'] += 1
  })

const index = fc.nat({ max: 30 })
const backend = fc.constantFrom('tok' as const, 'db' as const)
const issueRequest: fc.Arbitrary<IssueRequest> = fc
  .record({
    backend,
    ttl: fc.constantFrom(undefined, undefined, undefined, '1m', '24h', '24h', '25h'),
    scopes: fc.constantFrom(undefined, undefined, undefined, ['*'], ['read']),
    key: fc.constantFrom(undefined, undefined, 'k1', 'k2'),
    groupA: fc.boolean(),
  })
  .map((one) => (one.backend === 'db' && one.scopes?.[0] === 'read' ? { ...one, scopes: ['*'] } : one))

const times = (count: number, one: fc.Arbitrary<Command>) => Array.from({ length: count }, () => one)

/** Random sequences; commands that only end something are rarer than commands that create. */
export const commands = (maxCommands: number) => {
  const creating = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 4 }), fc.nat({ max: 4 }))
  const revoker = fc.constantFrom<Revoker>('owner', 'owner', 'other', 'admin')
  return fc.commands(
    [
      ...times(
        12,
        fc
          .tuple(index, fc.nat({ max: 2 }), issueRequest)
          .map(([who, jwt, one]) => issue(who, jwt === 0, one)),
      ),
      ...times(
        5,
        fc.tuple(index, revoker, fc.boolean()).map((all) => revoke(...all)),
      ),
      ...times(
        3,
        creating.map((all) => createAgent(...all)),
      ),
      ...times(
        1,
        fc.tuple(index, fc.boolean()).map((all) => deleteAgent(...all)),
      ),
      ...times(2, backend.map(createBackend)),
      ...times(
        1,
        fc.tuple(backend, fc.boolean()).map((all) => deleteBackend(...all)),
      ),
      ...times(1, index.map(read)),
      ...times(1, index.map(listActive)),
      ...times(
        3,
        fc.tuple(index, fc.boolean()).map((all) => login(...all)),
      ),
      ...times(2, index.map(present)),
      ...times(1, index.map(signingKey)),
      ...times(
        2,
        fc.constantFrom(1_000, 70_000, 70_000, 400_000, 400_000, 3_700_000, 90_000_000).map(advance),
      ),
      ...times(2, fc.constant(sweep())),
      ...times(1, fc.constant(rotate())),
      ...times(1, fc.constant(restart())),
    ],
    { maxCommands, size: 'max' },
  )
}

/** Runs first, so that random commands have something to act on. */
export const opening: readonly Command[] = [
  createBackend('tok'),
  createBackend('db'),
  createAgent(0, 2, 4),
  createAgent(1, 0, 4),
]
