import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { usesOf } from '../../../src/backends/kubernetes/uses.ts'
import { mergeUses } from '../../../src/domain/merge-uses.ts'
import type { UseRules } from '../../../src/domain/use.ts'
import { type ClientWorld, type Handler, startClientWorld } from '../support/client-world.ts'
import { KUBE_ANSWERS } from '../support/kube-answers.ts'

const SECRET = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZ2VudC0yIn0.c2lnbmF0dXJlLTAxMjM0NTY3ODk'
const PLAIN = 'plain.acme.example'
const NAMED = 'named.acme.example'
/** From 1.31 kubectl asks for WebSocket first, before that for SPDY alone. */
const VERSION = JSON.parse(
  execFileSync('kubectl', ['version', '--client', '-o', 'json'], { encoding: 'utf8' }),
)
const FIRST = Number.parseInt(VERSION.clientVersion.minor, 10) < 31 ? 'SPDY/3.1' : 'websocket'

/** The example of the page. */
const page = readFileSync(new URL('../../../docs/backends/kubernetes.md', import.meta.url), 'utf8')
const RULES: UseRules = JSON.parse(/```json\n(.*\/exec.*)\n```/.exec(page)?.[1] ?? '')

let world: ClientWorld
let kubelet: ChildProcess
let port: number
const seen: string[] = []

const isKnown = ({ headers }: IncomingMessage) => headers.authorization === `Bearer ${SECRET}`
const api: Handler = (request, response) => {
  const { pathname } = new URL(request.url ?? '', 'https://any')
  const answer = isKnown(request) ? KUBE_ANSWERS[pathname] : undefined
  response.writeHead(answer === undefined ? 403 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(answer ?? { kind: 'Status', status: 'Failure', code: 403 }))
}
/** Hands the connection to the kubelet, as an API server does. */
api.upgrade = (request, socket: Duplex) => {
  const { pathname } = new URL(request.url ?? '', 'https://any')
  seen.push(`${request.headers.upgrade} ${pathname} ${isKnown(request) ? 'known' : 'wrong'}`)
  const to = connect(port, '127.0.0.1')
  const { rawHeaders } = request
  const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []))
  to.write(`${request.method} ${request.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  to.on('error', () => socket.destroy())
  socket.on('error', () => to.destroy())
  to.pipe(socket).pipe(to)
}

function cluster(name: string, host: string, rules: UseRules | null) {
  const server = `https://${host}`
  const settings = { server, home: 'agents', namespaces: ['shop'], roles: ['edit'], local: false }
  const kubeconfig = JSON.stringify({ users: [{ name: 'agent', user: { token: SECRET } }] })
  return {
    ...{ name, type: 'kubernetes', fields: { token: SECRET, server, namespace: 'shop', kubeconfig } },
    uses: mergeUses(usesOf(settings, ['shop:edit']), rules) as never,
    env: ({ fields }: { readonly fields?: Readonly<Record<string, unknown>> }) => ({
      [name]: String(fields?.['kubeconfig']),
      [`${name}_token`]: String(fields?.['token']),
    }),
  }
}

beforeAll(async () => {
  const credentials = [cluster('plain', PLAIN, null), cluster('named', NAMED, RULES)]
  world = await startClientWorld(credentials, { [PLAIN]: api, [NAMED]: api })
  for (const [name, host] of [
    ['plain', PLAIN],
    ['named', NAMED],
  ] as const) {
    await writeFile(join(world.directory, `${name}-site.json`), world.env[name] ?? '')
    const cluster = { server: `https://${host}`, 'certificate-authority': world.env['SSL_CERT_FILE'] }
    const config = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', clusters: [{ name: 'c', cluster }] },
      users: [{ name: 'c', user: { token: world.env[`${name}_token`] } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'c', namespace: 'shop' } }],
    }
    await writeFile(join(world.directory, `${name}-upstream.json`), JSON.stringify(config))
  }
  const program = join(world.directory, 'kubelet')
  const source = new URL('programs/exec.go', import.meta.url).pathname
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOFLAGS: '' }
  execFileSync('go', ['build', '-o', program, source], { env })
  // As a pod that prints what it must not.
  kubelet = spawn(program, { env: { PATH: process.env['PATH'], REPEATED: SECRET }, stdio: 'pipe' })
  port = Number(await once(kubelet.stdout as NodeJS.ReadableStream, 'data'))
}, 120_000)
afterAll(async () => {
  kubelet?.kill()
  await world?.close()
})
beforeEach(() => {
  seen.length = 0
  world.lines.length = 0
})

/** With `input` on standard input. */
const piped = (input: string, args: readonly string[]) => [
  ...['sh', '-c', 'printf %s "$0" | kubectl "$@"', input, ...args],
]
const WAYS = {
  'the kubeconfig of the credential': (name: string, command: readonly string[], env = {}) =>
    world.run(command, { ...env, KUBECONFIG: `${name}-site.json` }),
  HTTPS_PROXY: (name: string, command: readonly string[], env = {}) =>
    world.runForward(command, { ...env, KUBECONFIG: `${name}-upstream.json` }),
}
const PROTOCOLS = {
  [FIRST]: {},
  'SPDY/3.1': { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' },
}
const CASES = Object.entries(WAYS).flatMap(([way, call]) =>
  Object.entries(PROTOCOLS).map(([protocol, env]) => ({
    ...{ way, protocol },
    kubectl: (name: string, args: readonly string[], input = '') => call(name, piped(input, args), env),
  })),
)

describe.each(CASES)('kubectl exec with $protocol by $way', ({ protocol, kubectl }) => {
  it('is refused until it is named', async () => {
    const { code, stdout } = await kubectl('plain', ['exec', 'web', '--', 'echo', 'hello'])
    expect([code, stdout]).toEqual([1, ''])
    expect(seen).toEqual([])
    expect(world.lines.at(-1)).toMatchObject({ decision: 'refused', reason: 'denied' })
  })

  it('works where it is, with what the pod prints, its exit code, and the secret masked', async () => {
    const script = 'echo hello; echo "$REPEATED"; echo other >&2; exit 7'
    const { code, stdout, stderr } = await kubectl('named', ['exec', 'web', '--', 'sh', '-c', script])
    expect([code, stdout, stderr]).toEqual([
      7,
      expect.stringMatching(/^hello\n\S+\n$/),
      expect.stringMatching(/^other\n/),
    ])
    expect(stdout).not.toContain(SECRET)
    expect(seen).toEqual([`${protocol} /api/v1/namespaces/shop/pods/web/exec known`])
  })

  it('carries what is typed', async () => {
    const { stdout } = await kubectl('named', ['exec', '--stdin', 'web', '--', 'wc', '-c'], '12345')
    expect(stdout.trim()).toBe('5')
  })

  it('is refused another namespace, and what is not named', async () => {
    for (const args of [
      ['exec', '--namespace', 'bank', 'web', '--', 'true'],
      ['attach', 'web'],
    ]) {
      const { code } = await kubectl('named', args)
      expect([args, code]).toEqual([args, 1])
    }
    expect(seen).toEqual([])
  })
})
