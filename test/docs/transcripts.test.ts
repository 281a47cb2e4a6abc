import { readdirSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach, test } from 'vitest'
import { freePort } from '../support/app.ts'
import { type OwnPostgres, startOwnPostgres } from '../support/postgres.ts'
import { installMayfly } from './run-guide.ts'
import { type Pane, startTerminal, type Terminal } from './terminal.ts'
import { replay } from './transcript.ts'

const DIRECTORY = fileURLToPath(new URL('../../docs/transcripts/', import.meta.url))

let home: string
let database: OwnPostgres
let terminal: Terminal
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-steps-'))
  await installMayfly(join(home, 'bin'))
  database = await startOwnPostgres()
  await sql('postgres', 'CREATE DATABASE shop')
  await sql(
    'shop',
    `CREATE TABLE items (id int, name text); INSERT INTO items VALUES (1, 'lamp');
     CREATE ROLE mayfly LOGIN CREATEROLE PASSWORD 'change-me';
     GRANT USAGE ON SCHEMA public TO mayfly WITH GRANT OPTION;
     GRANT SELECT ON ALL TABLES IN SCHEMA public TO mayfly WITH GRANT OPTION;`,
  )
  terminal = await startTerminal()
})
afterEach(async () => {
  await terminal.close()
  await database.stop()
  await rm(home, { recursive: true, force: true })
})

async function sql(name: string, text: string): Promise<void> {
  const { host, port, username: user, password } = database
  const client = new pg.Client({ host, port, user, password, database: name })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

/** Each person has a home, and a pane. */
async function openPanes(names: readonly string[]): Promise<Map<string, Pane>> {
  const panes = new Map<string, Pane>()
  for (const name of names) {
    const own = join(home, name)
    await mkdir(own)
    const env = {
      HOME: own,
      PATH: `${join(home, 'bin')}:${process.env['PATH']}`,
      LANG: 'C.UTF-8',
      PAGER: 'cat',
      MAYFLY_KEYCHAIN: 'off',
    }
    panes.set(name, await terminal.open(env, own))
  }
  return panes
}

test.each(readdirSync(DIRECTORY))(
  '%s is what is shown when it is typed',
  { timeout: 240_000 },
  async (name) => {
    const path = join(DIRECTORY, name)
    const panes = await openPanes(['server', 'administrator', 'agent'])
    const pane = (wanted: string) => {
      const found = panes.get(wanted)
      if (found === undefined) throw new Error(`no pane ${wanted}`)
      return found
    }
    const [port, unused] = [await freePort(), await freePort()]
    const replace = [
      ['8700', String(port)],
      ['8701', String(unused)],
      ['5432', String(database.port)],
      ['/home/', `${home}/`],
    ] as const
    await replay(path, { pane, replace, directory: home }, process.env['UPDATE_TRANSCRIPTS'] === '1')
  },
)
