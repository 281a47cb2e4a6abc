import { join, resolve } from 'node:path'
import { CliError, usage } from '../frame/failure.ts'
import { readStdin } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { ownCommand } from '../git/wrapper.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { removeFile } from '../session/private-file.ts'
import { givenOf } from '../session/session.ts'
import { endHeld, heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { atHost, readHosts } from '../tools/host-map.ts'
import { singleSecret } from '../tools/parts.ts'
import {
  readToolConfig,
  refuseForeign,
  scriptFor,
  writeProgram,
  writeToolConfig,
} from '../tools/program-file.ts'
import { requestOf } from '../tools/request.ts'
import { configureHost, HOST_OPTIONS, type HostHelper, needOperation } from './host-helper.ts'

const OPERATIONS = ['get', 'store', 'forget'] as const

const TERRAFORM: HostHelper = {
  tool: 'terraform',
  noun: ['host', 'hosts'],
  needHost: needTerraformHost,
  check: (context) => refuseForeign(helperPath(context)),
  enable: async (context) => {
    const helper = helperPath(context)
    const call = [...ownCommand(context), 'terraform-credentials']
    await writeProgram(helper, scriptFor('"mayfly helper terraform --write"', call))
    // The block comes last: until then nothing changes for terraform.
    return { helper, config: await addHelperBlock(context) }
  },
  disable: async (context, _host, isLast) => {
    const helper = helperPath(context)
    if (isLast) await removeHelperBlock(context)
    if (isLast && (await refuseForeign(helper))) await removeFile(helper)
    return terraformConfigPath(context)
  },
}

const { username: _, ...OPTIONS } = HOST_OPTIONS

/** developer.hashicorp.com/terraform/internals/credentials-helpers */
export const verb = defineVerb({
  description:
    'The credentials helper of Terraform and OpenTofu, which run it as terraform-credentials-mayfly. With --write, they get their token for a host from a backend: that writes the helper to ~/.terraform.d/plugins, where they look for it, and a credentials_helper block to the configuration ($TF_CLI_CONFIG_FILE or ~/.terraformrc). "get" answers from a cache when possible, "forget" revokes the credential, "store" is refused.',
  arguments: [
    { name: '[operation]', description: 'get, store or forget; terraform adds it', choices: OPERATIONS },
    { name: '[host]', description: 'the host that terraform calls' },
  ],
  options: OPTIONS,
  examples: {
    'mayfly helper terraform --write --host app.terraform.io --backend terraform':
      'terraform init and plan work without a login',
    'mayfly helper terraform --remove --host app.terraform.io': 'terraform works as before',
    'mayfly helper terraform get app.terraform.io': 'what terraform runs',
  },
  json: '{token}, or {} for an unknown host, with or without --json; with --write {host, backend, helper: path of the program, config: path of the configuration}, with --list [{host, backend, server}]',
  exits: [3, 4, 5],
  run: async (context, options, operation, host): Promise<void> => {
    if (await configureHost(context, TERRAFORM, options)) return
    await runOperation(context, needOperation(operation), needOperation(host, 'host'))
  },
})

async function runOperation(context: Context, operation: string, host: string): Promise<void> {
  const entry = (await readHosts(context, 'terraform')).get(terraformHost(host) ?? '')
  if (operation === 'store') {
    // A helper reads all of its input even if it refuses.
    await readStdin(context)
    throw new CliError('not_stored', 'Mayfly issues tokens and does not store them.', {
      hint: 'After `mayfly helper terraform --write` there is no need for `terraform login`.',
    })
  }
  if (entry === undefined) {
    // Neither asking for an unknown host nor forgetting it is a failure.
    if (operation === 'get') await context.out.result('{}')
    return
  }
  await atHost(context, entry, verb, async (ours) => {
    const session = await openAgentSession(ours)
    if (operation === 'forget') return endHeld(ours, session, requestOf(entry))
    const toToken = (credential: HeldCredential) => singleSecret(credential, 'terraform')
    const token = await heldAnswer(ours, session, requestOf(entry), RENEW_BEFORE_MS.command, toToken)
    await context.out.json({ token }, 'line')
  })
}

const HELPER = 'mayfly'
const BLOCK = `credentials_helper "${HELPER}" {}\n`
/** A block in force, not one in a comment. */
const ANY_BLOCK = /^[ \t]*credentials_helper[ \t]+"([^"]*)"/m

/** `$TF_CLI_CONFIG_FILE`, or the one in the home directory. */
function terraformConfigPath({ env, cwd, home }: Context): string {
  const given = givenOf(env['TF_CLI_CONFIG_FILE'])
  return given === undefined ? join(home, '.terraformrc') : resolve(cwd, given)
}

/** Terraform looks for helpers here, not in the PATH. */
function helperPath({ home }: Pick<Context, 'home'>): string {
  return join(home, '.terraform.d', 'plugins', `terraform-credentials-${HELPER}`)
}

/** Makes terraform ask us. Throws `CliError` if it asks another helper: it supports only one. */
async function addHelperBlock(context: Context): Promise<string> {
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
async function removeHelperBlock(context: Context): Promise<void> {
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
function needTerraformHost(text: string): string {
  const host = terraformHost(text)
  if (host !== undefined) return host
  throw usage('The host is not valid.', 'Example: app.terraform.io or terraform.example.com:8443.')
}
