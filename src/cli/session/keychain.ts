import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { CliError } from '../frame/failure.ts'
import { runProgram } from '../frame/run-program.ts'
import type { Surroundings } from '../frame/surroundings.ts'

/** The keychain of the operating system, through its own program. Secrets go to standard input, never to argv. */
export interface Keychain {
  readonly title: string
  save(account: string, secret: string): Promise<void>
  /** Undefined if there is none. */
  load(account: string): Promise<string | undefined>
  remove(account: string): Promise<void>
}

type Where = Pick<Surroundings, 'env' | 'platform' | 'signal'>
const SERVICE = 'mayfly'
const TIMEOUT_MS = 60_000

/** Undefined if there is no keychain, or it is switched off. */
export function findKeychain(where: Where, isWanted: boolean): Keychain | undefined {
  if (!isWanted || where.env['MAYFLY_KEYCHAIN'] === 'off') return undefined
  if (where.platform === 'darwin') {
    const program = find(where, 'security')
    return program === undefined ? undefined : macKeychain(where, program)
  }
  // The secret service needs a session bus.
  if (where.platform !== 'linux' || (where.env['DBUS_SESSION_BUS_ADDRESS'] ?? '') === '') return undefined
  const program = find(where, 'secret-tool')
  return program === undefined ? undefined : secretService(where, program)
}

function find({ env }: Where, name: string): string | undefined {
  for (const directory of (env['PATH'] ?? '').split(delimiter).filter((one) => one.startsWith('/'))) {
    const path = join(directory, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // The next one.
    }
  }
  return undefined
}

/** libsecret: GNOME Keyring, KWallet and others. */
function secretService(where: Where, program: string): Keychain {
  const title = 'the keychain (secret-tool)'
  const attributes = (account: string) => ['service', SERVICE, 'account', account]
  return {
    title,
    save: async (account, secret) => {
      const argv = ['store', `--label=Mayfly: ${account}`, ...attributes(account)]
      const ended = await askProgram(where, program, argv, secret)
      if (ended.code !== 0) throw failed(title)
    },
    load: async (account) => {
      const ended = await askProgram(where, program, ['lookup', ...attributes(account)], '')
      if (ended.code === 0 && ended.stdout !== '') return ended.stdout
      // Without such a secret it exits with 1 and prints nothing.
      if (ended.stderr === '') return undefined
      throw failed(title)
    },
    remove: async (account) => {
      const ended = await askProgram(where, program, ['clear', ...attributes(account)], '')
      if (ended.code !== 0 && ended.stderr !== '') throw failed(title)
    },
  }
}

const NOT_FOUND = 44

/** `security -i` reads commands from standard input, which keeps the secret out of the list of processes. */
function macKeychain(where: Where, program: string): Keychain {
  const title = 'the keychain (security)'
  return {
    title,
    save: async (account, secret) => {
      const hex = Buffer.from(secret, 'utf8').toString('hex')
      const command = `add-generic-password -U -a ${quoted(account)} -s ${SERVICE} -X ${hex}\n`
      const ended = await askProgram(where, program, ['-i'], command)
      if (ended.code !== 0 || ended.stderr !== '') throw failed(title)
    },
    load: async (account) => {
      const argv = ['find-generic-password', '-a', account, '-s', SERVICE, '-w']
      const ended = await askProgram(where, program, argv, '')
      if (ended.code === 0) return ended.stdout.replace(/\n$/, '')
      if (ended.code === NOT_FOUND) return undefined
      throw failed(title)
    },
    remove: async (account) => {
      const argv = ['delete-generic-password', '-a', account, '-s', SERVICE]
      const ended = await askProgram(where, program, argv, '')
      if (ended.code !== 0 && ended.code !== NOT_FOUND) throw failed(title)
    },
  }
}

const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

function failed(title: string): CliError {
  return new CliError(
    'keychain_failed',
    `${title[0]?.toUpperCase()}${title.slice(1)} is locked or does not respond.`,
    {
      hint: 'Unlock it, or keep secrets in files with --no-keychain or MAYFLY_KEYCHAIN=off.',
    },
  )
}

async function askProgram({ env, signal }: Where, program: string, argv: readonly string[], input: string) {
  const { code, output, said } = await runProgram(program, argv, { env, signal, input, timeout: TIMEOUT_MS })
  return { code, stdout: output.toString(), stderr: said }
}
