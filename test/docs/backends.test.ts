import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kinds } from '../../src/backends/index.ts'
import { readKindVariables } from '../../src/cli/project-file/kind-variables.ts'
import { runCli, startWorld, type World } from '../cli/support.ts'
import { startMariadb } from '../support/mariadb-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { installMayfly, runGuide } from './run-guide.ts'
import { startShop } from './shop.ts'

const FOLDER = fileURLToPath(new URL('../../docs/backends/', import.meta.url))
const HEADINGS = [
  'Set up',
  'Scopes',
  'Lifetimes and what ending does',
  'Environment variables',
  'At scale',
  'Troubleshooting',
]

const isDocumented = (type: string) => existsSync(`${FOLDER}${type}.md`)
const read = (type: string) => readFileSync(`${FOLDER}${type}.md`, 'utf8')
/** Without code blocks, where a hash means something else. */
const prose = (text: string) => text.replace(/^( *)(`{3,})[\s\S]*?^\1\2\s*$/gm, '')
const headings = (text: string, level: string) =>
  [...prose(text).matchAll(new RegExp(`^${level} (.+)$`, 'gm'))].map(([, title]) => title)
const sectionOf = (text: string, title: string) =>
  text.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? ''

/** Whole, or for a kind with many of them by its parts: `repository` where there is `<area>:read`. */
function isNamed(section: string, form: string): boolean {
  const [name, right, ...rest] = form.split(':')
  const byParts = section.includes(`\`${name}\``) && section.includes(`>:${right}\``)
  return section.includes(`\`${form}\``) || (rest.length === 0 && byParts)
}

test('each kind has a page, and each page a kind', () => {
  const pages = readdirSync(FOLDER).map((name) => name.replace(/\.md$/, ''))
  expect(pages.sort()).toEqual(kinds.map(({ type }) => type).sort())
})

describe.each(kinds.filter(({ type }) => isDocumented(type)))('the page of $type', (kind) => {
  const text = read(kind.type)

  test('has exactly the headings of every such page', () => {
    expect([headings(text, '#').length, headings(text, '##')]).toEqual([1, HEADINGS])
  })

  test('shows how to add a backend', () => {
    expect(sectionOf(text, 'Set up')).toContain(`mayfly backend add ${kind.type} `)
  })

  test('names each form of a scope', () => {
    const section = sectionOf(text, 'Scopes')
    expect(kind.scopes.forms.filter(({ form }) => !isNamed(section, form))).toEqual([])
  })

  test('names each variable, and the command sets them all', () => {
    const section = sectionOf(text, 'Environment variables')
    const names = Object.keys(kind.environment ?? {})
    expect(names.filter((name) => !section.includes(`\`${name}\``))).toEqual([])
    expect(readKindVariables(kind.environment).unknown).toEqual([])
  })
})

describe('the commands of a page work:', () => {
  let world: World
  let home: string
  let env: Record<string, string>
  beforeAll(async () => {
    world = await startWorld({ jobs: true })
    home = await mkdtemp(join(tmpdir(), 'mayfly-pages-'))
    const bin = join(home, 'bin')
    await installMayfly(bin)
    env = {
      ...world.bareEnv,
      PATH: `${bin}:${world.bareEnv['PATH']}`,
      MAYFLY_SERVER: world.url,
      MAYFLY_DATA_DIR: world.app.directory,
    }
    const agent = await world.app.newAgent({ scopes: ['shop:*', 'orders:*', 'cache'] })
    const login = await runCli(['login', '--token-file', '-'], { env, stdin: agent.token })
    expect(login).toMatchObject({ code: 0 })
  })
  afterAll(async () => {
    await world.close()
    await rm(home, { recursive: true, force: true })
  })

  test('postgres', async () => {
    const shop = await startShop()
    try {
      const results = await runGuide('docs/backends/postgres.md', {
        env: { ...env, ...shop.env },
        cwd: home,
        replace: [['--host db.example.com', `--host 127.0.0.1 --port ${shop.port} --local`]],
      })
      expect(results.at(-1)?.output).toContain('lamp')
      await world.app.admin('DELETE', '/v1/admin/backends/shop?force=true')
    } finally {
      await shop.stop()
    }
  })

  test('mysql', async () => {
    const server = await startMariadb()
    const client = join(home, 'client')
    try {
      await server.sql('CREATE DATABASE shop')
      await server.sql("CREATE TABLE shop.items AS SELECT 'lamp' AS name")
      // The administrator's own client, and Mayfly's command beside it.
      await writeFile(client, `[client]\nhost=127.0.0.1\nport=${server.port}\nuser=root\n`)
      const results = await runGuide('docs/backends/mysql.md', {
        env,
        cwd: home,
        replace: [
          ['mariadb <<', `mariadb --defaults-file=${client} <<`],
          ['--host db.example.com', `--host 127.0.0.1 --port ${server.port} --local`],
        ],
      })
      expect(results.at(-1)?.output).toContain('lamp')
      await world.app.admin('DELETE', '/v1/admin/backends/shop?force=true')
    } finally {
      await server.stop()
    }
  })

  test('redis', async () => {
    const server = await startRedis([])
    try {
      await server.call('SET', 'shop:1', 'lamp')
      const results = await runGuide('docs/backends/redis.md', {
        env,
        cwd: home,
        replace: [
          ['redis-cli ACL', `redis-cli -p ${server.port} --user root --pass root-password ACL`],
          ['--host cache.example.com', `--host 127.0.0.1 --port ${server.port} --local`],
        ],
      })
      expect(results.at(-1)?.output).toContain('lamp')
    } finally {
      await server.stop()
    }
  })

  test('jwt', async () => {
    const seen: string[] = []
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization ?? '')
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await runGuide('docs/backends/jwt.md', {
      env,
      cwd: home,
      replace: [['https://orders.example.com', address]],
    })
    expect(seen).toEqual([expect.stringMatching(/^Bearer ey/)])
    await new Promise((resolve) => server.close(resolve))
  })
})
