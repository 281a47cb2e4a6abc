import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { BEARER, type ClientWorld, type Handler, rules, startClientWorld } from '../support/client-world.ts'

const SECRET = 'npm_0123456789abcdefghijABCDEFGHIJ012345'
const HOST = 'npm.acme.example'

let world: ClientWorld
let tarball: Buffer
const seen: string[] = []
const foreign: string[] = []
const published: { readonly name: string; readonly text: string }[] = []

/** What npm asks of a registry: the document of a package, its tarball, and where to publish. The tarball has an absolute address. */
const registry: Handler = (request, response) => {
  const { method, url = '', headers } = request
  const isKnown = headers.authorization === `Bearer ${SECRET}`
  seen.push(`${method} ${url} ${isKnown ? 'known' : (headers.authorization ?? 'none')}`)
  const send = (status: number, body: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  if (!isKnown) return void send(401, { error: 'who are you?' })
  if (method === 'PUT') {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    request.on('end', () => {
      published.push({ name: url, text })
      send(201, { ok: true })
    })
  } else if (url.endsWith('.tgz')) response.end(tarball)
  else if (url === '/team/@acme%2fshapes') send(200, documentOf())
  else send(404, { error: 'not found' })
}

function documentOf() {
  const dist = {
    tarball: `https://${HOST}/team/@acme/shapes/-/shapes-1.2.3.tgz`,
    integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}`,
  }
  const version = { name: '@acme/shapes', version: '1.2.3', dist }
  return { name: '@acme/shapes', 'dist-tags': { latest: '1.2.3' }, versions: { '1.2.3': version } }
}

beforeAll(async () => {
  world = await startClientWorld(
    [
      {
        ...{ name: 'packages', type: 'acme', token: SECRET },
        uses: [
          {
            ...{ name: 'npm', origin: `https://${HOST}`, places: BEARER, deny: [] },
            allow: rules('GET,PUT /team/** slashes'),
          },
        ],
        env: ({ token }) => ({ NPM_TOKEN: token, npm_config_update_notifier: 'false' }),
      },
    ],
    {
      [HOST]: registry,
      'elsewhere.example': (request, response) => {
        foreign.push(String(request.headers.authorization))
        response.writeHead(404).end('{}')
      },
    },
  )
  tarball = await pack('@acme/shapes', '1.2.3')
})
afterAll(() => world?.close())
beforeEach(() => {
  for (const list of [seen, foreign, published, world.misused]) list.length = 0
})

async function pack(name: string, version: string): Promise<Buffer> {
  const source = join(world.directory, 'source')
  await mkdir(source, { recursive: true })
  await writeFile(join(source, 'package.json'), JSON.stringify({ name, version, main: 'index.js' }))
  await writeFile(join(source, 'index.js'), `module.exports = 'square'\n`)
  const { code, stdout, stderr } = await world.run(['npm', 'pack', '--silent', './source'])
  if (code !== 0) throw new Error(stderr)
  return readFile(join(world.directory, stdout.trim()))
}

/** A project of its own, with the configuration that a user of the private registry has. */
async function project(name: string, registryUrl?: string): Promise<string> {
  const directory = join(world.directory, name)
  await mkdir(directory)
  await writeFile(join(directory, 'package.json'), JSON.stringify({ name, version: '1.0.0' }))
  if (registryUrl !== undefined) {
    const place = registryUrl.replace(/^https:/, '')
    await writeFile(
      join(directory, '.npmrc'),
      `@acme:registry=${registryUrl}\n${place}:_authToken=\${NPM_TOKEN}\n`,
    )
  }
  return directory
}

const WAYS = {
  'a base URL': { call: (...args: string[]) => world.run(['npm', ...args]), registryUrl: undefined },
  HTTPS_PROXY: {
    call: (...args: string[]) => world.runForward(['npm', ...args]),
    registryUrl: `https://${HOST}/team/`,
  },
}
const QUIET = ['--no-audit', '--no-fund', '--fetch-retries=0']
/** Otherwise the second installation takes all from the cache of the first. */
const cacheOf = (directory: string) => ['--cache', join(directory, 'cache')]

describe.each(Object.entries(WAYS))('npm by %s', (way, { call, registryUrl }) => {
  it('installs a private package of a scope', async () => {
    const directory = await project(`install-${way.replaceAll(' ', '-')}`, registryUrl)
    const end = await call(
      ...['install', '--prefix', directory, ...QUIET, ...cacheOf(directory), '@acme/shapes'],
    )
    expect([end.code, end.stderr]).toEqual([0, ''])
    const installed = join(directory, 'node_modules/@acme/shapes/index.js')
    expect(await readFile(installed, 'utf8')).toContain('square')
    expect(seen).toEqual([
      'GET /team/@acme%2fshapes known',
      'GET /team/@acme/shapes/-/shapes-1.2.3.tgz known',
    ])
  })

  it('publishes', async () => {
    const directory = await project(`publish-${way.replaceAll(' ', '-')}`, registryUrl)
    const named = { name: '@acme/new', version: '0.1.0' }
    await writeFile(join(directory, 'package.json'), JSON.stringify(named))
    const end = await call('publish', '--prefix', directory, ...QUIET, directory)
    expect([end.code, end.stderr]).toEqual([0, expect.any(String)])
    expect(published.map(({ name }) => name)).toEqual(['/team/@acme%2fnew'])
    expect(published[0]?.text).toContain('"version":"0.1.0"')
  })

  it('is refused another path and another method', async () => {
    const directory = await project(`refused-${way.replaceAll(' ', '-')}`, registryUrl)
    const base = registryUrl ?? world.env['npm_config_registry'] ?? ''
    const outside = base.replace('/team/', '/others/')
    const login = `--${outside.replace(/^https?:/, '')}:_authToken=${world.env['NPM_TOKEN']}`
    const flags = ['--prefix', directory, ...QUIET, `--@acme:registry=${outside}`, login]
    const install = await call('install', ...flags, '@acme/shapes')
    expect(install.code).not.toBe(0)
    expect(install.stderr).toContain('403')
    const unpublish = await call('unpublish', '--prefix', directory, '--force', ...QUIET, '@acme/shapes')
    expect(unpublish.code).not.toBe(0)
    expect(seen.filter((line) => !line.startsWith('GET /team/'))).toEqual([])
  })

  it('is refused another registry, which is told', async () => {
    const directory = await project(`elsewhere-${way.replaceAll(' ', '-')}`)
    const flags = [
      '--@acme:registry=https://elsewhere.example/',
      `--//elsewhere.example/:_authToken=${world.env['NPM_TOKEN']}`,
    ]
    const { code, stderr } = await call('install', '--prefix', directory, ...QUIET, ...flags, '@acme/shapes')
    expect(code).not.toBe(0)
    expect(stderr).toContain('403')
    expect(world.misused).toEqual(['packages'])
    expect(foreign).toEqual([])
  })
})

it('leaves no secret in what npm printed and wrote, its logs and cache included, and finds the placeholder', async () => {
  expect(await world.find(SECRET)).toEqual([])
  expect(await world.find(world.env['NPM_TOKEN'] ?? '')).toContain(world.env['npm_config_globalconfig'])
})
