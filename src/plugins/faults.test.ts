import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { never, newRequest } from '../../test/contract/open-kind.ts'
import { createTestHost } from '../../test/support/host.ts'
import { pidsOf, pinnedFrom, supportPlugin } from '../../test/support/plugin.ts'
import { bundlePlugin } from '../../test/support/plugin-artefact.ts'
import type { Backend, Host, Issued } from '../backends/kind.ts'
import { BackendError } from '../domain/backend-error.ts'
import { kindOfPlugin } from './kind-of-plugin.ts'
import { startClient } from './mayfly/client.ts'
import { describePlugin } from './mayfly/describe.ts'
import { readHandshake } from './process/handshake.ts'
import type { Isolation } from './process/isolation.ts'
import type { PinnedPlugin, Program } from './process/program.ts'

const FAULTY = supportPlugin('faulty-plugin.ts')
const CONFIG = { url: 'https://faulty.example', token: 'hunter2hunter2' }

let program: Program
let pinned: PinnedPlugin
const opened: Backend[] = []
let folder = ''
beforeAll(async () => {
  // As one module, as its author would publish it: it starts in a third of the time.
  folder = mkdtempSync(join(tmpdir(), 'faulty-'))
  const entry = join(folder, 'faulty-plugin.mjs')
  writeFileSync(entry, await bundlePlugin('faulty-plugin.ts'))
  program = { runtime: 'node', entry, folder, close: async () => undefined }
  pinned = await pinnedFrom(program)
})
afterAll(async () => {
  await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
  rmSync(folder, { recursive: true, force: true })
})

async function open(isolation: Isolation = {}, overrides: Partial<Host> = {}, config = CONFIG) {
  const { host, logged } = createTestHost('faulty')
  const kind = kindOfPlugin(pinned, { isolation, log: host.log })
  const backend = await kind.open(config, { ...host, ...overrides })
  opened.push(backend)
  return { backend, logged }
}

const issue = (backend: Backend, scope = 'works') => backend.issue(newRequest([scope]), never())
/** The directory of its socket, which each process has of its own. */
const runOf = ({ facts }: Issued) => String(facts?.['run'])

async function faultOf(work: Promise<unknown>): Promise<BackendError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(BackendError)
  return error as BackendError
}

describe('a plugin that breaks the handshake', () => {
  let outside = ''
  const server = createServer()
  beforeAll(async () => {
    outside = mkdtempSync(join(tmpdir(), 'outside-'))
    await new Promise<void>((resolve) => server.listen(join(outside, 'socket'), resolve))
  })
  afterAll(() => {
    server.close()
    rmSync(outside, { recursive: true, force: true })
  })

  it.each([
    ['exit', 'ended before it was ready (exit code 3)'],
    ['words', 'did not begin with the line of the go-plugin protocol'],
    ['long line', 'wrote a line that is too long'],
    ['version', 'speaks another version of the protocol than 1'],
    ['tcp', 'does not speak gRPC over a unix socket'],
    ['no certificate', 'did not send its certificate (AutoMTLS)'],
    ['other certificate', 'ended, or broke the protocol'],
    ['socket outside', 'named a socket outside its directory'],
    ['no socket', 'named a socket outside its directory'],
    ['silent', 'was not ready within 3 seconds'],
  ])('%s: is refused and ended', async (fault, says) => {
    const environment = { FAULT: fault, OUTSIDE: join(outside, 'socket') }
    const isolation = { environment, ...(fault === 'silent' ? { startMs: 3_000 } : {}) }
    const error = await faultOf(open(isolation))
    expect(error.message).toBe(`The plugin faulty ${says}.`)
    expect(error.fault).toBe('unavailable')
  })

  it('does not follow a link out of its directory', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'inside-'))
    symlinkSync(join(outside, 'socket'), join(directory, 'socket'))
    const line = (path: string) => `1|1|unix|${path}|grpc|${'A'.repeat(64)}`
    expect(() => readHandshake(line(join(directory, 'socket')), directory)).toThrow(/outside its directory/)
    expect(() => readHandshake(line(join(outside, 'socket')), directory)).toThrow(/outside its directory/)
    expect(readHandshake(line(join(outside, 'socket')), outside).path).toBe(join(outside, 'socket'))
    rmSync(directory, { recursive: true })
  })

  it('says what it is to a person who starts it', async () => {
    const run = promisify(execFile)(process.execPath, [FAULTY])
    await expect(run).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('mayfly plugin add') })
  })

  it('cannot be started where there is none', async () => {
    const none = { ...program, runtime: 'executable', entry: '/nonexistent/plugin' } as const
    const error = await faultOf(describePlugin(none, { isolation: {}, log: createTestHost('x').host.log }))
    expect(error.message).toMatch(/^The plugin that was given (ended before it was ready|cannot be started)/)
  })
})

describe('a plugin that describes itself', () => {
  it('as another kind than when it was added is not used', async () => {
    const error = await faultOf(open({ environment: { FAULT: 'other kind' } }))
    expect(error.fault).toBe('misconfigured')
    expect(error.message).toContain('describes itself otherwise')
  })

  it('with a pattern that could hold up the server is refused', async () => {
    const isolation = { environment: { FAULT: 'pattern' } }
    const error = await faultOf(describePlugin(program, { isolation, log: createTestHost('x').host.log }))
    expect(error.message).toContain('states a pattern for bad that is too complex')
  })
})

describe('what a plugin answers', () => {
  it.each([
    ['nothing', 'without a secret, or with both a secret and fields'],
    ['both', 'without a secret, or with both a secret and fields'],
    ['empty-fields', 'without a secret'],
    ['nested', 'with fields that are not texts or numbers'],
    ['names', 'with fields that have a name which is not one'],
    ['late', 'with an expiry that is past or later than the one asked for'],
    ['past', 'with an expiry that is past or later than the one asked for'],
    ['long', 'with a secret that is too long'],
    ['handle', 'with handles that are too long'],
    ['taken', 'with a handle whose name "credential_id" is taken'],
    ['facts', 'with facts that hold a secret'],
    ['config-facts', 'with facts that hold a secret'],
    ['field-facts', 'with facts that hold a secret'],
    ['encoded-facts', 'with facts that hold a secret'],
  ])('is refused as open when it is garbage: %s', async (scope, says) => {
    const { backend } = await shared()
    const error = await faultOf(issue(backend, `fault:${scope}`))
    expect(error.message).toBe(`The plugin faulty answered ${says}.`)
    expect(error.fault).toBe('unavailable')
  })

  it('may name the account among its facts', async () => {
    const { backend } = await open()
    expect((await issue(backend, 'fault:user-facts')).facts).toEqual({ user: 'mf_user' })
  })

  it('is at most 256 KiB', async () => {
    const { backend } = await shared()
    const error = await faultOf(issue(backend, 'fault:too-long'))
    expect(error.fault).toBe('unavailable')
    expect(runOf(await issue(backend))).toContain('mayfly-plugin-')
  })

  it('keeps the secrets of its configuration out of messages, details and the log', async () => {
    const { backend, logged } = await shared()
    const denied = await faultOf(issue(backend, 'fault:tells'))
    expect(denied.fault).toBe('denied')
    expect(denied.message).toMatch(/^The login \[redacted\] was \[31m refused\. x+…$/)
    expect(denied.message.length).toBeLessThanOrEqual(300)
    expect(denied.detail).toContain('detail [redacted]')
    const failed = await faultOf(issue(backend, 'fault:throws'))
    expect(failed).toMatchObject({ fault: 'unavailable', message: 'The plugin faulty failed.' })
    await vi.waitFor(() => expect(logged()).toContain('no fault of the protocol'), 60_000)
    expect(logged()).toContain('"plugin":"faulty","message":"my login is [redacted] [31m"')
    expect(denied.message + denied.detail + failed.detail + logged()).not.toContain(CONFIG.token)
    expect(await backend.check(never())).toEqual(['one warning of [redacted]'])
  })

  it('refuses a scope of none of its forms before it is asked', () => {
    const { scopes } = kindOfPlugin(pinned, { isolation: {}, log: createTestHost('x').host.log })
    expect(['works', 'fault:x', 'fault:x*'].every((scope) => scopes.valid(scope))).toBe(true)
    expect(['', 'other', 'fault', 'fault:', 'fault:x:y', 'works:x', 'a b'].some(scopes.valid)).toBe(false)
  })

  it('is the fault of its configuration where it refuses that', async () => {
    const error = await faultOf(open({}, {}, { ...CONFIG, token: 'refused' }))
    expect(error).toMatchObject({ fault: 'misconfigured', message: 'The token is "[redacted]".' })
  })

  let one: ReturnType<typeof open> | undefined
  const shared = () => {
    one ??= open()
    return one
  }
})

describe('a plugin whose process', () => {
  it('crashes is started again with its configuration, at once and then after a pause', async () => {
    const { backend, logged } = await open()
    const first = runOf(await issue(backend))
    const request = newRequest(['fault:crash'])
    expect(await faultOf(backend.issue(request, never()))).toMatchObject({
      fault: 'unavailable',
      message: 'The plugin faulty ended, or broke the protocol.',
    })
    await vi.waitFor(() => expect(logged()).toContain('"how":"exit code 7"'), 60_000)
    // Without a reply, the plugin finds the account by the id.
    await backend.revoke?.(backend.recover?.(request.credentialId) ?? {}, never())
    expect(runOf(await issue(backend))).not.toBe(first)
    await faultOf(issue(backend, 'fault:crash'))
    const paused = await vi.waitFor(async () => {
      const error = await faultOf(issue(backend))
      expect(error.message).toContain('is about to be started again')
      return error
    }, 60_000)
    expect(paused.fault).toBe('unavailable')
    await vi.waitFor(async () => expect(runOf(await issue(backend))).toContain('mayfly-plugin-'), 60_000)
  })

  it('hangs is killed, once it answers nothing at all', async () => {
    const { backend, logged } = await open({}, { timeoutMs: 1_500 })
    expect((await faultOf(issue(backend, 'fault:hang'))).fault).toBe('timeout')
    await vi.waitFor(() => expect(logged()).toMatch(/"how":"[^"]*signal SIGKILL"/), 60_000)
    expect(runOf(await issue(backend))).toContain('mayfly-plugin-')
  })

  it('floods its standard output still answers, and costs no memory', async () => {
    const { backend } = await open({ environment: { FAULT: 'flood' } })
    const before = process.memoryUsage().rss
    for (let index = 0; index < 50; index += 1) await issue(backend)
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
  })

  it.skipIf(!existsSync('/usr/bin/prlimit'))('takes more memory than it may have ends', async () => {
    const { backend, logged } = await open({ memoryBytes: 800 * 1024 * 1024 })
    expect((await faultOf(issue(backend, 'fault:memory'))).fault).toMatch(/unavailable|timeout/)
    await vi.waitFor(() => expect(logged()).toContain('The process of a plugin has ended'), 60_000)
    expect(runOf(await issue(backend))).toContain('mayfly-plugin-')
  })

  it('sees only the variables of the protocol and those named, in an empty directory', async () => {
    const { backend } = await open({ environment: { NAMED: 'by the administrator' } })
    const { fields } = await issue(backend, 'fault:sees')
    expect(fields?.['environment']).toBe(
      'MAYFLY_PLUGIN NAMED PLUGIN_CLIENT_CERT PLUGIN_PROTOCOL_VERSIONS PLUGIN_UNIX_SOCKET_DIR TMPDIR',
    )
    expect(fields?.['cwd']).toMatch(/\/mayfly-plugin-\d+-\w+\/w$/)
  })

  it('does not want to end is ended, and leaves nothing', async () => {
    const { backend } = await open({ environment: { FAULT: 'stubborn' } })
    const [pid = 0] = await pidsOf(runOf(await issue(backend)))
    expect(pid).toBeGreaterThan(0)
    const { fields } = await issue(backend, 'fault:sees')
    await backend[Symbol.asyncDispose]()
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    expect(existsSync(join(String(fields?.['cwd']), '..'))).toBe(false)
    expect((await faultOf(issue(backend))).message).toBe('The plugin faulty was stopped.')
  })

  it('is not ready yet ends with the backend', async () => {
    const isolation = { environment: { FAULT: 'silent' } }
    const abandoned = new AbortController()
    const parts = { isolation, name: 'faulty', hide: (text: string) => text, signal: abandoned.signal }
    const starting = startClient(program, { ...parts, log: createTestHost('x').host.log })
    setImmediate(() => abandoned.abort())
    expect((await faultOf(starting)).message).toContain('was stopped before it was ready')
  })
})
