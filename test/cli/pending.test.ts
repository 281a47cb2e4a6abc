import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newEnrollee } from '../support/enrollee.ts'
import { runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
let env: Record<string, string>
let count = 0
beforeAll(async () => {
  world = await startWorld({ yaml: 'limits: { enrollments_per_minute: 1000 }' })
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

async function enroll(
  wish: Record<string, unknown> = {},
): Promise<{ id: string; name: string; print: string }> {
  count += 1
  const name = `worker-${count}`
  const public_key = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  const { body } = await world.app
    .as(undefined)
    .post('/v1/enroll', { name, scopes: ['demo:read'], public_key, ...wish })
  const { body: all } = await world.app.admin('GET', '/v1/admin/pending?limit=1000')
  const row = all.find((one: { id: string }) => one.id === body.id)
  return { id: body.id, name, print: row.public_key_fingerprint }
}
const agent = (name: string) => world.app.admin('GET', `/v1/admin/agents/${name}`)

describe('approve', () => {
  test('shows name, scopes and fingerprint, asks, and makes the agent', async () => {
    const { id, name, print } = await enroll()
    const no = await runTyping(['approve', id], env, [[/[\s\S]*\[y\/N\] $/, 'n']])
    for (const part of [name, 'demo:read', print]) expect(no.stderr).toContain(part)
    expect([no.code, (await agent(name)).status]).toEqual([1, 404])
    const yes = await runTyping(['approve', id], env, [[`Approve ${name}? [y/N] `, 'y']])
    expect([yes.code, yes.stdout]).toEqual([0, `Approved ${name}: demo:read.\n`])
    expect((await agent(name)).body.scopes).toEqual(['demo:read'])
  })

  test('approves with other scopes, a lifetime and a note', async () => {
    const { id, name, print } = await enroll()
    const argv = [
      'approve',
      id,
      '--scope',
      'demo:other',
      '--expires-in',
      '1h',
      '--note',
      'just today',
      '--yes',
    ]
    const ended = await mayfly(...argv, '--fingerprint', ` ${print}\n`, '--json')
    expect(JSON.parse(ended.stdout)).toMatchObject({
      status: 'approved',
      scopes: ['demo:other'],
      expires_in: '1h',
      decision_note: 'just today',
    })
    expect((await agent(name)).body.expires_at).not.toBeNull()
  })

  test('another key than the expected one', async () => {
    const { id, name, print } = await enroll()
    const wrong = [print.slice(0, -1), print.toUpperCase(), 'x']
    for (const fingerprint of wrong) {
      const ended = await mayfly('approve', id, '--yes', '--fingerprint', fingerprint)
      expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining('has another fingerprint')])
    }
    expect((await agent(name)).status).toBe(404)
  })

  test('more scopes for an agent', async () => {
    const asking = await world.app.newAgent({ scopes: [] })
    const { body } = await asking.client.post('/v1/request', { scopes: ['demo:x'], reason: 'the report' })
    expect((await mayfly('pending', body.id)).stdout).toMatch(/^reason: +the report$/m)
    expect((await mayfly('approve', body.id, '--yes', '--fingerprint', 'x')).code).toBe(2)
    expect((await mayfly('approve', body.id, '--yes')).stdout).toBe(`Approved ${asking.name}: demo:x.\n`)
    expect((await asking.client.get('/v1/status')).body.scopes).toEqual(['demo:x'])
  })

  test('takes the name of the agent', async () => {
    const { name, print } = await enroll()
    const yes = await runTyping(['approve', name.toUpperCase()], env, [[`Approve ${name}? [y/N] `, 'y']])
    expect([yes.code, yes.stdout]).toEqual([0, `Approved ${name}: demo:read.\n`])
    expect((await mayfly('approve', name, '--yes')).stderr).toMatch(/^mayfly: No such enrollment/)
    const { name: other, print: key } = await enroll()
    expect(print).not.toBe(key)
    expect((await mayfly('approve', other, '--yes', '--fingerprint', key)).code).toBe(0)
  })

  test('a name alone does not approve an enrollment unseen, since anybody may choose it', async () => {
    const { id, name } = await enroll()
    const ended = await mayfly('approve', name, '--yes')
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining('--fingerprint')])
    expect((await agent(name)).status).toBe(404)
    await mayfly('reject', id)
    // An agent that asks for more scopes has logged in.
    const asking = await world.app.newAgent({ scopes: [] })
    await asking.client.post('/v1/request', { scopes: ['demo:x'] })
    expect((await mayfly('approve', asking.name, '--yes')).stdout).toBe(`Approved ${asking.name}: demo:x.\n`)
  })

  test('an id means that request, whatever others are called', async () => {
    const unknown = `enr_${'0'.repeat(26)}`
    const { id } = await enroll({ name: unknown })
    expect((await mayfly('approve', unknown, '--yes')).stderr).toMatch(/^mayfly: No such enrollment/)
    expect((await mayfly('reject', unknown)).code).toBe(1)
    await mayfly('reject', id)
  })

  test('offers a choice at a terminal, of all or of those with one name', async () => {
    const of = async (): Promise<string[]> =>
      (await world.app.admin('GET', '/v1/admin/pending')).body.map((one: { id: string }) => one.id)
    for (const id of await of()) await mayfly('reject', id)
    const [first, second, third] = [
      await enroll(),
      await enroll({ name: 'twin' }),
      await enroll({ name: 'Twin' }),
    ]
    expect(await of()).toEqual([first.id, second.id, third.id])
    const chosen = await runTyping(['approve'], env, [
      [/^ +ID +TYPE[\s\S]*Which one do you want to approve\? \[1-3\] $/, '1'],
      [`Approve ${first.name}? [y/N] `, 'y'],
    ])
    expect([chosen.code, chosen.stdout]).toEqual([0, `Approved ${first.name}: demo:read.\n`])
    const ambiguous = await mayfly('approve', 'twin', '--yes')
    expect([ambiguous.code, ambiguous.stderr]).toEqual([
      2,
      expect.stringContaining('2 requests of twin are pending'),
    ])
    for (const wrong of ['0', '3', 'x', ''])
      expect(await runTyping(['reject', 'twin'], env, [['[1-2] ', wrong]])).toMatchObject({ code: 2 })
    const rejected = await runTyping(['reject', 'twin'], env, [['[1-2] ', '2']])
    expect([rejected.code, await of()]).toEqual([0, [second.id]])
    // The only one needs no choice.
    expect((await runTyping(['reject'], env, [])).stdout).toBe('Rejected twin.\n')
    expect((await runTyping(['reject'], env, [])).stderr).toMatch(/Nothing is pending/)
  })

  test('without a terminal it needs --yes', async () => {
    const { id, name } = await enroll()
    const ended = await mayfly('approve', id)
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringMatching(/then use --yes\.\n$/)])
    expect((await agent(name)).status).toBe(404)
  })

  test('a request that is decided, expired or unknown', async () => {
    const { id } = await enroll()
    await mayfly('reject', id)
    expect((await mayfly('approve', id, '--yes')).stderr).toMatch(
      /^mayfly: This request is already rejected by local\./,
    )
    for (const unknown of [`enr_${'0'.repeat(26)}`, 'nonsense', '../agents'])
      expect(await mayfly('approve', unknown, '--yes')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('No such enrollment'),
      })
    expect((await mayfly('approve')).code).toBe(2)
  })

  test('escapes text from others that could steer the terminal', async () => {
    const { id } = await enroll({ metadata: { host: '\u001b]0;owned\u0007\u009b2J\u202e' } })
    const asking = await world.app.newAgent({ scopes: [] })
    const { body } = await asking.client.post('/v1/request', {
      scopes: ['demo:x'],
      reason: 'a\u202eb\u009b2J',
    })
    for (const one of [id, body.id]) {
      const ended = await runTyping(['approve', one], env, [['[y/N] ', 'n']])
      for (const steering of ['\u001b', '\u0007', '\u009b', '\u202e'])
        expect(ended.stderr).not.toContain(steering)
    }
  })
})

test('reject passes the reason on to the requester', async () => {
  const asking = await world.app.newAgent({ scopes: [] })
  const { body } = await asking.client.post('/v1/request', { scopes: ['demo:x'] })
  const ended = await mayfly('reject', body.id, '--reason', 'ask for less', '--json')
  expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'rejected', decision_note: 'ask for less' })
  expect((await mayfly('reject', body.id)).code).toBe(1)
})

test('pending lists what waits, and what was decided by status', async () => {
  const { id, name } = await enroll()
  expect((await mayfly('pending')).stdout).toMatch(
    new RegExp(`^${id}  enrollment +${name} +demo:read +\\S+ +\\d+ s ago +pending$`, 'm'),
  )
  await mayfly('reject', id)
  expect((await mayfly('pending')).stdout).not.toContain(id)
  const rejected = JSON.parse((await mayfly('pending', '--status', 'rejected', '--json')).stdout)
  expect(rejected.map((row: { id: string }) => row.id)).toContain(id)
  expect((await mayfly('pending', '--status', 'maybe')).code).toBe(2)
  expect((await mayfly('pending', 'enr_x')).code).toBe(1)
})

test('names the missing scope', async () => {
  const plain = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: world.agent.token }
  for (const [argv, scope] of [
    [['pending'], 'admin:enrollments:read'],
    [['approve', 'enr_x', '--yes'], 'admin:enrollments:read'],
    [['reject', `enr_${'0'.repeat(26)}`], 'admin:enrollments:write'],
  ] as const) {
    const ended = await runCli(argv, { env: plain })
    expect([ended.code, ended.stderr]).toEqual([5, expect.stringContaining(scope)])
  }
})

describe('reject --from', () => {
  const remote = async (address: string, name = 'flood') => {
    const { body } = await world.app
      .as(undefined)
      .post('/v1/enroll', { name, scopes: ['demo:read'], public_key: newEnrollee().publicKey })
    await world.app.core.store.commit([
      {
        op: 'run',
        sql: 'UPDATE enrollments SET ip_address = ? WHERE id = ?',
        params: [address, body.id],
        rows: 1,
      },
    ])
    return String(body.id)
  }
  const pendingIds = async () =>
    (await world.app.admin('GET', '/v1/admin/pending?limit=1000')).body.map(({ id }: { id: string }) => id)

  test('rejects every enrollment from a network and no other, after a question', async () => {
    const inside = [await remote('2001:db8:1:1::1'), await remote('2001:db8:1:ffff::2')]
    const outside = [await remote('2001:db8:2::1'), await remote('192.0.2.1')]
    const question = 'Reject 2 enrollments from 2001:db8:1::/48? [y/N] '
    const no = await runTyping(['reject', '--from', '2001:db8:1::/48'], env, [[question, 'n']])
    expect([no.code, no.stderr]).toEqual([1, expect.stringContaining('Nothing was rejected.')])
    expect(await pendingIds()).toEqual(expect.arrayContaining(inside))
    const unsure = await mayfly('reject', '--from', '2001:db8:1::/48')
    expect([unsure.code, unsure.stderr]).toEqual([2, expect.stringContaining('--yes')])
    const yes = await mayfly('reject', '--from', '2001:db8:1::/48', '--yes', '--reason', 'a flood')
    expect([yes.code, yes.stdout]).toEqual([0, 'Rejected 2 enrollments from 2001:db8:1::/48.\n'])
    expect(await pendingIds()).toEqual(expect.arrayContaining(outside))
    expect((await pendingIds()).filter((id: string) => inside.includes(id))).toEqual([])
    const json = await mayfly('reject', '--from', '192.0.2.1', '--yes', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject([{ id: outside[1], status: 'rejected' }])
    expect(JSON.parse((await mayfly('pending', '--status', 'rejected', '--json')).stdout)).toContainEqual(
      expect.objectContaining({ id: inside[0], decision_note: 'a flood' }),
    )
  })

  test.each(['nonsense', '192.0.2.0/33', '192.0.2.0/x', '192.0.2.0/8/8', ''])('refuses %j', async (from) => {
    const ended = await mayfly('reject', '--from', from, '--yes')
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining('--from')])
  })

  test('says that nothing came from there, and takes no request beside it', async () => {
    expect((await mayfly('reject', '--from', '198.51.100.0/24', '--yes')).stderr).toContain('came from there')
    expect((await mayfly('reject', 'flood', '--from', '192.0.2.1')).code).toBe(2)
  })
})

describe('requests as large as anybody may send', () => {
  test('are listed in pages that the command reads, with few warnings each, and decided by name', async () => {
    const scopes = Array.from({ length: 64 }, (_, n) => `nowhere-${n}:${'x'.repeat(240)}`)
    const metadata = { text: 'x'.repeat(8_000) }
    const names = Array.from({ length: 60 }, (_, n) => `large-${n}`)
    for (const name of names)
      await world.app
        .as(undefined)
        .post('/v1/enroll', { name, scopes, metadata, public_key: newEnrollee().publicKey })
    const page = await world.app.admin('GET', '/v1/admin/pending?limit=1000')
    expect(page.text.length).toBeLessThan(1 << 20)
    expect(page.headers.get('link')).toContain('rel="next"')
    const large = page.body.find(({ name }: { name: string }) => name === 'large-0')
    expect(large.warnings).toHaveLength(4)
    expect(large.warnings[3]).toBe('There are 61 more warnings like these.')
    const listed = JSON.parse((await mayfly('pending', '--all', '--json')).stdout)
    expect(listed.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(names))
    expect((await mayfly('reject', 'large-59')).stdout).toBe('Rejected large-59.\n')
    expect((await mayfly('reject', '--from', '127.0.0.0/8', '--yes')).code).toBe(0)
  })
})
