import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { link, mkdir, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError, InvalidValue, quote } from '../domain/fault.ts'
import { shellWord } from '../domain/formats/shell-word.ts'
import { decodeSecret, fileFault, ownName, readFix } from '../files/read-secret.ts'
import { sync } from '../files/sync.ts'
import type { Config } from './config.ts'

export interface MasterKeyOptions {
  /** Only before anything is sealed: a new key cannot open values that an old one sealed. */
  readonly createIfMissing: boolean
  /** Receives the path of a newly created key, for the operator's log. */
  readonly onCreated?: (file: string) => void
  /** Time limit of the command in ms; 10 s if absent. */
  readonly commandTimeoutMs?: number
}

const COMMAND_TIMEOUT_MS = 10_000
const MAX_KEY_BYTES = 65_536

/** The text of the master key, for `keys/seal.ts` to parse. Throws `ConfigError`; never shows the text. */
export async function loadMasterKeyText(
  config: Pick<Config, 'masterKey'>,
  options: MasterKeyOptions,
): Promise<string> {
  const { masterKey } = config
  switch (masterKey.from) {
    case 'file':
      return await fromFile(masterKey.file, options)
    case 'environment':
      return masterKey.text.reveal()
    case 'command':
      return await fromCommand(masterKey.argv, options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS)
    default: {
      const never: never = masterKey
      return never
    }
  }
}

function refuse(source: string, message: string): ConfigError {
  return new ConfigError([{ source, message }])
}

async function fromFile(file: string, options: MasterKeyOptions): Promise<string> {
  const found = await readKeyFile(file)
  if (found !== undefined) return found
  if (!options.createIfMissing) {
    throw refuse(
      file,
      'the master key is missing; the stored data cannot be decrypted without it. Restore the file from its backup, or name it with --master-key-file',
    )
  }
  const created = await createKeyFile(file)
  if (created) options.onCreated?.(file)
  const text = await readKeyFile(file)
  if (text === undefined) throw refuse(file, 'the master key disappeared while it was being created')
  return text
}

/** `undefined` if there is no such file. Mode and content come from the same open file. */
async function readKeyFile(file: string): Promise<string | undefined> {
  const handle = await open(file, 'r').catch(async (error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw refuse(file, `the master key file ${fileFault(error)}${await readFix(file, error)}`)
  })
  if (handle === undefined) return undefined
  try {
    const { mode, size } = await handle.stat()
    if ((mode & 0o077) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, '0')
      throw refuse(
        file,
        `other users can read the master key (mode ${shown}). Run: chmod 400 ${shellWord(file)}`,
      )
    }
    if (size > MAX_KEY_BYTES) throw refuse(file, 'the master key file is too large')
    return decodeSecret(await handle.readFile(), 'the master key file')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw refuse(
      file,
      error instanceof InvalidValue ? error.message : `the master key file ${fileFault(error)}`,
    )
  } finally {
    await handle.close()
  }
}

/**
 * Creates a key that is complete and on disk before its name appears: writes a draft, syncs it, then links it, which
 * fails if another process was first. Returns whether this process created the key.
 */
async function createKeyFile(file: string): Promise<boolean> {
  const folder = dirname(file)
  const draft = `${file}.${randomBytes(6).toString('hex')}.new`
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const handle = await open(draft, 'wx', 0o400)
    try {
      await handle.writeFile(`1:${randomBytes(32).toString('hex')}\n`)
      await handle.sync()
    } finally {
      await handle.close()
    }
    const created = await linkNew(draft, file)
    await sync(folder)
    return created
  } catch (error) {
    const { code } = error as { code?: unknown }
    const why =
      code === 'EACCES' || code === 'EPERM'
        ? `this user may not write to ${folder}. Run: printf '1:%s\\n' "$(openssl rand -hex 32)" | sudo install -m 400 -o ${ownName()} /dev/stdin ${shellWord(file)}`
        : `the path ${fileFault(error)}`
    throw refuse(file, `the master key cannot be created here: ${why}`)
  } finally {
    await unlink(draft).catch(() => undefined)
  }
}

async function linkNew(draft: string, file: string): Promise<boolean> {
  try {
    await link(draft, file)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** Runs without a shell and without the server's own variables. No message contains its output. */
async function fromCommand(argv: readonly string[], timeoutMs: number): Promise<string> {
  const [program = '', ...words] = argv
  const source = `master_key_command ${quote(program)}`
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MAYFLY_')))
  const output = await new Promise<Buffer>((resolve, reject) => {
    execFile(
      program,
      words,
      { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: MAX_KEY_BYTES, env, encoding: 'buffer' },
      (error, stdout) => {
        if (error === null) resolve(stdout)
        else reject(refuse(source, commandFault(error, timeoutMs)))
      },
    ).stdin?.end()
  })
  try {
    return decodeSecret(output, 'its output')
  } catch (error) {
    throw error instanceof InvalidValue ? refuse(source, error.message) : error
  }
}

function commandFault(error: Error, timeoutMs: number): string {
  const { code, killed } = error as { code?: unknown; killed?: boolean }
  if (code === 'ENOENT') return 'the program does not exist'
  if (code === 'EACCES') return 'this user may not run the program'
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `printed more than ${MAX_KEY_BYTES} bytes`
  if (killed === true) return `did not finish within ${timeoutMs} ms`
  return typeof code === 'number' ? `failed with exit code ${code}` : 'was killed by a signal'
}
