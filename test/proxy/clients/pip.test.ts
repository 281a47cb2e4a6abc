import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ClientWorld, type Handler, rules, startClientWorld } from '../support/client-world.ts'

/** Debian's: its requests is patched to trust the system's roots. */
const PIP = '/usr/bin/pip'
const SECRET = 'pypi-0123456789abcdefghijABCDEFGHIJ012345'
const HOST = 'pypi.acme.example'
const WHEEL = 'shapes-1.2.3-py3-none-any.whl'
const MAKE_WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('shapes.py', 'SIDES = 4\\n')
    wheel.writestr('shapes-1.2.3.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: shapes\\nVersion: 1.2.3\\n')
    wheel.writestr('shapes-1.2.3.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('shapes-1.2.3.dist-info/RECORD', '')
`

let world: ClientWorld
let wheel: Buffer
/** How the index names its files: registries do either. */
let link = ''
const seen: string[] = []
const foreign: string[] = []

/** A simple index (PEP 503). */
const index: Handler = (request, response) => {
  const { method, url = '', headers } = request
  const login = Buffer.from((headers.authorization ?? '').replace('Basic ', ''), 'base64').toString()
  const isKnown = login.endsWith(`:${SECRET}`)
  seen.push(`${method} ${url} ${isKnown ? 'known' : login === '' ? 'none' : 'wrong'}`)
  const hash = createHash('sha256').update(wheel).digest('hex')
  const page = `<!DOCTYPE html><html><body><a href="${link}#sha256=${hash}">${WHEEL}</a></body></html>`
  response.setHeader('content-type', 'text/html')
  if (!isKnown) response.writeHead(401, { 'www-authenticate': 'Basic realm="pypi"' }).end()
  else if (url === '/team/simple/shapes/') response.end(page)
  else if (url === `/team/files/${WHEEL}`) response.setHeader('content-type', 'application/zip').end(wheel)
  else response.writeHead(404).end()
}

beforeAll(async () => {
  world = await startClientWorld(
    [
      {
        ...{ name: 'packages', type: 'acme', token: SECRET },
        uses: [
          {
            ...{ name: 'pypi', origin: `https://${HOST}`, places: [{ in: 'basic' }], deny: [] },
            allow: rules('GET,HEAD /team/simple/**', 'GET,HEAD /team/files/**'),
          },
        ],
        env: ({ token }) => ({
          PYPI_TOKEN: token,
          PIP_DISABLE_PIP_VERSION_CHECK: '1',
          PIP_NO_INPUT: '1',
          PIP_ROOT_USER_ACTION: 'ignore',
        }),
      },
    ],
    {
      [HOST]: index,
      'elsewhere.example': (request, response) => {
        foreign.push(String(request.headers.authorization))
        response.writeHead(404).end()
      },
    },
  )
  const file = join(world.directory, WHEEL)
  execFileSync('/usr/bin/python3', ['-c', MAKE_WHEEL, file])
  wheel = readFileSync(file)
})
afterAll(() => world?.close())
beforeEach(() => {
  link = `../../files/${WHEEL}`
  for (const list of [seen, foreign, world.misused]) list.length = 0
})

const INSTALL = [PIP, 'install', '--retries', '0', '--no-cache-dir', '--no-deps']
const install = (...args: string[]) => world.run([...INSTALL, ...args])
const address = (host: string, path: string) => `https://__token__:${world.env['PYPI_TOKEN']}@${host}${path}`
/** Its variables name the index itself, to which HTTPS_PROXY leads. */
const WAYS = {
  'its variables': () => [],
  'a base URL': () => {
    const { host } = new URL(world.env['MAYFLY_URL_PACKAGES_PYPI'] ?? '')
    return ['--index-url', address(host, '/team/simple').replace('https:', 'http:')]
  },
}

describe.each(Object.entries(WAYS))('pip of Debian by %s', (way, flags) => {
  const target = (name: string) => join(world.directory, `${name}-${way.replaceAll(' ', '-')}`)

  it('installs from a private index', async () => {
    const end = await install('--target', target('install'), ...flags(), 'shapes')
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(readFileSync(join(target('install'), 'shapes.py'), 'utf8')).toContain('SIDES')
    expect(seen).toContain(`GET /team/files/${WHEEL} known`)
    expect(seen.filter((line) => line.endsWith('wrong'))).toEqual([])
  })

  it('is refused another path', async () => {
    const base = flags()[1] ?? world.env['PIP_INDEX_URL'] ?? ''
    const other = base.replace('/team/', '/others/')
    const { code } = await install('--target', target('path'), '--index-url', other, 'shapes')
    expect(code).not.toBe(0)
    expect(seen).toEqual([])
    expect(world.lines.at(-1)).toMatchObject({ decision: 'refused', reason: 'path_not_allowed' })
  })

  it('is refused another index, which is told', async () => {
    const flag = ['--index-url', address('elsewhere.example', '/simple')]
    const { code } = await install('--target', target('elsewhere'), ...flag, 'shapes')
    expect(code).not.toBe(0)
    expect(new Set(world.misused)).toEqual(new Set(['packages']))
    expect(foreign).toEqual([])
  })
})

/** pip sends its login only to the host of the index. */
it('installs from an index that names its files by their whole addresses', async () => {
  const target = join(world.directory, 'absolute')
  link = `https://${HOST}/team/files/${WHEEL}`
  const end = await install('--target', target, 'shapes')
  expect([end.code, end.stderr]).toEqual([0, ''])
  expect(existsSync(join(target, 'shapes.py'))).toBe(true)
})

it('leaves no secret in what pip printed and wrote, and finds the placeholder', async () => {
  expect(await world.find(SECRET)).toEqual([])
  await world.run(['sh', '-c', 'env >environment'])
  expect(await world.find(world.env['PYPI_TOKEN'] ?? '')).not.toEqual([])
})
