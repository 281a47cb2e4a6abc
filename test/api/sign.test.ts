import { createHash } from 'node:crypto'
import { createMessage, readKey, readSignature, verify } from 'openpgp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

const TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
const AT = '1760000000 +0000'

let app: TestApp
let agent: NewAgent
let me: string
beforeAll(async () => {
  app = await startApp({ argv: { signingDomain: 'agents.example' } })
  agent = await app.newAgent({ name: 'signer' })
  me = `signer <${agent.signing_email}>`
})
afterAll(() => app.close())

const commit = (author: string, committer = author) =>
  `tree ${TREE}\nauthor ${author} ${AT}\ncommitter ${committer} ${AT}\n\nSubject\n`
const tag = (tagger: string) => `object ${TREE}\ntype tree\ntag v1\ntagger ${tagger} ${AT}\n\nRelease\n`
const base64 = (value: string | Buffer) => Buffer.from(value).toString('base64')
/** Enough blanks that the base64 of a commit ends with one `=`. */
const pad = (author: string) =>
  [' ', '  ', '   '].find((blanks) => (commit(author).length + blanks.length + 6) % 3 === 2) ?? ''
/** The next letter of the base64 alphabet. */
const next = (letter: string) => {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  return letters[letters.indexOf(letter) + 1] ?? ''
}
const sign = (value: string | Buffer, purpose?: string, client = agent.client) =>
  client.post('/v1/sign', { data: base64(value), ...(purpose === undefined ? {} : { purpose }) })
const entries = async (one: NewAgent, action = 'signing_key.used') =>
  (await app.admin('GET', `/v1/admin/audit?agent=${one.id}&action=${action}&limit=1000`)).body

async function isGood(armored: string, value: string, publicKey: string): Promise<boolean> {
  const verified = await verify({
    message: await createMessage({ binary: Buffer.from(value) }),
    signature: await readSignature({ armoredSignature: armored }),
    verificationKeys: await readKey({ armoredKey: publicKey }),
  })
  return (await verified.signatures[0]?.verified.catch(() => false)) === true
}

describe('POST /v1/sign', () => {
  test('signs a commit with the key of the agent, and names its owner', async () => {
    const { status, body, text } = await sign(commit(me))
    expect(status).toBe(200)
    expect(body).toEqual({
      signature: expect.stringMatching(/^-----BEGIN PGP SIGNATURE-----\r?\n/),
      key_id: agent.signing_key_id,
      fingerprint: expect.stringMatching(/^[0-9A-F]{40}$/),
      created_at: expect.stringMatching(/\.000Z$/),
      email: agent.signing_email,
      name: 'signer',
    })
    expect(body.fingerprint.endsWith(body.key_id)).toBe(true)
    expect(text).not.toContain('PRIVATE')
    // The clock of a verifier may be slow, and the signature must not be older than its key.
    expect(Date.parse(body.created_at)).toBeLessThan(Date.now() - 50_000)
    const { public_key } = (await agent.client.get('/v1/signing-key?private_key=false')).body
    expect(await isGood(body.signature, commit(me), public_key)).toBe(true)
    expect(await isGood(body.signature, `${commit(me)} `, public_key)).toBe(false)
  })

  test('signs a tag on request, and never takes a tag for a commit', async () => {
    expect((await sign(tag(me), 'git-tag')).status).toBe(200)
    expect((await sign(commit(me), 'git-commit')).status).toBe(200)
    for (const [value, purpose] of [
      [tag(me), undefined],
      [tag(me), 'git-commit'],
      [commit(me), 'git-tag'],
      [commit(me), 'document'],
    ] as const) {
      const { status, body } = await sign(value, purpose)
      expect([status, body.error.code]).toEqual([400, 'invalid_request'])
    }
  })

  test('records key, purpose, hash and tree before it answers', async () => {
    const one = await app.newAgent({ name: 'recorded' })
    const value = commit(`recorded <${one.signing_email}>`)
    expect((await sign(value, undefined, one.client)).status).toBe(200)
    expect(await entries(one)).toEqual([
      expect.objectContaining({
        outcome: 'ok',
        agent_id: one.id,
        actor: one.id,
        details: {
          key_id: one.signing_key_id,
          purpose: 'git-commit',
          sha256: createHash('sha256').update(value).digest('hex'),
          tree: TREE,
        },
      }),
    ])
    expect(await entries(one, 'signing_key.read')).toEqual([])
  })

  test.each([
    ['an author', (own: string) => commit('Eve <eve@example.com>', own)],
    ['a committer', (own: string) => commit(own, 'Eve <eve@example.com>')],
    ['an author with the agent’s name', (own: string) => commit('signer <eve@example.com>', own)],
    ['an author with the agent’s e-mail', (own: string) => commit(own.replace(/^\S+/, 'Eve'), own)],
  ])('refuses a foreign %s, and records it', async (_name, make) => {
    const one = await app.newAgent()
    const own = `${one.name} <${one.signing_email}>`
    const { status, body } = await sign(make(own), undefined, one.client)
    expect([status, body.error.code]).toEqual([403, 'not_allowed'])
    expect(body.error.message).toMatch(new RegExp(`^The (author|committer) is not ${own},`))
    expect(body.error.message).not.toMatch(/Eve|eve/)
    await expect
      .poll(async () => (await entries(one))[0])
      .toMatchObject({ outcome: 'denied', agent_id: one.id, details: { code: 'not_allowed' } })
  })

  test('refuses the identity of another agent', async () => {
    const other = await app.newAgent()
    expect((await sign(commit(me), undefined, other.client)).body.error.code).toBe('not_allowed')
    expect((await sign(tag(me), 'git-tag', other.client)).body.error.code).toBe('not_allowed')
  })

  test.each<[string, string | Buffer]>([
    ['a document', 'I owe you 1000.\n\n'],
    ['a NUL', `${'tree '}${TREE}\0`],
    ['no author', `tree ${TREE}\ncommitter ci <a@b> ${AT}\n\n`],
    ['an injected second author', commit(`signer <x@y> ${AT}\nauthor signer <z@y>`)],
    ['CRLF', commit('signer <x@y>').replaceAll('\n', '\r\n')],
    ['a signature that is there already', commit('a <b@c>').replace('\n\n', '\ngpgsig x\n\n')],
    ['bad UTF-8', Buffer.concat([Buffer.from(commit('a <b@c>')), Buffer.from([0xff])])],
  ])('refuses %s, which is no commit', async (_name, value) => {
    const { status, body } = await sign(value)
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['no data', {}],
    ['empty data', { data: '' }],
    ['no text', { data: 1 }],
    ['a caller who waives the rule', { data: base64('tree'), allow_other_identity: true }],
    ['a key of the caller’s choice', { data: base64('tree'), key_id: 'ABCD' }],
  ])('refuses %s', async (_name, body) => {
    const reply = await agent.client.post('/v1/sign', body)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test.each<[string, (data: string) => string]>([
    ['without its padding', (data) => data.replace(/=+$/, '')],
    ['with too much padding', (data) => `${data}=`],
    ['in the URL-safe alphabet', (data) => data.replaceAll('/', '_').replaceAll('+', '-')],
    ['with a line break', (data) => `${data.slice(0, 60)}\n${data.slice(60)}`],
    ['with a leading space', (data) => ` ${data}`],
    ['with a trailing character', (data) => `${data}!`],
    ['with unused bits set', (data) => data.replace(/.=$/, (end) => `${next(end[0] ?? '')}=`)],
  ])('refuses base64 %s', async (_name, spell) => {
    const padded = base64(`${commit(me)}${pad(me)}???>>>`)
    expect(padded).toMatch(/[/+].*[^=]=$/)
    expect((await agent.client.post('/v1/sign', { data: padded })).status).toBe(200)
    const { status, body } = await agent.client.post('/v1/sign', { data: spell(padded) })
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
    expect(body.error.message).toContain('must be padded base64')
  })

  test('signs up to 48000 bytes, and names the limit', async () => {
    const full = commit(me) + 'x'.repeat(48_000 - commit(me).length)
    expect((await sign(full)).status).toBe(200)
    const { status, body } = await sign(`${full}x`)
    expect([status, body.error.code]).toEqual([413, 'payload_too_large'])
    expect(body.error.message).toContain('48000 bytes')
    expect((await sign(full + 'x'.repeat(9_000))).status).toBe(413)
  })

  test('refuses the administrator and an agent that has ended, who have no key', async () => {
    expect((await app.admin('POST', '/v1/sign', { data: base64(commit(me)) })).status).toBe(401)
    const one = await app.newAgent()
    await app.admin('DELETE', `/v1/admin/agents/${one.name}`)
    expect((await sign(commit(`${one.name} <${one.signing_email}>`), undefined, one.client)).status).toBe(401)
  })

  test('signs many objects at once', async () => {
    const { public_key } = (await agent.client.get('/v1/signing-key?private_key=false')).body
    const values = Array.from({ length: 20 }, (_, index) => commit(me) + index)
    const replies = await Promise.all(values.map((value) => sign(value)))
    for (const [index, { body }] of replies.entries()) {
      expect(await isGood(body.signature, values[index] ?? '', public_key)).toBe(true)
      expect(await isGood(body.signature, values[index + 1] ?? '', public_key)).toBe(false)
    }
  })
})

describe('signing_identity', () => {
  const EVE = 'Eve <eve@example.com>'
  test.each([
    ['committer', [200, 403, 403]],
    ['any', [200, 200, 200]],
  ] as const)('follows the setting %s', async (rule, statuses) => {
    const other = await startApp({ argv: { signingIdentity: rule } })
    try {
      const one = await other.newAgent()
      const own = `${one.name} <${one.signing_email}>`
      const values = [commit(EVE, own), commit(own, EVE), commit(EVE, EVE)]
      const replies = await Promise.all(values.map((value) => sign(value, undefined, one.client)))
      expect(replies.map(({ status }) => status)).toEqual(statuses)
      expect((await sign('any text\n\n', undefined, one.client)).status).toBe(400)
    } finally {
      await other.close()
    }
  })
})

describe('the private key', () => {
  test('is left out on request, without an entry', async () => {
    const one = await app.newAgent()
    const { status, body, text } = await one.client.get('/v1/signing-key?private_key=false&format=git')
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['email', 'git_config', 'key_id', 'name', 'public_key'])
    expect(text).not.toContain('PRIVATE')
    expect(await entries(one, 'signing_key.read')).toEqual([])
    expect((await one.client.get('/v1/signing-key?private_key=true')).body.private_key).toContain('PRIVATE')
    expect(await entries(one, 'signing_key.read')).toHaveLength(1)
  })

  test('stays on a server that exports no keys, which still signs', async () => {
    const closed = await startApp({ yaml: 'signing_key_export: false\n' })
    try {
      const one = await closed.newAgent()
      for (const path of ['/v1/signing-key', '/v1/signing-key?private_key=true&format=git']) {
        const { status, body, text } = await one.client.get(path)
        expect([status, body.error.code]).toEqual([403, 'not_allowed'])
        expect(text).not.toContain('PRIVATE')
      }
      expect((await one.client.get('/v1/signing-key?private_key=false')).body.key_id).toBe(one.signing_key_id)
      const own = `${one.name} <${one.signing_email}>`
      expect((await sign(commit(own), undefined, one.client)).status).toBe(200)
      const { body } = await closed.admin('GET', `/v1/admin/audit?agent=${one.id}&action=signing_key.read`)
      expect(body).toMatchObject([{ outcome: 'denied', details: { code: 'not_allowed' } }])
    } finally {
      await closed.close()
    }
  })
})
