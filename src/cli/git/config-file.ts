import { randomBytes } from 'node:crypto'
import { copyFile, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { sync } from '../../files/sync.ts'
import { CliError } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { changeAlone } from '../session/file-lock.ts'
import { configPath } from '../session/paths.ts'
import { runGit } from './run-git.ts'

type Where = Pick<Surroundings, 'env' | 'cwd' | 'home' | 'signal'>
export type Scope = 'local' | 'global'

/** The file that `git config --local` or `--global` writes. Throws `CliError` outside a repository. */
export async function configFile(where: Where, scope: Scope): Promise<string> {
  if (scope === 'local') {
    const { code, stdout, stderr } = await runGit(where, ['rev-parse', '--git-path', 'config'])
    if (code === 0) return resolve(where.cwd, stdout.replace(/\n$/, ''))
    if (!stderr.includes('not a git repository')) throw refused(stderr)
    throw new CliError('no_repository', 'This directory is not in a git repository.', {
      hint: 'Change to a repository, or use --global for all repositories or --process for one process.',
    })
  }
  const named = where.env['GIT_CONFIG_GLOBAL'] ?? ''
  if (named !== '') return resolve(where.cwd, named)
  const usual = join(where.home, '.gitconfig')
  const xdg = where.env['XDG_CONFIG_HOME'] ?? ''
  const other = join(xdg.startsWith('/') ? xdg : join(where.home, '.config'), 'git', 'config')
  return (await exists(usual)) || !(await exists(other)) ? usual : other
}

/** A copy of a configuration file under change; nobody sees it until it replaces the file. */
export interface Draft {
  get(key: string): Promise<string | undefined>
  /** All matching keys with their values, in file order. */
  find(pattern: string): Promise<readonly (readonly [key: string, value: string])[]>
  /** Replaces all values of the key. */
  put(key: string, ...values: readonly string[]): Promise<void>
}

/** Changes the file atomically, under git's own lock. Other mayfly processes wait; git would not. */
export async function editConfig<T>(
  where: Where,
  file: string,
  edit: (draft: Draft) => Promise<T>,
): Promise<T> {
  const target = await realpath(file).catch(() => file)
  const lock = configPath(where, 'git-config.lock')
  return changeAlone({ file: target, lock }, where.signal, () => editLocked(where, target, edit))
}

async function editLocked<T>(where: Where, target: string, edit: (draft: Draft) => Promise<T>): Promise<T> {
  const lock = `${target}.lock`
  const draft = `${target}.${randomBytes(6).toString('hex')}`
  const held = await open(lock, 'wx').catch((cause: unknown) => {
    throw isCode(cause, 'EEXIST') ? locked(target, lock, cause) : cause
  })
  try {
    if (await exists(target)) await copyFile(target, draft)
    else await writeFile(draft, '', { mode: 0o644, flag: 'wx' })
    const result = await edit(draftOf(where, draft))
    await sync(draft)
    await rename(draft, target)
    return result
  } finally {
    await held.close()
    for (const left of [draft, `${draft}.lock`, lock]) await rm(left, { force: true })
  }
}

function draftOf(where: Where, file: string): Draft {
  const config = (...args: string[]) => runGit(where, ['config', '--file', file, ...args])
  const change = async (...args: string[]) => {
    const { code, stderr } = await config(...args)
    // 5: there was nothing to remove.
    if (code !== 0 && code !== 5) throw refused(stderr)
  }
  const find: Draft['find'] = async (pattern) => {
    const { code, stdout, stderr } = await config('-z', '--get-regexp', pattern)
    if (code > 1) throw refused(stderr)
    return parseEntries(stdout)
  }
  return {
    get: async (key) => {
      const { code, stdout, stderr } = await config('-z', '--get', key)
      if (code > 1) throw refused(stderr)
      return code === 0 ? stdout.replace(/\0$/, '') : undefined
    },
    find,
    put: async (key, ...values) => {
      await change('--unset-all', key)
      for (const value of values) await change('--add', key, value)
    },
  }
}

/** Parses the output of `git config -z`: `key\nvalue\0`. */
export function parseEntries(text: string): (readonly [string, string])[] {
  return text
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => {
      const at = entry.indexOf('\n')
      return at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)]
    })
}

function locked(target: string, lock: string, cause: unknown): CliError {
  return new CliError('git_config_locked', `Another git is changing ${target}.`, {
    hint: `Try again; if no git is running, delete ${lock}.`,
    cause,
  })
}

function refused(stderr: string): CliError {
  const line = stderr.split('\n')[0]?.replace(/^(?:fatal|error): /, '') ?? ''
  return new CliError('git_config_failed', `git failed: ${line.slice(0, 300)}`, {
    hint: 'Nothing was changed. See `git config --list --show-origin`.',
  })
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: unknown) => {
      if (isCode(error, 'ENOENT')) return false
      throw error
    },
  )
}

function isCode(error: unknown, code: string): boolean {
  return (error as { code?: unknown }).code === code
}
