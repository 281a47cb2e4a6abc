import { chownSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { CliError } from '../../cli/frame/failure.ts'
import { type Ended, runProgram } from '../../cli/frame/run-program.ts'
import type { Context } from '../../cli/frame/verb.ts'

/** A number that no user has, so that nobody else reads the login for the registry, and what npm runs by mistake owns nothing. */
const NOBODY_ELSE = 65_530
/** Names of variables that say where registries are, and how to reach and trust them. */
const PASSED = /^(?:PATH|LANG|(?:HTTPS?|NO)_PROXY|SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS|npm_config_.*)$/i

/** What npm may do in this directory, as the user that it has. Variables outrank every `.npmrc`, and reach an npm that npm starts. */
const BOUNDS = {
  npm_config_ignore_scripts: 'true',
  npm_config_allow_git: 'none',
  npm_config_allow_remote: 'none',
  npm_config_allow_file: 'none',
  npm_config_allow_directory: 'none',
  // A path, and no program.
  npm_config_git: '/dev/null/git',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_loglevel: 'error',
}

/** A program that works in a directory, and nowhere else, for somebody who fetches a plugin. */
export interface Fetcher {
  /** Runs a program until it ends. Throws `CliError` if there is none. */
  run(program: string, argv: readonly string[]): Promise<Ended>
}

/** Gives the directory to the user that npm runs as, with the configuration that the caller has for it. */
export async function openFetcher(context: Context, folder: string, mostBytes: number): Promise<Fetcher> {
  const user = process.geteuid?.() === 0 ? { uid: NOBODY_ELSE, gid: NOBODY_ELSE } : {}
  const config = join(folder, 'npmrc')
  await writeFile(config, await userConfig(context), { mode: 0o600 })
  if (user.uid !== undefined) for (const path of [config, folder]) chownSync(path, user.uid, user.gid)
  const env = {
    ...Object.fromEntries(Object.entries(context.env).filter(([name]) => PASSED.test(name))),
    ...BOUNDS,
    HOME: folder,
    TMPDIR: folder,
    npm_config_userconfig: config,
    npm_config_cache: join(folder, 'cache'),
  }
  return {
    run: (program, argv) => {
      const { signal } = context
      return runProgram(program, argv, { cwd: folder, env, signal, mostBytes, ...user }).catch(
        (error: Error & { code?: string }) => {
          if (error.name === 'AbortError') throw error.cause
          throw error.code === 'ENOENT' || error.code === 'EACCES' ? noProgram(program, error) : error
        },
      )
    },
  }
}

/** The configuration of the caller's npm, which the user of npm may not read, with its variables put in place. */
async function userConfig({ env }: Context): Promise<string> {
  const path = env['npm_config_userconfig'] ?? join(env['HOME'] ?? homedir(), '.npmrc')
  const text = await readFile(path, 'utf8').catch(() => '')
  return text.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (whole, name: string) => env[name] ?? whole)
}

const noProgram = (program: string, cause: unknown) =>
  new CliError('no_npm', `There is no ${program} on this machine that every user may run.`, {
    hint: 'Install it, or run `npm pack` elsewhere and give the file: mayfly plugin add ./acme-1.2.3.tgz.',
    cause,
  })
