import { join, resolve } from 'node:path'
import { CliError, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { givenOf } from '../session/session.ts'
import { readToolConfig, writeToolConfig } from '../tools/tool-config.ts'

const HELPER = 'mayfly'
const BLOCK = `credentials_helper "${HELPER}" {}\n`
/** A block in force, not one in a comment. */
const ANY_BLOCK = /^[ \t]*credentials_helper[ \t]+"([^"]*)"/m

/** `$TF_CLI_CONFIG_FILE`, or the one in the home directory. */
export function terraformConfigPath({ env, cwd, home }: Context): string {
  const given = givenOf(env['TF_CLI_CONFIG_FILE'])
  return given === undefined ? join(home, '.terraformrc') : resolve(cwd, given)
}

/** Terraform looks for helpers here, not in the PATH. */
export function helperPath({ home }: Pick<Context, 'home'>): string {
  return join(home, '.terraform.d', 'plugins', `terraform-credentials-${HELPER}`)
}

/** Makes terraform ask us. Throws `CliError` if it asks another helper: it supports only one. */
export async function addHelperBlock(context: Context): Promise<string> {
  const path = terraformConfigPath(context)
  const text = await read(path)
  const known = ANY_BLOCK.exec(text)?.[1]
  if (known === HELPER) return path
  if (known !== undefined)
    throw new CliError('other_helper', `terraform already uses the helper ${JSON.stringify(known)}.`, {
      hint: `It supports only one: first remove the block from ${path}.`,
    })
  await writeToolConfig(path, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${BLOCK}`)
  return path
}

/** Removes the block we wrote, unless it has been changed since. */
export async function removeHelperBlock(context: Context): Promise<void> {
  const path = terraformConfigPath(context)
  const text = await read(path)
  if (text.includes(BLOCK)) await writeToolConfig(path, text.replace(BLOCK, ''))
}

async function read(path: string): Promise<string> {
  return (await readToolConfig(path)) ?? ''
}

/** A host as terraform spells it: lower case, with a port other than 443. Undefined if it is not a host. */
export function terraformHost(text: string): string | undefined {
  if (!/^[^\s/?#@\\%*]+$/.test(text) || !URL.canParse(`https://${text}`)) return undefined
  return new URL(`https://${text}`).host
}

/** Throws `CliError` (usage). */
export function needTerraformHost(text: string): string {
  const host = terraformHost(text)
  if (host !== undefined) return host
  throw usage('The host is not valid.', 'Example: app.terraform.io or terraform.example.com:8443.')
}
