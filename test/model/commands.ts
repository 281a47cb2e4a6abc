import fc, { type AsyncCommand } from 'fast-check'
import { expect } from 'vitest'
import { covers } from '../../src/domain/scope.ts'
import {
  endNow,
  isAlive,
  isNear,
  type Model,
  type ModelAgent,
  type ModelCredential,
  type ModelToken,
  statusOf,
} from './model.ts'
import type { Reply, World } from './world.ts'

export type Command = AsyncCommand<Model, World>

const HOUR = 3_600_000
const GRANTS = [['tok:*', 'db:*'], ['tok:read'], ['*'], [], ['db', 'tok:read']]
const LIFETIMES: [string, number][] = [
  ['10m', 600_000],
  ['3h', 3 * HOUR],
]
const KEEPS_TOKEN = 300_000
const KEEPS_KEY = 24 * HOUR

const command = (text: string, run: (model: Model, world: World) => Promise<void>): Command => ({
  check: () => true,
  run,
  toString: () => text,
})

const pick = <T>(all: readonly T[], index: number): T | undefined => all[index % Math.max(1, all.length)]

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
    // An expired one that was not swept yet keeps its name; by now it cannot be there any more.
    for (const { token, oidc } of [reply.body])
      for (const one of [token, oidc.client_secret]) world.secrets.add(one)
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
    if (ms !== undefined) expect(Math.abs(Date.parse(reply.body.expires_at) - now - ms)).toBeLessThan(3_000)
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
      // An expired one is there until it is swept.
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
    const wish =
      name === 'tok'
        ? { type: 'jwt', config: { audience: 'demo' } }
        : { type: 'postgres', config: world.upstreamConfig }
    const exists = model.backends.some((one) => one.name === name && !one.deleted)
    const reply = await world.admin('POST', '/v1/admin/backends', { name, ...wish })
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
    else if (own.some((one) => statusOf(one, now) === 'active' && !one.unsure)) expect(reply.status).toBe(409)
    // What has ended may still have to be settled.
    else expect([204, 409]).toContain(reply.status)
    if (reply.status !== 204) return
    backend.deleted = true
    model.done['backend.deleted'] += 1
    for (const one of own) endNow(one, now)
  })

interface Wish {
  readonly backend: 'tok' | 'db'
  readonly ttl: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly key: string | undefined
  readonly groupA: boolean
}

/** The bearer that is presented, what it is good for, and whether that is certain. */
function presented(model: Model, index: number, jwt: boolean, now: number) {
  if (!jwt) {
    const agent = pick(model.agents, index)
    return agent && { agent, bearer: agent.token, scopes: agent.scopes, good: isAlive(agent, now) }
  }
  const token = pick(model.tokens, index)
  if (token === undefined || Math.abs(token.expiresAt - now) < 10_000) return undefined
  const good = isTokenGood(token, now)
  return { agent: token.agent, bearer: token.text, scopes: token.scopes, good }
}

function isTokenGood(token: ModelToken, now: number): boolean {
  return !token.dead && token.expiresAt > now && isAlive(token.agent, now)
}

const issue = (index: number, jwt: boolean, wish: Wish) =>
  command(`issue(${index}, ${jwt}, ${JSON.stringify(wish)})`, async (model, world) => {
    const now = world.now()
    const who = presented(model, index, jwt, now)
    if (who === undefined || isNear(now, who.agent.expiresAt)) return
    const body = { ...(wish.ttl && { ttl: wish.ttl }), ...(wish.scopes && { scopes: wish.scopes }) }
    const headers = wish.key === undefined ? {} : { 'idempotency-key': wish.key }
    const reply = wish.groupA
      ? await world.send(
          'POST',
          '/api/v1/credentials',
          who.bearer,
          { backend: wish.backend, ...body },
          headers,
        )
      : await world.send('POST', `/v1/credentials/${wish.backend}`, who.bearer, body, headers)
    if (!who.good) return void expect(reply.status).toBe(401)
    const backend = model.backends.find((one) => one.name === wish.backend && !one.deleted)
    if (backend === undefined) return void expect(reply.body.error.code).toBe('backend_not_found')
    const asked = JSON.stringify([model.backends.indexOf(backend), body])
    const known = wish.key === undefined ? undefined : model.keys.get(`${who.agent.id}|${wish.key}`)
    if (known !== undefined && Math.abs(now - known.at - KEEPS_KEY) < 3_000) return
    if (known !== undefined && now - known.at < KEEPS_KEY)
      return known.body === asked
        ? expectReplay(known, reply, now)
        : void expect(reply.body.error.code).toBe('conflict')
    const refusal = refusalOf(who.scopes, wish)
    if (refusal !== undefined) return void expect(reply.body.error?.code).toBe(refusal)
    expect(reply).toMatchObject({ status: wish.groupA ? 201 : 200 })
    remember(model, world, who.agent, wish, reply, asked, now)
  })

function refusalOf(held: readonly string[], wish: Wish): string | undefined {
  const here = held.filter((one) => covers(one.split(':')[0] ?? '', wish.backend))
  const wanted = wish.scopes?.map((one) => `${wish.backend}:${one}`) ?? []
  if (here.length === 0 || !wanted.every((one) => held.some((own) => covers(own, one))))
    return 'scope_not_allowed'
  return wish.ttl === '25h' ? 'ttl_exceeded' : undefined
}

function expectReplay(
  known: { credential: ModelCredential; token: string; at: number },
  reply: Reply,
  now: number,
): void {
  expect(reply.body.id).toBe(known.credential.id)
  const { token } = reply.body
  expect([undefined, known.token]).toContain(token)
  if (statusOf(known.credential, now) === 'active' && now - known.at < KEEPS_TOKEN - 3_000)
    expect(token).toBe(known.token)
  if (known.credential.revoked || now - known.at > KEEPS_TOKEN + 3_000) expect(token).toBeUndefined()
}

function remember(
  model: Model,
  world: World,
  agent: ModelAgent,
  wish: Wish,
  { body }: Reply,
  asked: string,
  now: number,
): void {
  const backend = model.backends.find((one) => one.name === wish.backend && !one.deleted)
  if (backend === undefined) return
  const secrets =
    wish.backend === 'tok' ? [body.token, body.token.split('.')[2]] : [body.fields.password, body.fields.url]
  for (const one of secrets) world.secrets.add(one)
  expect(model.credentials.some((one) => one.id === body.id)).toBe(false)
  const expiresAt = Date.parse(body.expires_at)
  const longest = wish.ttl === undefined ? HOUR : wish.ttl === '1m' ? 60_000 : 24 * HOUR
  expect(expiresAt).toBeLessThanOrEqual(
    Math.min(now + longest + 3_000, agent.expiresAt ?? Number.POSITIVE_INFINITY),
  )
  const credential: ModelCredential = {
    id: body.id,
    agent,
    backend,
    scopes: wish.scopes ?? [],
    expiresAt,
    revokedAt: undefined,
    revoked: false,
    unsure: false,
  }
  model.credentials.push(credential)
  if (wish.key !== undefined)
    model.keys.set(`${agent.id}|${wish.key}`, { body: asked, credential, token: body.token, at: now })
}

type Revoker = 'owner' | 'other' | 'admin'

const revoke = (index: number, by: Revoker, groupA: boolean) =>
  command(`revoke(${index}, ${by}, ${groupA})`, async (model, world) => {
    const now = world.now()
    const credential = pick(model.credentials, index)
    if (
      credential === undefined ||
      isNear(now, credential.expiresAt) ||
      isNear(now, credential.agent.expiresAt)
    )
      return
    const path = groupA ? `/api/v1/credentials/${credential.id}` : `/v1/active/${credential.id}`
    if (by === 'admin') {
      const reply = await world.admin('DELETE', groupA ? path : `/v1/admin/tokens/${credential.id}`)
      expect(reply.status).toBe(groupA ? 200 : 204)
      return noteRevoked(credential, reply, now)
    }
    const caller =
      by === 'owner'
        ? credential.agent
        : model.agents.find(
            (one) => one !== credential.agent && isAlive(one, now) && !isNear(now, one.expiresAt),
          )
    if (caller === undefined) return
    const reply = await world.send('DELETE', path, caller.token)
    if (!isAlive(caller, now)) return void expect(reply.status).toBe(401)
    if (by === 'other') return void expect(reply.body.error.code).toBe('credential_not_found')
    expect(reply.status).toBe(groupA ? 200 : 204)
    noteRevoked(credential, reply, now)
  })

function noteRevoked(credential: ModelCredential, reply: Reply, now: number): void {
  const before = statusOf(credential, now)
  if (before === 'active') credential.revoked = true
  if (reply.body === undefined) return
  expect(reply.body).toMatchObject({ id: credential.id, revoked: true })
  const at = Date.parse(reply.body.revoked_at)
  if (before === 'active') expect(Math.abs(at - now)).toBeLessThan(3_000)
  if (before === 'expired' && !credential.unsure) expect(at).toBe(credential.expiresAt)
  if (credential.revokedAt !== undefined) expect(at, 'the first end counts').toBe(credential.revokedAt)
  credential.revokedAt = at
}

const read = (index: number) =>
  command(`read(${index})`, async (model, world) => {
    const credential = pick(model.credentials, index)
    if (credential !== undefined) await expectRead(credential, world)
  })

/** `GET` agrees with the model, for the administrator and, while it lives, for the owner. */
export async function expectRead(credential: ModelCredential, world: World): Promise<void> {
  const now = world.now()
  const path = `/api/v1/credentials/${credential.id}`
  const reply = await world.admin('GET', path)
  expect(reply.body).toMatchObject({
    id: credential.id,
    backend: credential.backend.name,
    agent: credential.agent.name,
    expires_at: new Date(credential.expiresAt).toISOString(),
  })
  if (credential.scopes.length > 0) expect(reply.body.scopes).toEqual(credential.scopes)
  expect(reply.body.revoked).toBe(reply.body.status === 'revoked')
  expect(reply.body.token).toBeUndefined()
  if (!credential.unsure && !isNear(now, credential.expiresAt))
    expect(reply.body.status).toBe(statusOf(credential, now))
  if (credential.revokedAt !== undefined && reply.body.revoked)
    expect(Date.parse(reply.body.revoked_at)).toBe(credential.revokedAt)
  if (isNear(now, credential.agent.expiresAt)) return
  const own = await world.send('GET', path, credential.agent.token)
  if (isAlive(credential.agent, now)) expect(own.body).toEqual(reply.body)
  else expect(own.status).toBe(401)
}

const listActive = (index: number) =>
  command(`listActive(${index})`, async (model, world) => {
    const agent = pick(model.agents, index)
    if (agent !== undefined) await expectActive(agent, model, world)
  })

export async function expectActive(agent: ModelAgent, model: Model, world: World): Promise<void> {
  const now = world.now()
  if (isNear(now, agent.expiresAt)) return
  const reply = await world.send('GET', '/v1/active', agent.token)
  if (!isAlive(agent, now)) return void expect(reply.status).toBe(401)
  const own = model.credentials.filter(
    (one) => one.agent === agent && !one.unsure && !isNear(now, one.expiresAt),
  )
  const listed = new Set<string>(reply.body.map((one: { id: string }) => one.id))
  for (const one of own)
    expect([one.id, listed.has(one.id)]).toEqual([one.id, statusOf(one, now) === 'active'])
}

const login = (index: number, narrow: boolean) =>
  command(`login(${index}, ${narrow})`, async (model, world) => {
    const now = world.now()
    const agent = pick(model.agents, index)
    if (agent === undefined || isNear(now, agent.expiresAt)) return
    const narrowed = narrow && agent.scopes.some((one) => covers(one, 'tok:read'))
    const reply = await world.login(agent.clientId, agent.clientSecret, narrowed ? 'tok:read' : undefined)
    if (!isAlive(agent, now)) return void expect([401, 429]).toContain(reply.status)
    // Ten failures of others from this address may have come first.
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
const wish: fc.Arbitrary<Wish> = fc
  .record({
    backend,
    ttl: fc.constantFrom(undefined, undefined, '1m', '24h', '25h'),
    scopes: fc.constantFrom(undefined, undefined, ['*'], ['read']),
    key: fc.constantFrom(undefined, undefined, 'k1', 'k2'),
    groupA: fc.boolean(),
  })
  .map((one) => (one.backend === 'db' && one.scopes?.[0] === 'read' ? { ...one, scopes: ['*'] } : one))

export const commands = (maxCommands: number) => {
  const issuing = fc.tuple(index, fc.boolean(), wish).map(([who, jwt, one]) => issue(who, jwt, one))
  const creating = fc
    .tuple(fc.nat({ max: 3 }), fc.nat({ max: 4 }), fc.nat({ max: 4 }))
    .map((all) => createAgent(...all))
  const revoking = fc
    .tuple(index, fc.constantFrom<Revoker>('owner', 'owner', 'other', 'admin'), fc.boolean())
    .map((all) => revoke(...all))
  return fc.commands(
    [
      issuing,
      issuing,
      issuing,
      issuing,
      issuing,
      creating,
      creating,
      revoking,
      revoking,
      revoking,
      fc.tuple(index, fc.boolean()).map((all) => deleteAgent(...all)),
      backend.map(createBackend),
      backend.map(createBackend),
      fc.tuple(backend, fc.boolean()).map((all) => deleteBackend(...all)),
      index.map(read),
      index.map(listActive),
      fc.tuple(index, fc.boolean()).map((all) => login(...all)),
      fc.tuple(index, fc.boolean()).map((all) => login(...all)),
      index.map(present),
      index.map(signingKey),
      fc.constantFrom(1_000, 70_000, 400_000, 3_700_000, 90_000_000).map(advance),
      fc.constant(sweep()),
      fc.constant(sweep()),
      fc.constant(rotate()),
      fc.constant(restart()),
    ],
    { maxCommands, size: 'max' },
  )
}

/** Where most sequences would otherwise take long to get to. */
export const opening: readonly Command[] = [
  createBackend('tok'),
  createBackend('db'),
  createAgent(0, 2, 4),
  createAgent(1, 0, 4),
]
