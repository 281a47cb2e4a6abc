import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runCli } from './support.ts'
import { AWS_FIELDS, installCommands, startToolsWorld, type ToolsWorld } from './tools-support.ts'

/**
 * The words that programs send to a helper and read from it. Each constant was copied from the document named above it, never
 * from our code.
 */

/** git-credential(1), "Input/output format"; gitcredentials(7), "Custom helpers". */
const GIT = {
  operations: { get: 'get', store: 'store', erase: 'erase' },
  asked: 'protocol=https\nhost=git.example.com\nwwwauth[]=Basic realm="x"\n\n',
  answer: ['username', 'password', 'password_expiry_utc'],
  stop: 'quit=1',
} as const

/** github.com/docker/docker-credential-helpers: README, "Development"; `credentials/credentials.go`, `credentials/error.go`. */
const DOCKER = {
  program: 'docker-credential-mayfly',
  actions: { get: 'get', store: 'store', erase: 'erase', list: 'list' },
  answer: ['ServerURL', 'Username', 'Secret'],
  miss: 'credentials not found in native keychain',
  failed: 1,
} as const

/** docs.aws.amazon.com/cli/latest/userguide/cli-configure-sourcing-external.html, "Expected output from the Credentials program". */
const AWS = {
  key: 'credential_process',
  version: 1,
  answer: ['Version', 'AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration'],
} as const

/**
 * kubernetes.io/docs/reference/access-authn-authz/authentication, "client-go credential plugins", and
 * kubernetes.io/docs/reference/config-api/client-authentication.v1
 */
const KUBERNETES = {
  variable: 'KUBERNETES_EXEC_INFO',
  versions: ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'],
  kind: 'ExecCredential',
  token: ['expirationTimestamp', 'token'],
  certificate: ['expirationTimestamp', 'clientCertificateData', 'clientKeyData'],
  interactiveModes: ['Never', 'IfAvailable', 'Always'],
} as const

/** developer.hashicorp.com/terraform/internals/credentials-helpers and opentofu.org/docs/internals/credentials-helpers */
const TERRAFORM = {
  program: 'terraform-credentials-mayfly',
  verbs: { get: 'get', store: 'store', forget: 'forget' },
  answer: ['token'],
  nothing: {},
  block: 'credentials_helper "mayfly" {',
} as const

/** google.aip.dev/auth/4117, "Determining the subject token in executable-sourced credentials". */
const GOOGLE = {
  tokenType: 'GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE',
  version: 1,
  types: ['urn:ietf:params:oauth:token-type:id_token', 'urn:ietf:params:oauth:token-type:jwt'],
  answer: ['version', 'success', 'token_type', 'id_token', 'expiration_time'],
  refusal: ['version', 'success', 'code', 'message'],
} as const

/** pnpm.io/npmrc, "<URL>:tokenHelper"; `credsToHeader` of pnpm 11 takes what begins with a scheme for the whole header. */
const PNPM = {
  line: /^\/\/npm\.example\.com\/:tokenHelper=\/[^ ]+$/,
  header: /^[A-Z]+ /i,
  scheme: 'Bearer ',
} as const

/** code.claude.com/docs/en/settings, "Available settings"; code.claude.com/docs/en/env-vars. */
const CLAUDE = { setting: 'apiKeyHelper', ttl: 'CLAUDE_CODE_API_KEY_HELPER_TTL_MS' } as const

/** RFC 3339, which AWS calls ISO 8601. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/

let world: ToolsWorld
let env: Record<string, string>
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('key', { secret: 'sk-{id}' })
  await world.add('cloud', { fields: AWS_FIELDS })
  await world.add('certificate', { fields: { client_certificate: 'CERT\n', client_key: 'KEY\n' } })
  env = { ...(await installCommands(world)) }
  for (const [tool, host] of [
    ['docker', 'r.example'],
    ['terraform', 'tf.example.com'],
  ] as const)
    await helper(tool, ['--write', '--host', host, '--backend', 'key'])
})
afterAll(() => world.close())

const helper = (format: string, argv: readonly string[] = [], more: object = {}, stdin = '') =>
  runCli(['helper', format, ...argv], { env: { ...env, ...more }, stdin })
const answerOf = async (...call: Parameters<typeof helper>) => {
  const { code, stdout, stderr } = await helper(...call)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
const SILENCE = { code: 0, stdout: '', stderr: '' }

describe('git', () => {
  const { get, store, erase } = GIT.operations
  const ask = (operation: string, more: object = {}) =>
    helper('git', ['--host', 'git.example.com', '--backend', 'key', operation], more, GIT.asked)

  test('get answers with attributes that git knows, the end in seconds', async () => {
    const { stdout } = await ask(get)
    const attributes = stdout.trimEnd().split('\n')
    expect(attributes.map((line) => line.slice(0, line.indexOf('=')))).toEqual(GIT.answer)
    expect(attributes.at(-1)).toMatch(/=\d{10}$/)
  })

  test('store, erase and an operation of a later git are silent', async () => {
    expect(await ask(store)).toEqual(SILENCE)
    expect(await ask(erase)).toEqual(SILENCE)
    expect(await ask('capability')).toEqual(SILENCE)
  })

  test('a failed get tells git to stop', async () => {
    const end = await ask(get, { MAYFLY_TOKEN: 'ckr_wrong' })
    expect(end.stdout).toBe(`${GIT.stop}\n`)
    expect(end.stderr).not.toBe('')
  })
})

describe('docker', () => {
  const { get, store, erase, list } = DOCKER.actions

  test('get answers with the fields of docker, and misses with its text', async () => {
    expect(Object.keys(await answerOf('docker', [get], {}, 'r.example'))).toEqual(DOCKER.answer)
    const miss = await helper('docker', [get], {}, 'other.example')
    expect(miss).toEqual({ code: DOCKER.failed, stdout: `${DOCKER.miss}\n`, stderr: '' })
  })

  test('list answers with user names by server, store reads what get answers, erase is silent', async () => {
    const answer = await answerOf('docker', [get], {}, 'r.example')
    expect(await answerOf('docker', [list], {}, 'unused')).toEqual({ 'r.example': answer.Username })
    expect(await helper('docker', [store], {}, JSON.stringify(answer))).toEqual(SILENCE)
    expect(await helper('docker', [erase], {}, 'r.example')).toEqual(SILENCE)
  })

  test('the reason of a failure is on standard output', async () => {
    const end = await helper('docker', [get], { MAYFLY_TOKEN: 'ckr_wrong' }, 'r.example')
    expect(end.code).not.toBe(0)
    expect(end.stdout.trim()).not.toBe('')
    expect(end.stdout.trim()).not.toBe(DOCKER.miss)
  })
})

test('aws', async () => {
  const answer = await answerOf('aws', ['--backend', 'cloud'])
  expect(Object.keys(answer)).toEqual(AWS.answer)
  expect(answer.Version).toBe(AWS.version)
  expect(answer.Expiration).toMatch(TIMESTAMP)
  const profile = await helper('aws', ['--backend', 'cloud', '--print'])
  expect(profile.stdout).toMatch(new RegExp(`^\\[profile [\\w-]+\\]\\n${AWS.key} = \\S`))
})

describe('kubectl', () => {
  test.each(KUBERNETES.versions)('answers %s with a token or a certificate', async (apiVersion) => {
    const asked = { apiVersion, kind: KUBERNETES.kind, spec: { interactive: false } }
    const more = { [KUBERNETES.variable]: JSON.stringify(asked) }
    for (const [backend, fields] of [
      ['key', KUBERNETES.token],
      ['certificate', KUBERNETES.certificate],
    ] as const) {
      const { status, ...rest } = await answerOf('kubectl', ['--backend', backend], more)
      expect(rest).toEqual({ apiVersion, kind: KUBERNETES.kind })
      expect(Object.keys(status)).toEqual(fields)
      expect(status.expirationTimestamp).toMatch(TIMESTAMP)
    }
  })

  test('is configured with the mode that v1 requires', async () => {
    const { stdout } = await helper('kubectl', ['--backend', 'key', '--print'])
    const { exec } = parse(stdout).users[0].user
    expect(exec.apiVersion).toBe(KUBERNETES.versions[0])
    expect(KUBERNETES.interactiveModes).toContain(exec.interactiveMode)
  })
})

describe('terraform', () => {
  const { get, store, forget } = TERRAFORM.verbs

  test('get answers with a token, or with nothing for a host that is not ours', async () => {
    expect(Object.keys(await answerOf('terraform', [get, 'tf.example.com']))).toEqual(TERRAFORM.answer)
    expect(await answerOf('terraform', [get, 'other.example.com'])).toEqual(TERRAFORM.nothing)
  })

  test('forget is silent, for a host that is not ours, too', async () => {
    for (const host of ['tf.example.com', 'other.example.com'])
      expect(await helper('terraform', [forget, host])).toEqual(SILENCE)
  })

  test('store that is refused reads all of its input, and says why on standard error', async () => {
    const argv = [store, 'tf.example.com']
    const child = spawn(join(world.home, 'bin', TERRAFORM.program), argv, {
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const ended = new Promise((resolve) => child.once('close', resolve))
    let said = ''
    child.stdout.resume()
    child.stderr.on('data', (chunk) => (said += String(chunk)))
    child.stdin.end(`{"token":"${'x'.repeat(500_000)}"}`)
    await finished(child.stdin)
    expect(await ended).not.toBe(0)
    expect(said).toContain('does not store')
  })

  test('a later verb is refused on standard error', async () => {
    const { code, stdout, stderr } = await helper('terraform', ['rotate', 'tf.example.com'])
    expect([code === 0, stdout, stderr === '']).toEqual([false, '', false])
  })
})

describe('gcp', () => {
  test.each(GOOGLE.types)('answers with %s', async (type) => {
    const answer = await answerOf('gcp', ['--backend', 'demo'], { [GOOGLE.tokenType]: type })
    expect(Object.keys(answer)).toEqual(GOOGLE.answer)
    expect(answer).toMatchObject({ version: GOOGLE.version, success: true, token_type: type })
    expect(answer.expiration_time).toSatisfy(Number.isInteger)
  })

  test('refuses in the form of an error response, with an exit code that is not 0', async () => {
    const end = await helper('gcp', ['--backend', 'demo'], { MAYFLY_TOKEN: 'ckr_wrong' })
    expect(end.code).not.toBe(0)
    const refusal = JSON.parse(end.stdout)
    expect(Object.keys(refusal)).toEqual(GOOGLE.refusal)
    expect(refusal).toMatchObject({ version: GOOGLE.version, success: false })
    expect([typeof refusal.code, typeof refusal.message]).toEqual(['string', 'string'])
  })
})

test('npm', async () => {
  const { stdout } = await helper('npm', ['--backend', 'key'])
  expect(stdout).toMatch(/^\S+\n$/)
  const header = await helper('npm', ['--backend', 'key', '--bearer'])
  expect(header.stdout).toBe(PNPM.scheme + stdout)
  expect(header.stdout).toMatch(PNPM.header)
  const path = join(world.home, 'npm-token')
  const write = ['--backend', 'key', '--registry', 'https://npm.example.com', '--write', path]
  expect((await helper('npm', write)).stdout.trimEnd()).toMatch(PNPM.line)
})

test('api-key', async () => {
  expect((await helper('api-key', ['--backend', 'key'])).stdout).toMatch(/^\S+\n$/)
  const settings = await answerOf('api-key', ['--backend', 'key', '--print'])
  expect(Object.keys(settings)).toEqual([CLAUDE.setting, 'env'])
  expect(Object.keys(settings.env)).toEqual([CLAUDE.ttl])
  expect(settings.env[CLAUDE.ttl]).toMatch(/^\d+$/)
})
