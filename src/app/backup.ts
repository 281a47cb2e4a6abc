import { createWriteStream } from 'node:fs'
import { access, constants, type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/config.ts'
import { loadMasterKeyText } from '../config/master-key.ts'
import { sync } from '../files/sync.ts'
import { createSealer, parseMasterKeys, type Sealer } from '../keys/seal.ts'
import { StoreRefused } from '../store/errors.ts'
import { moveToPostgres } from '../store/move.ts'
import {
  type CopyFacts,
  checkCopy,
  copyStore,
  endLogins,
  openForCopy,
  requireOwnSchema,
} from '../store/sqlite/copy.ts'
import { lockDirectory } from '../store/sqlite/file.ts'
import { backupDraft, removeDrafts, restoreDraft } from './drafts.ts'
import { withRightsOf } from './rights.ts'

/** Says what is being done, for people who wait. */
type Tell = (what: string) => void

export interface Done extends Pick<CopyFacts, 'agents'> {
  readonly bytes: number
}

/**
 * Writes a copy of a SQLite store to a new file that only this user can read. The server may be running. The file
 * appears under its name when it is whole, checked and on disk. Throws `StoreRefused`.
 */
export async function backUp(config: Config, file: string, tell: Tell): Promise<Done> {
  if (config.databaseUrl !== undefined)
    throw new StoreRefused(
      `the store is in PostgreSQL, which backs itself up. Run: pg_dump --format=custom --file=${file} "$DATABASE_URL"`,
    )
  const source = join(config.dataDir, 'mayfly.db')
  await requireStore(source)
  if (await isThere(file)) throw new StoreRefused(`${file} exists already. Choose another name`)
  await removeDrafts(dirname(file)).catch(() => undefined)
  const draft = backupDraft(file)
  await (await open(draft, 'wx', 0o600)).close()
  try {
    const db = await withRightsOf(config.dataDir, async () => openForCopy(source))
    await copyStore(db, draft, (share) => tell(`Copying: ${Math.floor(share * 100)} %`))
    tell('Checking the copy')
    const { agents } = checkCopy(draft, 'the copy')
    const { size } = await sync(draft)
    await rename(draft, file)
    await sync(dirname(file))
    return { agents, bytes: size }
  } finally {
    for (const path of [draft, `${draft}-journal`]) await rm(path, { force: true })
  }
}

/**
 * Puts a backup into an empty data directory, or into the empty database of `database_url`. Throws `StoreRefused` or
 * `ConfigError`, and then has changed nothing.
 */
export async function restore(config: Config, file: string, tell: Tell): Promise<Done> {
  const { dataDir } = config
  const sealer = createSealer(parseMasterKeys(await loadMasterKeyText(config, { createIfMissing: false })))
  await requireWhole(file)
  const backup = await open(file, 'r')
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    return await withRightsOf(dataDir, () => place(config, sealer, { file, backup }, tell))
  } finally {
    await backup.close()
  }
}

async function place(
  { dataDir, databaseUrl }: Config,
  sealer: Sealer,
  { file, backup }: { readonly file: string; readonly backup: FileHandle },
  tell: Tell,
): Promise<Done> {
  const unlock = databaseUrl === undefined ? lockDirectory(dataDir) : () => undefined
  const draft = restoreDraft(dataDir)
  try {
    await removeDrafts(dataDir)
    if (databaseUrl === undefined) await requireEmpty(dataDir)
    tell('Copying')
    const target = createWriteStream(draft, { flags: 'wx', mode: 0o600 })
    await pipeline(backup.createReadStream({ autoClose: false }), target)
    tell('Checking the copy')
    const { agents, keyCheck, hashKey } = checkCopy(draft, file)
    requireOwnSchema(draft, file)
    if (!sealer.matchesCheck(keyCheck) || !opens(sealer, hashKey))
      throw new StoreRefused(
        `${file} was sealed with another master key than the one given. Name the right key with --master-key-file`,
      )
    endLogins(draft)
    const { size } = await sync(draft)
    if (databaseUrl === undefined) {
      await rename(draft, join(dataDir, 'mayfly.db'))
      await sync(dataDir)
    } else {
      tell('Writing to PostgreSQL')
      await moveToPostgres(draft, databaseUrl.reveal())
    }
    return { agents, bytes: size }
  } finally {
    for (const end of ['', '-journal', '-wal', '-shm']) await rm(`${draft}${end}`, { force: true })
    unlock()
  }
}

/** A key file that has only older keys matches the check by these, and opens nothing that was sealed since. */
function opens(sealer: Sealer, hashKey: string): boolean {
  try {
    sealer.open('meta', 'hash_key', 'value', hashKey)
    return true
  } catch {
    return false
  }
}

async function requireStore(source: string): Promise<void> {
  if (await isThere(source)) return access(source, constants.R_OK)
  throw new StoreRefused(
    `there is no store: ${source} does not exist. Name the data directory with --data-dir, or the configuration of the server with --config`,
  )
}

/** `cp` of a running store leaves its newest changes in a file beside it. */
async function requireWhole(file: string): Promise<void> {
  const { size } = await stat(`${file}-wal`).catch(() => ({ size: 0 }))
  if (size > 0)
    throw new StoreRefused(
      `${file}-wal lies beside the file, so it is a store or a plain copy of one. Make a backup of it: mayfly backup FILE --data-dir ${dirname(file)}`,
    )
}

/** What a server without data has, and what a file system of its own has. */
const MAY_STAY = new Set(['master.key', 'mayfly.lock', 'ballast', 'admin.sock', 'lost+found'])

async function requireEmpty(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => !MAY_STAY.has(name))
  if (names.length === 0) return
  const data = `${directory}/mayfly.db`
  const how = names.some((name) => name.startsWith('mayfly.db'))
    ? `To put its store aside, run: mkdir -m 700 ${directory}.old && mv ${data}* ${directory}.old/`
    : 'Choose another directory'
  throw new StoreRefused(`${directory} is not empty: it holds ${names.slice(0, 3).join(', ')}. ${how}`)
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    (error: { code?: string }) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
