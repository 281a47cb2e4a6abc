import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually, startApp, type TestApp } from '../support/app.ts'
import {
  bear,
  entry,
  exchange,
  ISSUER,
  JWT_TYPE,
  post,
  signer,
  TOKEN_EXCHANGE,
  useKeyless,
  workload,
} from '../support/keyless.ts'

const PUBLIC_KEY = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

describe.each(['sqlite', 'postgres'] as const)('keyless login on %s', (dialect) => {
  const world = useKeyless(dialect)
  const { audit, agentNamed, runId } = world
  let app: TestApp
  beforeAll(() => {
    app = world.app()
  })

  test('token exchange gives the agent of the template a token, and says so in the audit', async () => {
    const id = runId()
    const reply = await exchange(app, workload(app, { run_id: id }))
    expect(reply.status).toBe(200)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.body).toEqual({
      access_token: expect.stringMatching(/^eyJ/),
      token_type: 'Bearer',
      // The presented token ends in 300 s; ten minutes more.
      expires_in: expect.closeTo(900, -1),
      scope: 'orders:read',
      issued_token_type: ACCESS_TOKEN,
    })
    const agent = await agentNamed(`ci-${id}`)
    expect(agent).toMatchObject({
      scopes: ['orders:read'],
      owner: 'identity:runs',
      signing_key_id: null,
      identity: { kind: 'identity', name: 'runs', issuer: ISSUER, values: [id] },
    })
    const status = await app.as(reply.body.access_token).get('/v1/status')
    expect(status.body).toMatchObject({ id: agent.id, name: `ci-${id}`, scopes: ['orders:read'] })
    const entries = (await audit(`agent=${agent.id}`)).reverse()
    expect(entries.map(({ action }) => action)).toEqual(['agent.created', 'token.issued'])
    expect(entries[0]?.details).toMatchObject({ identity: 'identity:runs', values: [ISSUER, id] })
    expect(entries[1]).toMatchObject({
      actor: agent.id,
      auth_method: 'identity',
      details: {
        jti: decodeJwt(reply.body.access_token).jti,
        audience: 'https://mayfly.test',
        identity: 'runs',
        issuer: ISSUER,
        subject: 'job',
      },
    })
  })

  test('the JWT bearer grant does the same, without issued_token_type', async () => {
    const id = runId()
    const first = await exchange(app, workload(app, { run_id: id }))
    const second = await bear(app, workload(app, { run_id: id }), { scope: 'openid orders:read' })
    expect(second.body).toMatchObject({ scope: 'openid orders:read', id_token: expect.any(String) })
    expect(second.body).not.toHaveProperty('issued_token_type')
    expect(decodeJwt(second.body.access_token).sub).toBe(decodeJwt(first.body.access_token).sub)
  })

  test('credentials of such an agent end with max_ttl at the latest', async () => {
    const { body } = await exchange(app, workload(app, { run_id: runId() }))
    const agent = app.as(body.access_token)
    expect((await agent.post('/v1/credentials/orders', { ttl: '3m', scopes: ['orders:read'] })).status).toBe(
      400,
    )
    const issued = await agent.post('/v1/credentials/orders', { ttl: '2m', scopes: ['orders:read'] })
    expect(issued.status).toBe(200)
  })

  test.each([
    [
      'exchange without a token',
      { grant_type: TOKEN_EXCHANGE, subject_token_type: JWT_TYPE },
      'invalid_request',
    ],
    ['exchange without a type', { grant_type: TOKEN_EXCHANGE, subject_token: 'a.b.c' }, 'invalid_request'],
    [
      'another type of subject token',
      { grant_type: TOKEN_EXCHANGE, subject_token: 'a.b.c', subject_token_type: ACCESS_TOKEN },
      'invalid_request',
    ],
    [
      'another type of result',
      {
        grant_type: TOKEN_EXCHANGE,
        subject_token: 'a.b.c',
        subject_token_type: JWT_TYPE,
        requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
      },
      'invalid_request',
    ],
    [
      'an actor token',
      {
        grant_type: TOKEN_EXCHANGE,
        subject_token: 'a.b.c',
        subject_token_type: JWT_TYPE,
        actor_token: 'a.b.c',
      },
      'invalid_request',
    ],
    [
      'bearer without an assertion',
      { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer' },
      'invalid_request',
    ],
    [
      'a token of more than 16 KiB',
      { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: `a.${'b'.repeat(16_384)}.c` },
      'invalid_request',
    ],
    [
      'a client secret beside it',
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: 'a.b.c',
        client_id: 'agent_06dzn8q4v2m6x9c1t7p5k3w0hf',
        client_secret: `cks_${'0'.repeat(64)}`,
      },
      'unauthorized_client',
    ],
    [
      'no token at all',
      { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'x' },
      'invalid_grant',
    ],
  ])('refuses %s', async (_what, form: Record<string, string>, error) => {
    const reply = await post(app, form)
    expect([reply.status, reply.body.error]).toEqual([400, error])
  })

  test('one refusal is like another to the caller, and the audit has the reason', async () => {
    const used = workload(app, { run_id: runId() })
    await exchange(app, used)
    const refusals = [
      ['repeated', used],
      ['audience', workload(app, { run_id: runId(), aud: 'other' })],
      ['subject', workload(app, { run_id: runId(), sub: 'another' })],
      ['unknown_issuer', workload(app, { iss: 'https://elsewhere.test' })],
      ['value', workload(app, { run_id: 'a/b' })],
      ['signature', `${workload(app, { run_id: runId() }).slice(0, -8)}AAAAAAAA`],
      ['observed', workload(app, { aud: 'trial' })],
    ] as const
    const counted = async () => {
      const { text } = await app.local.get('/metrics')
      return Number(/^mayfly_authentication_failures_total\{method="identity"\} (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    const before = await counted()
    const replies = []
    for (const [, token] of refusals) replies.push(await exchange(app, token))
    expect(await counted()).toBe(before + refusals.length)
    const [first] = replies
    expect(first?.status).toBe(400)
    expect(first?.body).toEqual({
      error: 'invalid_grant',
      error_description: expect.stringContaining('An administrator finds the reason in the audit'),
      error_uri: 'https://mayfly.test/console/activity?action=token.refused',
    })
    for (const reply of replies) expect(reply.body).toEqual(first?.body)
    // Denials are written beside the replies.
    const entries = await eventually(async () => {
      const written = await audit('action=token.refused')
      const reasons = written.map(({ details }) => details?.['reason'])
      for (const [reason] of refusals) expect(reasons).toContain(reason)
      return written
    })
    expect(entries.find(({ details }) => details?.['reason'] === 'repeated')?.details).toEqual({
      code: 'invalid_grant',
      reason: 'repeated',
      entries: ['runs'],
    })
    expect(entries.find(({ details }) => details?.['reason'] === 'observed')?.details).toEqual({
      code: 'invalid_grant',
      reason: 'observed',
      entries: ['trial'],
      would: { agent: 'trial', scopes: ['orders'] },
    })
    // Nothing that the token says before it is trusted.
    expect(JSON.stringify(entries)).not.toContain('elsewhere')
  })

  test('a scope or a target that is refused leaves the token unused', async () => {
    const token = workload(app, { run_id: runId() })
    const scope = await exchange(app, token, { scope: 'orders:write' })
    expect([scope.status, scope.body.error]).toEqual([400, 'invalid_scope'])
    const target = await exchange(app, token, { resource: 'https://api.elsewhere.test' })
    expect([target.status, target.body.error]).toEqual([400, 'invalid_target'])
    const run = await exchange(app, token, { run: 'run_06dzw5k9q2v6x1m8t3c7n4p0hb' })
    expect([run.status, run.body.error]).toEqual([400, 'invalid_grant'])
    expect((await exchange(app, token)).status).toBe(200)
  })

  test('a name that somebody else has is refused, whoever asks; case counts', async () => {
    const id = `A${runId()}`
    expect((await exchange(app, workload(app, { run_id: id }))).status).toBe(200)
    const other = await exchange(app, workload(app, { run_id: id.toLowerCase() }))
    expect(other.body.error).toBe('invalid_grant')
    await eventually(async () => {
      const [refused] = await audit('action=token.refused')
      expect(refused?.details).toMatchObject({ reason: 'name_taken', entries: ['runs'] })
    })
  })

  test('neither an administrator nor an enrollment takes a name that an entry gives', async () => {
    const created = await app.local.post('/v1/admin/agents', { name: 'CI-77' })
    expect([created.status, created.body.error.message]).toEqual([409, expect.stringContaining('"runs"')])
    const enrolled = await app.as(undefined).post('/v1/enroll', { name: 'ci-78', public_key: PUBLIC_KEY })
    expect(enrolled.body).toMatchObject({ status: 'pending' })
    const pending = (await app.local.get('/v1/admin/pending')).body.find(
      ({ id }: { id: string }) => id === enrolled.body.id,
    )
    expect(pending.note).toContain('"runs"')
    expect((await app.local.post(`/v1/admin/pending/${enrolled.body.id}/approve`, {})).status).toBe(409)
    await app.local.post(`/v1/admin/pending/${enrolled.body.id}/reject`, {})
  })

  test('with suffix, each login is an agent of its own', async () => {
    const names = new Set<string>()
    for (let count = 0; count < 3; count += 1) {
      const { body } = await exchange(app, workload(app, { aud: 'each' }))
      names.add(String(decodeJwt(body.access_token)['agent_name']))
    }
    expect([...names]).toEqual([1, 2, 3].map(() => expect.stringMatching(/^each-[a-z0-9]{6}$/)))
    expect(names.size).toBe(3)
  })

  test('jobs that log in at once as an agent that there was not are one agent', async () => {
    const id = runId()
    const replies = await Promise.all(
      Array.from({ length: 12 }, () => exchange(app, workload(app, { run_id: id }))),
    )
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
    expect(new Set(replies.map(({ body }) => decodeJwt(body.access_token).sub)).size).toBe(1)
    const created = await audit(`agent=ci-${id}&action=agent.created`)
    expect(created).toHaveLength(1)
  })

  test('a token that is presented twice at once is used once', async () => {
    const token = workload(app, { run_id: runId() })
    const replies = await Promise.all(Array.from({ length: 6 }, () => exchange(app, token)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400, 400])
  })

  test('the token lasts as long as the entry says, and never longer than the agent', async () => {
    const long = await exchange(app, workload(app, { aud: 'fixed' }))
    expect(long.body.expires_in).toBe(1_800)
    const short = await exchange(app, workload(app, { aud: 'short' }))
    expect(short.body.expires_in).toBeLessThanOrEqual(5)
    const agent = await agentNamed('short')
    app.advance(5_100)
    expect((await app.as(short.body.access_token).get('/v1/status')).status).toBe(401)
    // The job that ends agents has not run: the next login does its work.
    const again = await exchange(app, workload(app, { aud: 'short' }))
    expect(again.status).toBe(200)
    expect((await agentNamed('short')).id).not.toBe(agent.id)
    expect((await audit(`agent=${agent.id}&action=agent.expired`)).length).toBe(1)
  })

  test('logins in a row change the agent only when a tenth of its life has passed', async () => {
    const id = runId()
    const log = () => exchange(app, workload(app, { run_id: id }))
    await log()
    const { expires_at: first } = await agentNamed(`ci-${id}`)
    await log()
    expect((await agentNamed(`ci-${id}`)).expires_at).toBe(first)
    app.advance(400_000)
    await log()
    expect(Date.parse((await agentNamed(`ci-${id}`)).expires_at)).toBeGreaterThan(Date.parse(first) + 300_000)
    expect((await audit(`agent=ci-${id}&action=agent.changed`))[0]?.details).toHaveProperty('expires_at')
  })
})

test('while the keys of an issuer cannot be had, the answer is to come back', async () => {
  const app = await startApp()
  const keys = { jwks: undefined, jwksUri: 'http://127.0.0.1:1/jwks', ca: undefined, local: true }
  app.core.identities.setTrusted({ identities: [entry('away', { keys })], platforms: [] })
  const reply = await exchange(app, workload(app))
  expect([reply.status, reply.body.error]).toEqual([503, 'temporarily_unavailable'])
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
  await eventually(async () => {
    const { body } = await app.local.get('/v1/admin/audit?action=token.refused')
    expect(body[0].details).toMatchObject({ code: 'temporarily_unavailable', reason: 'keys_unavailable' })
  })
  await app.close()
})

test('a stranger whose tokens are refused is slowed down, and a workload from the same network is not', async () => {
  const app = await startApp({ yaml: 'limits: {token_failures_per_minute: 2}' })
  app.core.identities.setTrusted({ identities: [entry('fixed')], platforms: [] })
  const statuses = []
  for (let count = 0; count < 22; count += 1)
    statuses.push((await exchange(app, signer.sign({ iss: 'https://elsewhere.test' }))).status)
  expect(statuses.slice(0, 20)).toEqual(statuses.slice(0, 20).map(() => 400))
  expect(statuses.slice(20)).toEqual([429, 429])
  expect((await exchange(app, workload(app))).status).toBe(200)
  await app.close()
})
