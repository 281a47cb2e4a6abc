import { chown, readFile, realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CliError, EXIT, usage } from '../../cli/frame/failure.ts'
import { many, text, type ValuesOf } from '../../cli/frame/options.ts'
import { type Context, defineVerb } from '../../cli/frame/verb.ts'
import { writePrivateFile } from '../../cli/session/private-file.ts'
import { givenOf } from '../../cli/session/session.ts'
import type { ReadFiles } from '../../config/config-files.ts'
import { ConfigError, InvalidValue } from '../../domain/fault.ts'
import { isObject } from '../../domain/formats/json.ts'
import { appendToList } from '../../files/append-to-list.ts'
import { fileFault } from '../../files/read-secret.ts'
import { filesFrom, SYSTEM_CONFIG } from '../init/installation.ts'
import { readNumbers } from './github-numbers.ts'
import { PRESETS } from './presets/index.ts'
import type { Given, GivenKey, Preset } from './presets/preset.ts'
import { type WrittenEntry, writeEntry } from './write-entry.ts'

/** By the keys of `Given`. */
const OF_PRESETS = {
  issuer: text('<url>', 'issuer of the tokens, where it is not the usual one'),
  repository: text('<owner/name>', 'github, forgejo: the repository; github asks its API for the numbers'),
  repositoryId: text('<number>', 'github, forgejo: number of the repository'),
  ownerId: text('<number>', 'github, forgejo: number of its owner'),
  event: many(
    '<event>',
    'github, forgejo: take jobs of this event, and of no other that is not named; may be repeated',
  ),
  projectId: text('<id>', 'gitlab, circleci: id of the project'),
  namespaceId: text('<number>', 'gitlab: number of the group or user that the project is in'),
  organizationId: text('<id>', 'buildkite, circleci, terraform-cloud: id of the organization'),
  pipelineId: text('<id>', 'buildkite: id of the pipeline'),
  workspaceId: text('<id>', 'terraform-cloud: id of the workspace'),
  runPhase: text('<phase>', 'terraform-cloud: plan or apply; without it apply'),
  namespace: text('<name>', 'kubernetes: namespace of the service account'),
  serviceAccount: text('<name>', 'kubernetes: name of the service account'),
  serviceAccountUid: text('<uid>', 'kubernetes: uid of the service account'),
  tokenReview: text('<url>', 'kubernetes: ask the API at this address whether the pod still exists'),
  reviewTokenFile: text('<file>', 'kubernetes: file with the token for --token-review'),
  jwksFile: text('<file>', 'kubernetes, spiffe: file with the public keys, which are copied into the entry'),
  jwksUri: text('<url>', 'kubernetes, spiffe: address of the public keys'),
  caFile: text('<file>', 'PEM file with the authorities of the issuer'),
  trustDomain: text('<domain>', 'spiffe: the trust domain'),
  subject: text(
    '<subject>',
    'spiffe: SPIFFE id; google: unique id of the service account; aws: ARN of the role',
  ),
  tenantId: text('<id>', 'azure: id of the tenant'),
  principalId: text('<id>', 'azure: object id of the managed identity'),
  accountId: text('<number>', 'aws: number of the account'),
} satisfies Record<GivenKey, unknown>

const OPTIONS = {
  audience: text(
    '<audience>',
    'audience that the tokens must have: one that only this server has, such as its address',
  ),
  scope: many('<scope>', 'a scope of the agent; may be repeated', { values: 'scopes' }),
  name: text('<name>', 'name of the entry'),
  agent: text('<name>', 'name of the agent, or a template such as ci-{run_id}'),
  write: text(
    '[file]',
    `append the entry to the configuration file [default: ${SYSTEM_CONFIG}; env: MAYFLY_CONFIG]`,
  ),
  ...OF_PRESETS,
}
type Values = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description: `Makes an entry of \`identities\` for a platform, and prints it as YAML: what is trusted then stands in the file, as conditions on claims. Presets: ${PRESETS.map(({ name, summary }) => `${name} (${summary})`).join('; ')}.`,
  arguments: [{ name: '<preset>', description: 'the platform', choices: PRESETS.map(({ name }) => name) }],
  options: OPTIONS,
  examples: {
    "mayfly identity add github --repository acme/app --audience https://mayfly.example.com --scope 'github:acme/app:read'":
      'the jobs of a repository',
    "mayfly identity add gitlab --project-id 42 --namespace-id 7 --audience https://mayfly.example.com --scope 'orders:read' --write mayfly.yaml":
      'add it to the file',
  },
  json: '{"name", "yaml", "file": text or null}',
  run: async (context, options, name) => {
    const { out } = context
    const preset = PRESETS.find((one) => one.name === name)
    if (preset === undefined) throw usage(`There is no preset ${name}.`)
    const entry = await entryFor(context, preset, options)
    const yaml = ['identities:', ...entry.lines.map((line) => `  ${line}`)].join('\n')
    if (options.write === undefined) {
      await requireSound(context, 'the entry', `${yaml}\n`)
      await out.show({ name: entry.name, yaml, file: null }, () => yaml)
      return EXIT.done
    }
    const file =
      options.write === true ? (givenOf(context.env['MAYFLY_CONFIG']) ?? SYSTEM_CONFIG) : options.write
    await append(context, file, entry)
    await out.report(
      { name: entry.name, yaml, file },
      `Added ${entry.name} to ${file}. Run: mayfly server reload`,
    )
    return EXIT.done
  },
})

async function entryFor(context: Context, preset: Preset, options: Values): Promise<WrittenEntry> {
  const keys = Object.keys(OF_PRESETS) as GivenKey[]
  const foreign = keys.find(
    (key) => options[key] !== undefined && !preset.needs.includes(key) && !preset.takes.includes(key),
  )
  if (foreign !== undefined) throw usage(`The preset ${preset.name} has no ${optionOf(foreign)}.`)
  const { audience, scope } = options
  if (audience === undefined)
    throw usage(
      'Give --audience.',
      'It has no default: take one that only this server has, such as its address.',
    )
  if (scope === undefined) throw usage('Give the scopes of the agent with --scope.')
  for (const value of Object.values(options).flat())
    if (typeof value === 'string' && /\p{C}/u.test(value)) throw usage('A value has a control character.')
  const given: Given = await withNumbers(context, preset, options)
  const missing = preset.needs.filter((key) => given[key] === undefined)
  if (missing.length > 0)
    throw usage(`The preset ${preset.name} needs ${missing.map(optionOf).join(', ')}.`, preset.use)
  for (const key of ['repositoryId', 'ownerId', 'namespaceId', 'accountId'] as const)
    if (given[key] !== undefined && !/^\d+$/.test(given[key]))
      throw usage(`${optionOf(key)} is not a number.`)
  if (given.runPhase !== undefined && !['plan', 'apply'].includes(given.runPhase))
    throw usage('--run-phase is plan or apply.')
  if ((given.tokenReview === undefined) !== (given.reviewTokenFile === undefined))
    throw usage('--token-review and --review-token-file belong together.')
  const made = preset.entry((key) => String(given[key]), given)
  const common = { name: options.name, audience, agent: options.agent, scopes: scope }
  return writeEntry(preset, made, { ...common, keys: await readJwks(context, given.jwksFile) }, given)
}

async function withNumbers(context: Context, preset: Preset, options: Values): Promise<Given> {
  const { repository } = options
  if (repository === undefined) return options
  if (!/^[\w.-]+\/[\w.-]+$/.test(repository)) throw usage('Write --repository as OWNER/NAME.')
  if (preset.name !== 'github' || options.repositoryId !== undefined || options.ownerId !== undefined)
    return options
  return { ...options, ...(await readNumbers(context, repository, options.issuer)) }
}

const optionOf = (key: string) => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** The keys of a set, or of a trust bundle of SPIFFE without those of its certificates. */
async function readJwks(
  { cwd }: Context,
  file: string | undefined,
): Promise<Record<string, unknown>[] | undefined> {
  if (file === undefined) return undefined
  const fault = (why: string, cause?: unknown) =>
    new CliError('invalid_keys', `The file ${file} ${why}.`, { cause })
  const content = await readFile(resolve(cwd, file), 'utf8').catch((error: unknown) => {
    throw fault(fileFault(error), error)
  })
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch {
    throw fault('is not JSON')
  }
  const keys = isObject(value) ? value['keys'] : undefined
  if (!Array.isArray(keys) || !keys.every(isObject)) throw fault('holds no list of keys (RFC 7517)')
  return keys.filter((key) => key['use'] !== 'x509-svid')
}

/** Reads the configuration with this text in place of the file. Throws `CliError` with all faults. */
async function requireSound(context: Context, file: string, content: string): Promise<readonly string[]> {
  const { readIdentityFile } = await import('../../config/identity-file.ts')
  const { readFile: readOther, readDirectory } = filesFrom(context)
  const isPrinted = file === 'the entry'
  const files: ReadFiles = {
    readFile: async (path) => (path === file ? Buffer.from(content) : readOther(path)),
    readDirectory: isPrinted ? async () => [] : readDirectory,
  }
  try {
    return (await readIdentityFile(file, files)).identities.map(({ name }) => name)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const all = error.faults.map(({ source, message }) => (isPrinted ? message : `${source}: ${message}`))
    throw new CliError('invalid_entry', `The entry would have faults: ${all.join('; ')}.`, {
      exit: EXIT.usage,
    })
  }
}

/** Changes no line that is there. Throws `CliError`, and then the file is unchanged. */
async function append(context: Context, file: string, entry: WrittenEntry): Promise<void> {
  const path = resolve(context.cwd, file)
  const unchanged = (why: string, cause?: unknown) =>
    new CliError('not_written', `${file} is unchanged: ${why}.`, {
      cause,
      hint: 'Run it without --write, and add the entry yourself.',
    })
  const before = await readFile(path, 'utf8').catch((error: unknown) => {
    throw unchanged(`it ${fileFault(error)}`, error)
  })
  let after: string
  try {
    after = appendToList(before, 'identities', entry.lines)
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error
    throw unchanged(error.message)
  }
  const names = await requireSound(context, file, after)
  if (!names.includes(entry.name)) throw unchanged('a file in conf.d sets identities, and goes before it')
  // A link stays one.
  const target = await realpath(path)
  const facts = await stat(target)
  await writePrivateFile(target, after, facts.mode & 0o777)
  if (process.getuid?.() === 0) await chown(target, facts.uid, facts.gid)
}
