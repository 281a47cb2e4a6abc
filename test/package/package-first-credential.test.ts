import { execFileSync } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestPostgres } from '../support/postgres.ts'
import { startPostgresVersion } from '../support/postgres-versions.ts'
import { type BuiltServer, startLine } from './built-server.ts'
import { type FreshRoot, makeFreshRoot } from './fresh-root.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const PAGE = 'docs/start/from-the-package.md'
const SCRIPT = here('../../scripts/package.ts')
const VERSION = '0.2.0'
const MINUTES = 60_000

let folder: string
let root: FreshRoot
let postgres: TestPostgres
let server: BuiltServer | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-first-'))
  execFileSync(process.execPath, [SCRIPT, '--version', VERSION, '--out', folder], { stdio: 'inherit' })
  root = makeFreshRoot(join(folder, 'root'))
  const archive = `mayfly_${VERSION}_amd64.deb`
  await copyFile(join(folder, archive), join(root.directory, archive))
  // Its own, because the page gives Mayfly's role the name that a person would.
  postgres = await startPostgresVersion(18)
}, 10 * MINUTES)
afterAll(async () => {
  await server?.stop()
  await postgres?.stop()
  root?.remove()
  await rm(folder, { recursive: true, force: true })
})

test(
  'eight commands lead from the package in a fresh root to a credential of PostgreSQL',
  async () => {
    const commands = [...(await readFile(here(`../../${PAGE}`), 'utf8')).matchAll(/^\$ (.+)$/gm)].map(
      ([, line = '']) => line,
    )
    expect(commands.length).toBeLessThanOrEqual(8)
    const database = await postgres.createDatabase()
    // Its own port and database; the rest is typed as it is shown.
    const own = (line: string) =>
      line
        .replaceAll('--database shop', `--database ${database.name} --port ${postgres.port}`)
        .replaceAll('-d shop', `-d ${database.name}`)
        .replaceAll('shop-db:shop:', `shop-db:${database.name}:`)
    let variables = ''
    let shown = ''
    for (const line of commands.map(own)) {
      if (line.startsWith('systemctl ')) {
        server = await startUnit()
      } else if (/^psql /.test(line)) {
        // The superuser of the database works on its server, which has psql.
        const script = join(root.directory, 'root/setup.sql')
        execFileSync('bash', ['-c', line.replace('setup.sql', script)], { env: superuser() })
      } else {
        // The fresh root has no psql: the agent shows who it would be.
        const typed = line.replace(/ -- psql .*$/, ' -- env')
        const end = await root.run([
          'bash',
          '-ec',
          `cd /root; ${variables}${typed.replace('./mayfly', '/mayfly')}
          [ -z "\${MAYFLY_TOKEN:-}" ] || echo "$MAYFLY_TOKEN" > /root/token`,
        ])
        expect(end, line).toMatchObject({ code: 0 })
        if (line.startsWith('export MAYFLY_TOKEN')) variables = 'export MAYFLY_TOKEN=$(cat /root/token); '
        shown = end.stdout
      }
    }
    expect(shown).toMatch(/^PGUSER=mf_[0-9a-z]{26}$/m)
    expect(shown).toMatch(new RegExp(`^PGDATABASE=${database.name}$`, 'm'))
    expect(await rolesLeft()).toEqual([])
  },
  10 * MINUTES,
)

const superuser = () => ({
  PATH: process.env['PATH'],
  PGHOST: postgres.host,
  PGPORT: String(postgres.port),
  PGUSER: postgres.username,
  ...(postgres.password === undefined ? {} : { PGPASSWORD: postgres.password }),
})

async function rolesLeft(): Promise<unknown[]> {
  const client = new pg.Client(postgres.url)
  await client.connect()
  const { rows } = await client.query("SELECT rolname FROM pg_roles WHERE rolname ~ '^mf_'")
  await client.end()
  return rows
}

/** What the unit says, because no systemd runs in the root. */
async function startUnit(): Promise<BuiltServer> {
  const unit = await readFile(join(root.directory, 'usr/lib/systemd/system/mayfly.service'), 'utf8')
  const line = /^ExecStart=(.*)$/m.exec(unit)?.[1] ?? ''
  const user = /^User=(.*)$/m.exec(unit)?.[1] ?? ''
  return startLine(root.words(line.split(' '), user), { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' })
}
