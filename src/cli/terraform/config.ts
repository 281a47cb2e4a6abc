import { readFile, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { CliError, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { writePrivateFile } from '../session/private-file.ts'
import { givenOf } from '../session/session.ts'

const HELPER = 'mayfly'
const BLOCK = `credentials_helper "${HELPER}" {}\n`
/** A block that is in force: not in a comment of one line. */
const ANY_BLOCK = /^[ \t]*credentials_helper[ \t]+"([^"]*)"/m

/** `$TF_CLI_CONFIG_FILE`, or that of the home directory. */
export function terraformConfigPath({ env, cwd, home }: Context): string {
  const given = givenOf(env['TF_CLI_CONFIG_FILE'])
  return given === undefined ? join(home, '.terraformrc') : resolve(cwd, given)
}

/** Where it looks for helpers, which is not the PATH. */
export function helperPath({ home }: Pick<Context, 'home'>): string {
  return join(home, '.terraform.d', 'plugins', `terraform-credentials-${HELPER}`)
}

/** Makes terraform ask us. Throws `CliError` where it asks another helper: it knows only one. */
export async function addHelperBlock(context: Context): Promise<string> {
  const path = terraformConfigPath(context)
  const text = await read(path)
  const known = ANY_BLOCK.exec(text)?.[1]
  if (known === HELPER) return path
  if (known !== undefined)
    throw new CliError('other_helper', `terraform asks the helper ${JSON.stringify(known)} already.`, {
      hint: `It can have one alone: take the block out of ${path} first.`,
    })
  await write(path, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${BLOCK}`)
  return path
}

/** Takes the block out as it was written; one that was changed since is left. */
export async function removeHelperBlock(context: Context): Promise<void> {
  const path = terraformConfigPath(context)
  const text = await read(path)
  if (text.includes(BLOCK)) await write(path, text.replace(BLOCK, ''))
}

async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
}

async function write(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const mode = await stat(target).then(
    (facts) => facts.mode & 0o777,
    () => 0o600,
  )
  await writePrivateFile(target, text, mode)
}

/** A host in the spelling of terraform: lower case, a port where it is not 443. Undefined for what is none. */
export function terraformHost(text: string): string | undefined {
  if (!/^[^\s/?#@\\%*]+$/.test(text) || !URL.canParse(`https://${text}`)) return undefined
  return new URL(`https://${text}`).host
}

/** Throws `CliError` (usage). */
export function needTerraformHost(text: string): string {
  const host = terraformHost(text)
  if (host !== undefined) return host
  throw usage('That is no host.', 'Give it as app.terraform.io or terraform.example.com:8443.')
}
