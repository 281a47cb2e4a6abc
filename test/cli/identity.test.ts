import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newHome, runCli } from './support.ts'

const GOOD = `# Trusted.
identities:
  - name: ci # of the shop
    issuer: https://token.actions.githubusercontent.com
    audience: https://mayfly.example.com
    subject_pattern: .+
    claims:
      repository_id: '74'
      event_name: push
    agent: ci-{run_id}
    scopes: [demo:a]

# Hosted.
platforms:
  - name: hosted
    issuer: https://agents.example
    audience: https://mayfly.example.com
`
const ADD = ['identity', 'add', 'github', '--audience', 'https://mayfly.example.com', '--scope', 'demo:a']
const NUMBERS = ['--repository-id', '75', '--owner-id', '65']

let home: string
let env: Record<string, string>
beforeAll(async () => {
  ;({ home, env } = await newHome())
})
beforeEach(() => writeFile(join(home, 'm.yaml'), GOOD))

const mayfly = (...argv: string[]) => runCli(argv, { env })
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const token = async (claims: object) => {
  const now = Math.floor(Date.now() / 1000)
  const common = { aud: 'https://mayfly.example.com', iat: now, exp: now + 300 }
  await writeFile(join(home, 'token'), `${part({ alg: 'RS256' })}.${part({ ...common, ...claims })}.c2ln`)
}
const CLAIMS = {
  iss: 'https://token.actions.githubusercontent.com',
  sub: 'repo:acme/app:ref:refs/heads/main',
  repository_id: '74',
  event_name: 'push',
  run_id: '5',
}

describe('identity check', () => {
  test('shows the entries of a sound file', async () => {
    const ended = await mayfly('identity', 'check', 'm.yaml')
    expect(ended).toMatchObject({ code: 0, stderr: 'm.yaml: no faults.\n' })
    expect(ended.stdout).toMatch(/^ci +https:\/\/token\S+ +\.\+ +ci-\{run_id\} +demo:a$/m)
    expect(ended.stdout).toMatch(/^hosted +https:\/\/agents\.example /m)
    const byVariable = await runCli(['identity', 'check', '--json'], {
      env: { ...env, MAYFLY_CONFIG: 'm.yaml' },
    })
    expect(JSON.parse(byVariable.stdout)).toMatchObject({
      identities: [{ name: 'ci', mode: 'enforce' }],
      faults: [],
    })
  })

  test('reports every fault with its line, and warns of nothing then', async () => {
    const text = GOOD.replace('.+\n', 'repo:(?!x).+\n')
      .replace('agent: ci-{run_id}', 'agent: "*"')
      .replace('https://agents', 'http://agents')
    await writeFile(join(home, 'm.yaml'), text)
    const { code, stdout, stderr } = await mayfly('identity', 'check', 'm.yaml')
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^mayfly: m\.yaml:6:\d+: identities\.0\.subject_pattern: .* is not a pattern of RE2/m,
    )
    expect(stderr).toMatch(/^mayfly: m\.yaml:16:\d+: platforms\.0\.issuer: must start with https/m)
    expect(stderr).not.toContain('Warning')
  })

  test('knows the issuer of the server from the same file', async () => {
    await writeFile(join(home, 'm.yaml'), `issuer: https://agents.example\n${GOOD}`)
    const { stderr } = await mayfly('identity', 'check', 'm.yaml')
    expect(stderr).toContain('platforms.0.issuer: is an issuer of this server itself')
  })

  test('warns of what trusts more than it seems to', async () => {
    await writeFile(join(home, 'm.yaml'), GOOD.replace('event_name: push', 'repository: acme/app'))
    const { code, stderr } = await mayfly('identity', 'check', 'm.yaml')
    expect(code).toBe(0)
    expect(stderr).toContain('Warning: ci: claims: name the values of event_name;')
  })

  test('says what a file without entries lacks', async () => {
    await writeFile(join(home, 'm.yaml'), 'identites: []\n')
    expect((await mayfly('identity', 'check', 'm.yaml')).stderr).toContain('did you mean "identities"')
    await writeFile(join(home, 'm.yaml'), 'listen: 127.0.0.1:1\n')
    expect((await mayfly('identity', 'check', 'm.yaml')).stderr).toContain(
      'neither "identities" nor "platforms"',
    )
    expect((await mayfly('identity', 'check')).code).toBe(2)
  })
})

describe('identity test', () => {
  const run = (...more: string[]) =>
    mayfly('identity', 'test', '--token-file', 'token', '--config', 'm.yaml', ...more)

  test('says which entry takes the token, of the others why not, and that no signature was checked', async () => {
    await token(CLAIMS)
    const { code, stdout, stderr } = await run()
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ci +matches +agent ci-5/m)
    expect(stdout).toMatch(/^hosted +does not match +issuer +https:\/\/agents\.example +https:\/\/token/m)
    expect(stderr).toContain('The signature is not checked')
  })

  test('shows what both sides have of the condition that failed', async () => {
    await token({ ...CLAIMS, repository_id: 75 })
    const { code, stdout } = await run()
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ci +does not match +claims\.repository_id +74 +75$/m)
    await token({ ...CLAIMS, event_name: undefined })
    expect((await run()).stdout).toMatch(/^ci +does not match +claims\.event_name +push +\(none\)$/m)
  })

  test.each([
    ['exp', { exp: Math.floor(Date.now() / 1000) - 120 }],
    ['exp', { exp: undefined }],
    ['nbf', { nbf: Math.floor(Date.now() / 1000) + 3600 }],
    ['nbf', { nbf: 'tomorrow' }],
    ['max_age', { iat: Math.floor(Date.now() / 1000) - 3600 }],
    ['iat', { iat: Math.floor(Date.now() / 1000) + 3600 }],
    ['agent', { run_id: 'a/b' }],
  ])('checks %s last', async (condition, over) => {
    await token({ ...CLAIMS, ...over })
    expect(JSON.parse((await run('--json')).stdout).entries[0]).toMatchObject({ matches: false, condition })
  })

  test('says that two entries are a refusal', async () => {
    const entry = GOOD.slice(GOOD.indexOf('  - name: ci'), GOOD.indexOf('# Hosted'))
    const twin = entry.replace('name: ci', 'name: twin').replace('ci-{', 'twin-{')
    await writeFile(join(home, 'm.yaml'), GOOD.replace('# Hosted', `${twin}# Hosted`))
    await token(CLAIMS)
    const { code, stderr } = await run()
    expect(code).toBe(1)
    expect(stderr).toContain('Several entries match: the server refuses the token.')
  })

  test('refuses a token of Kubernetes that is bound to no pod', async () => {
    await writeFile(
      join(home, 'm.yaml'),
      GOOD.replace(/claims:.*event_name: push/s, "claims:\n      kubernetes.io/namespace: 'prod'"),
    )
    const own = { namespace: 'prod' }
    for (const [kubernetes, condition] of [
      [{ ...own, pod: { uid: 'u' } }, null],
      [own, 'kubernetes.io/pod'],
    ]) {
      await token({ ...CLAIMS, 'kubernetes.io': kubernetes })
      expect(JSON.parse((await run('--json')).stdout).entries[0]).toMatchObject({ condition })
    }
  })

  test('takes the token of a hosted agent', async () => {
    await token({ iss: 'https://agents.example', sub: 'agent-1', jti: 'j' })
    expect(JSON.parse((await run('--json')).stdout)).toMatchObject({ taken_by: 'hosted' })
    const old = { iat: Math.floor(Date.now() / 1000) - 700 }
    for (const [over, condition] of [
      [{ jti: undefined }, 'jti'],
      [{ sub: 'a\nb' }, 'subject'],
      [{ aud: 'other' }, 'audience'],
      [old, 'max_age'],
    ] as const) {
      await token({ iss: 'https://agents.example', sub: 'agent-1', jti: 'j', ...over })
      expect(JSON.parse((await run('--json')).stdout).entries[1]).toMatchObject({ matches: false, condition })
    }
  })

  test.each(['', 'a.b', 'a.b.c.d', 'a.!!.c', 'a.bnVsbA.c', `a.${'b'.repeat(17_000)}.c`])(
    'refuses a file that holds no token: %j',
    async (content) => {
      await writeFile(join(home, 'token'), content)
      const { code, stderr, stdout } = await run()
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/token/)
    },
  )

  test('writes text of a token as text', async () => {
    await token({ ...CLAIMS, sub: 'a', repository_id: '\u001b[31m\nx' })
    expect((await run()).stdout).not.toContain('\u001b[31m')
  })
})

describe('identity add', () => {
  let api: ReturnType<typeof createServer>
  let issuer: string
  const asked: (string | undefined)[] = []
  let reply: { status: number; body: string }
  beforeAll(async () => {
    api = createServer((request, response) => {
      asked.push(request.url)
      response.writeHead(reply.status, { location: 'https://evil.example/' }).end(reply.body)
    })
    await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
    issuer = `http://127.0.0.1:${(api.address() as AddressInfo).port}/_services/token`
  })
  afterAll(() => new Promise((resolve) => api.close(resolve)))
  const found = (over: object = {}) => ({
    status: 200,
    body: JSON.stringify({ id: 74, full_name: 'acme/app', owner: { id: 65 }, ...over }),
  })
  const add = (...more: string[]) => mayfly(...ADD, '--repository', 'acme/app', '--issuer', issuer, ...more)

  test('asks the API of the issuer for the numbers', async () => {
    reply = found()
    asked.length = 0
    const { code, stdout } = await add()
    expect({ code, asked }).toEqual({ code: 0, asked: ['/api/v3/repos/acme/app'] })
    expect(stdout).toContain("repository_id: '74'")
    expect(stdout).toContain("repository_owner_id: '65'")
    expect(stdout).toContain('local: true')
  })

  test('asks nobody when the numbers are given', async () => {
    asked.length = 0
    expect((await add(...NUMBERS)).stdout).toContain("repository_id: '75'")
    expect(asked).toEqual([])
  })

  test.each([
    ['shows no such repository', { status: 404, body: '' }],
    ['another name now', { status: 301, body: '' }],
    ['answered with status 403', { status: 403, body: '' }],
    ['something else', found({ full_name: 'evil/app' })],
    ['something else', found({ id: '74' })],
    ['something else', found({ owner: null })],
    ['something else', { status: 200, body: '[' }],
  ])('says which options have the numbers if the API %s', async (why, answer) => {
    reply = answer
    const { code, stdout, stderr } = await add()
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(why)
    expect(stderr).toContain('--repository-id and --owner-id')
  })

  test.each([
    [['identity', 'add', 'github', ...NUMBERS, '--scope', 'a'], '--audience'],
    [['identity', 'add', 'github', ...NUMBERS, '--audience', 'a'], '--scope'],
    [['identity', 'add', 'svn', ...NUMBERS], 'svn'],
    [[...ADD, '--repository', 'acme', ...NUMBERS], 'OWNER/NAME'],
    [[...ADD, '--repository', '../a', ...NUMBERS.slice(0, 2)], '--owner-id'],
    [[...ADD, '--repository-id', 'x', '--owner-id', '1'], '--repository-id is not a number'],
    [[...ADD, ...NUMBERS, '--trust-domain', 'a'], 'has no --trust-domain'],
    [[...ADD, ...NUMBERS, '--name', 'a\nb'], 'control character'],
    [[...ADD, ...NUMBERS, '--name', 'a b'], 'is not a name'],
    [[...ADD, ...NUMBERS, '--scope', 'admin:*'], 'is an admin scope'],
    [[...ADD, ...NUMBERS, '--agent', '{run_id}'], 'no letter or digit'],
    [[...ADD, ...NUMBERS, '--issuer', 'http://a.example?b'], 'query or fragment'],
    [['identity', 'add', 'kubernetes', '--audience', 'a', '--scope', 'a'], 'needs --issuer, --namespace'],
  ])('refuses %j', async (argv, message) => {
    const { code, stdout, stderr } = await mayfly(...argv)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  test('quotes what YAML would read as something else', async () => {
    const { code, stdout } = await mayfly(
      ...ADD.slice(0, 3),
      ...NUMBERS,
      '--audience',
      "it's: {a}",
      '--scope',
      'x:*',
      '--name',
      'on',
    )
    expect(code).toBe(0)
    expect(stdout).toContain("audience: 'it''s: {a}'")
    expect(stdout).toContain("- name: 'on'")
    expect(stdout).toContain("- 'x:*'")
  })

  test('--write appends it, and changes no other line and no permission', async () => {
    const file = join(home, 'm.yaml')
    await chmod(file, 0o640)
    await symlink(file, join(home, 'link.yaml'))
    const ended = await mayfly(...ADD, ...NUMBERS, '--write', 'link.yaml')
    expect(ended).toMatchObject({ code: 0, stdout: '' })
    expect(ended.stderr).toContain('Added github-75 to link.yaml. Run: mayfly server reload')
    const text = await readFile(file, 'utf8')
    for (const line of GOOD.split('\n')) expect(text).toContain(line)
    expect(text.indexOf('github-75')).toBeLessThan(text.indexOf('# Hosted.'))
    expect((await stat(file)).mode & 0o777).toBe(0o640)
    expect((await mayfly('identity', 'check', 'm.yaml')).stdout).toMatch(/^github-75 /m)
    // The name is taken now.
    const again = await mayfly(...ADD, ...NUMBERS, '--write', 'm.yaml')
    expect(again.code).toBe(2)
    expect(again.stderr).toContain('already the name of another identity')
    expect(await readFile(file, 'utf8')).toBe(text)
  })

  test('--write begins the list where there is none', async () => {
    await writeFile(join(home, 'm.yaml'), 'listen: 127.0.0.1:1 # here\n')
    expect((await mayfly(...ADD, ...NUMBERS, '--write', 'm.yaml')).code).toBe(0)
    const text = await readFile(join(home, 'm.yaml'), 'utf8')
    expect(text).toMatch(/^listen: 127\.0\.0\.1:1 # here\n\nidentities:\n {2}# /)
  })

  test('--write says where a file in conf.d would go before it', async () => {
    await mkdir(join(home, 'conf.d'))
    await writeFile(join(home, 'conf.d', 'a.yaml'), GOOD)
    const { code, stderr } = await mayfly(...ADD, ...NUMBERS, '--write', 'm.yaml')
    await rm(join(home, 'conf.d'), { recursive: true })
    expect(code).toBe(1)
    expect(stderr).toContain('a file in conf.d sets identities')
    expect(await readFile(join(home, 'm.yaml'), 'utf8')).toBe(GOOD)
  })

  test.each([
    ['none.yaml', undefined, 'does not exist'],
    ['m.yaml', 'identities: []\n', 'is not a list with one entry on a line of its own'],
    ['m.yaml', 'identities: [', 'not valid YAML'],
  ])('--write leaves %s alone with %j', async (file, text, why) => {
    if (text !== undefined) await writeFile(join(home, file), text)
    const { code, stderr } = await mayfly(...ADD, ...NUMBERS, '--write', file)
    expect(code).toBe(1)
    expect(stderr).toContain(why)
    if (text !== undefined) expect(await readFile(join(home, file), 'utf8')).toBe(text)
  })
})
