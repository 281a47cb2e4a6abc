import { expect } from 'vitest'
import { covers } from '../../src/domain/scope.ts'
import { command, pick } from './command.ts'
import {
  isAlive,
  isNear,
  type Model,
  type ModelAgent,
  type ModelCredential,
  type ModelToken,
  statusOf,
} from './model.ts'
import type { Reply, World } from './world.ts'

const HOUR = 3_600_000
const KEEPS_TOKEN = 300_000
const KEEPS_KEY = 24 * HOUR

export interface IssueRequest {
  readonly backend: 'tok' | 'db'
  readonly ttl: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly key: string | undefined
  readonly groupA: boolean
}

/** The bearer token to present, its agent and scopes, and whether the server must accept it. */
function presented(model: Model, index: number, jwt: boolean, now: number) {
  if (!jwt) {
    // Mostly an active agent with scopes.
    const living = model.agents.filter((one) => isAlive(one, now) && one.scopes.length > 0)
    const agent = index < 27 ? pick(living, index) : pick(model.agents, index)
    return agent && { agent, bearer: agent.token, scopes: agent.scopes, good: isAlive(agent, now) }
  }
  const good = model.tokens.filter((one) => isTokenGood(one, now))
  const token = index < 27 ? pick(good, index) : pick(model.tokens, index)
  if (token === undefined || Math.abs(token.expiresAt - now) < 10_000) return undefined
  return { agent: token.agent, bearer: token.text, scopes: token.scopes, good: good.includes(token) }
}

export function isTokenGood(token: ModelToken, now: number): boolean {
  return !token.dead && token.expiresAt > now && isAlive(token.agent, now)
}

export const issue = (index: number, jwt: boolean, request: IssueRequest) =>
  command(`issue(${index}, ${jwt}, ${JSON.stringify(request)})`, async (model, world) => {
    const now = world.now()
    const who = presented(model, index, jwt, now)
    if (who === undefined || isNear(now, who.agent.expiresAt)) return
    const body = {
      ...(request.ttl && { ttl: request.ttl }),
      ...(request.scopes && { scopes: request.scopes }),
    }
    const headers = request.key === undefined ? {} : { 'idempotency-key': request.key }
    const reply = request.groupA
      ? await world.send(
          'POST',
          '/api/v1/credentials',
          who.bearer,
          { backend: request.backend, ...body },
          headers,
        )
      : await world.send('POST', `/v1/credentials/${request.backend}`, who.bearer, body, headers)
    if (!who.good) return void expect(reply.status).toBe(401)
    const backend = model.backends.find((one) => one.name === request.backend && !one.deleted)
    if (backend === undefined) return void expect(reply.body.error.code).toBe('backend_not_found')
    const asked = JSON.stringify([model.backends.indexOf(backend), body])
    const known = request.key === undefined ? undefined : model.keys.get(`${who.agent.id}|${request.key}`)
    if (known !== undefined && Math.abs(now - known.at - KEEPS_KEY) < 3_000) return
    if (known !== undefined && now - known.at < KEEPS_KEY)
      return known.body === asked
        ? expectReplay(model, who, known, reply, now)
        : void expect(reply.body.error.code).toBe('conflict')
    const refusal = refusalOf(who.scopes, request)
    if (refusal !== undefined) return void expect(reply.body.error?.code).toBe(refusal)
    expect(reply).toMatchObject({ status: request.groupA ? 201 : 200 })
    remember(model, world, who.agent, request, reply, asked, now)
  })

function refusalOf(held: readonly string[], request: IssueRequest): string | undefined {
  const here = held.filter((one) => covers(one.split(':')[0] ?? '', request.backend))
  const wanted = request.scopes?.map((one) => `${request.backend}:${one}`) ?? []
  if (here.length === 0 || !wanted.every((one) => held.some((own) => covers(own, one))))
    return 'scope_not_allowed'
  return request.ttl === '25h' ? 'ttl_exceeded' : undefined
}

function expectReplay(
  model: Model,
  who: { agent: ModelAgent; scopes: readonly string[] },
  known: { credential: ModelCredential; token: string; at: number },
  reply: Reply,
  now: number,
): void {
  // A narrowed token gets no replay of a credential that its scopes do not cover.
  if (reply.body.error?.code === 'scope_not_allowed')
    return void expect(who.scopes).not.toEqual(who.agent.scopes)
  expect(reply.body.id).toBe(known.credential.id)
  const { token } = reply.body
  expect([undefined, known.token]).toContain(token)
  if (token !== undefined) model.done['credential.repeated'] += 1
  if (statusOf(known.credential, now) === 'active' && now - known.at < KEEPS_TOKEN - 3_000)
    expect(token).toBe(known.token)
  if (known.credential.revoked || now - known.at > KEEPS_TOKEN + 3_000) expect(token).toBeUndefined()
}

function remember(
  model: Model,
  world: World,
  agent: ModelAgent,
  request: IssueRequest,
  { body }: Reply,
  asked: string,
  now: number,
): void {
  const backend = model.backends.find((one) => one.name === request.backend && !one.deleted)
  if (backend === undefined) return
  const secrets =
    request.backend === 'tok'
      ? [body.token, body.token.split('.')[2]]
      : [body.fields.password, body.fields.url]
  for (const one of secrets) world.secrets.add(one)
  expect(model.credentials.some((one) => one.id === body.id)).toBe(false)
  const expiresAt = Date.parse(body.expires_at)
  const longest = request.ttl === undefined ? HOUR : request.ttl === '1m' ? 60_000 : 24 * HOUR
  expect(expiresAt).toBeLessThanOrEqual(
    Math.min(now + longest + 3_000, agent.expiresAt ?? Number.POSITIVE_INFINITY),
  )
  const credential: ModelCredential = {
    id: body.id,
    agent,
    backend,
    scopes: request.scopes ?? [],
    expiresAt,
    revokedAt: undefined,
    revoked: false,
    uncertain: false,
  }
  model.credentials.push(credential)
  if (request.key !== undefined)
    model.keys.set(`${agent.id}|${request.key}`, { body: asked, credential, token: body.token, at: now })
}

export type Revoker = 'owner' | 'other' | 'admin'

export const revoke = (index: number, by: Revoker, groupA: boolean) =>
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
      return noteRevoked(credential, reply, now, world.now())
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
    noteRevoked(credential, reply, now, world.now())
  })

/** Records the reply to a revocation sent at `now` and answered at `then`. */
function noteRevoked(credential: ModelCredential, reply: Reply, now: number, then: number): void {
  const before = statusOf(credential, now)
  if (before === 'active') credential.revoked = true
  if (reply.body === undefined) return
  expect(reply.body).toMatchObject({ id: credential.id, revoked: true })
  const at = Date.parse(reply.body.revoked_at)
  if (before === 'active') {
    expect(at).toBeGreaterThanOrEqual(now)
    expect(at).toBeLessThanOrEqual(then)
  }
  if (before === 'expired' && !credential.uncertain) expect(at).toBe(credential.expiresAt)
  if (credential.revokedAt !== undefined) expect(at, 'the first end counts').toBe(credential.revokedAt)
  credential.revokedAt = at
}

export const read = (index: number) =>
  command(`read(${index})`, async (model, world) => {
    const credential = pick(model.credentials, index)
    if (credential !== undefined) await expectRead(credential, world)
  })

/** `GET` agrees with the model, for an administrator and for the owner while it is active. */
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
  if (!credential.uncertain && !isNear(now, credential.expiresAt))
    expect(reply.body.status).toBe(statusOf(credential, now))
  if (credential.revokedAt !== undefined && reply.body.revoked)
    expect(Date.parse(reply.body.revoked_at)).toBe(credential.revokedAt)
  if (isNear(now, credential.agent.expiresAt)) return
  const own = await world.send('GET', path, credential.agent.token)
  if (isAlive(credential.agent, now)) expect(own.body).toEqual(reply.body)
  else expect(own.status).toBe(401)
}

export const listActive = (index: number) =>
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
    (one) => one.agent === agent && !one.uncertain && !isNear(now, one.expiresAt),
  )
  const listed = new Set<string>(reply.body.map((one: { id: string }) => one.id))
  for (const one of own)
    expect([one.id, listed.has(one.id)]).toEqual([one.id, statusOf(one, now) === 'active'])
}
