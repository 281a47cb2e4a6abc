import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { usesOf } from '../../../src/backends/kubernetes/uses.ts'
import { type ClientWorld, type Handler, startClientWorld } from '../support/client-world.ts'
import { KUBE_ANSWERS } from '../support/kube-answers.ts'

const SECRET = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZ2VudC0xIn0.c2lnbmF0dXJlLTAxMjM0NTY3ODk'
const HOST = 'k8s.acme.example'
const SERVER = `https://${HOST}`
const MAPS = '/api/v1/namespaces/shop/configmaps'

let world: ClientWorld
const seen: string[] = []
const foreign: string[] = []
const maps = new Map<string, Record<string, unknown>>()

/** The part of the API that kubectl asks for here. */
const api: Handler = (request, response) => {
  const { method = '', headers } = request
  const { pathname } = new URL(request.url ?? '', SERVER)
  const isKnown = headers.authorization === `Bearer ${SECRET}`
  seen.push(`${method} ${pathname} ${isKnown ? 'known' : 'wrong'}`)
  const send = (status: number, body: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const fail = (code: number, reason: string) =>
    send(code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code })
  if (!isKnown) return void fail(401, 'Unauthorized')
  const answer = KUBE_ANSWERS[pathname]
  if (answer !== undefined) return void send(200, answer)
  if (pathname === '/api/v1/namespaces/shop/pods/web/log') {
    // The second line is sent when the first has arrived, which kubectl shows by asking for the map "arrived".
    response.writeHead(200, { 'content-type': 'text/plain' }).write('first\n')
    whenArrived = () => response.end(`second ${SECRET}\n`)
    return
  }
  if (pathname === `${MAPS}/arrived`) whenArrived()
  let text = ''
  request.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  request.on('end', () => change(method, pathname.slice(MAPS.length + 1), text, send, fail))
}
let whenArrived = () => {}

function change(
  method: string,
  name: string,
  text: string,
  send: (status: number, body: unknown) => void,
  fail: (code: number, reason: string) => void,
): void {
  const found = maps.get(name)
  if (method === 'POST') {
    const made = JSON.parse(text) as { metadata: { name: string } }
    maps.set(made.metadata.name, made)
    send(201, made)
  } else if (found === undefined) fail(404, 'NotFound')
  else if (method === 'DELETE') {
    maps.delete(name)
    send(200, { kind: 'Status', apiVersion: 'v1', status: 'Success' })
  } else {
    if (method === 'PATCH') maps.set(name, { ...found, data: (JSON.parse(text) as { data: object }).data })
    send(200, maps.get(name))
  }
}

let byProxy: string
beforeAll(async () => {
  const settings = { server: SERVER, home: 'agents', namespaces: ['shop'], roles: ['edit'], local: false }
  const kubeconfig = JSON.stringify({ users: [{ name: 'agent', user: { token: SECRET } }] })
  world = await startClientWorld(
    [
      {
        ...{ name: 'kube', type: 'kubernetes' },
        fields: { token: SECRET, server: SERVER, namespace: 'shop', kubeconfig },
        uses: usesOf(settings, ['shop:edit']) as never,
        env: ({ fields }) => ({
          KUBECONFIG_TEXT: String(fields?.['kubeconfig']),
          KUBE_TOKEN: String(fields?.['token']),
        }),
      },
    ],
    {
      [HOST]: api,
      'elsewhere.example': (request, response) => {
        foreign.push(String(request.headers.authorization))
        response.writeHead(404).end()
      },
    },
  )
  await writeFile(join(world.directory, 'site.json'), world.env['KUBECONFIG_TEXT'] ?? '')
  byProxy = await configFor('upstream', SERVER)
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'colours', namespace: 'shop' } }
  await writeFile(join(world.directory, 'map.json'), JSON.stringify({ ...map, data: { sky: 'blue' } }))
  await writeFile(join(world.directory, 'map2.json'), JSON.stringify({ ...map, data: { sky: 'grey' } }))
})
afterAll(() => world?.close())
beforeEach(() => {
  for (const list of [seen, foreign, world.misused]) list.length = 0
  maps.clear()
  maps.set('arrived', {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name: 'arrived', namespace: 'shop' },
  })
})

/** A configuration of the user's own, which names a server and trusts the roots of the child. */
async function configFor(name: string, server: string): Promise<string> {
  const file = join(world.directory, `${name}.json`)
  const cluster = { server, 'certificate-authority': world.env['SSL_CERT_FILE'] }
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'c', user: { token: world.env['KUBE_TOKEN'] } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c', namespace: 'shop' } }],
  }
  await writeFile(file, JSON.stringify(config))
  return file
}

const WAYS = {
  'the kubeconfig of the credential': (...args: string[]) =>
    world.run(['kubectl', ...args], { KUBECONFIG: 'site.json' }),
  HTTPS_PROXY: (...args: string[]) => world.runForward(['kubectl', ...args], { KUBECONFIG: byProxy }),
}

describe.each(Object.entries(WAYS))('kubectl by %s', (_, kubectl) => {
  it('applies, gets and deletes', async () => {
    const apply = (file: string) => kubectl('apply', '--validate=false', '-f', file)
    expect(await apply('map.json')).toEqual({ code: 0, stdout: 'configmap/colours created\n', stderr: '' })
    expect(await apply('map2.json')).toMatchObject({ code: 0, stdout: 'configmap/colours configured\n' })
    const { stdout } = await kubectl('get', 'configmap', 'colours', '-o', 'jsonpath={.data.sky}')
    expect(stdout).toBe('grey')
    expect(await kubectl('delete', '--wait=false', 'configmap', 'colours')).toMatchObject({ code: 0 })
    expect(maps.has('colours')).toBe(false)
    expect(seen.filter((line) => line.endsWith('wrong'))).toEqual([])
  })

  it('is refused what gives credentials, another namespace and another method', async () => {
    const create = [
      'create',
      '--raw',
      '/api/v1/namespaces/shop/serviceaccounts/default/token',
      '-f',
      'map.json',
    ]
    for (const args of [
      create,
      ['get', '--raw', '/api/v1/namespaces/shop/secrets'],
      ['get', '--raw', '/api/v1/namespaces/bank/configmaps'],
      ['delete', '--raw', '/version'],
    ]) {
      const { code, stderr } = await kubectl(...args)
      expect([code, stderr]).toEqual([1, expect.stringMatching(/not allow|forbidden|refused/i)])
    }
    expect(seen.filter((line) => !/ \/apis? | \/api\/v1 /.test(line))).toEqual([])
  })
})

describe.each([
  ['the kubeconfig of the credential', 'site.json'],
  ['HTTPS_PROXY', 'upstream.json'],
])('logs of kubectl by %s', (_, config) => {
  it('flow, each line when it is written, with the secret masked', async () => {
    const script = `kubectl logs -f web | while read line; do echo "$line"; [ "$line" = first ] && kubectl get --raw ${MAPS}/arrived >/dev/null; done`
    const { stdout } = await world.run(['sh', '-c', script], { KUBECONFIG: config })
    expect(stdout).toMatch(/^first\nsecond \S+\n$/)
    expect(stdout).not.toContain(SECRET)
  })
})

it('is refused another cluster, which is told', async () => {
  const other = await configFor('other', 'https://elsewhere.example')
  const { code } = await world.run(['kubectl', 'get', '--raw', '/version'], { KUBECONFIG: other })
  expect(code).toBe(1)
  expect(new Set(world.misused)).toEqual(new Set(['kube']))
  expect(foreign).toEqual([])
})

it('leaves no secret in what kubectl printed and wrote, and finds the placeholder', async () => {
  expect(await world.find(SECRET)).toEqual([])
  expect(await world.find(world.env['KUBE_TOKEN'] ?? '')).toContain(join(world.directory, 'site.json'))
})
