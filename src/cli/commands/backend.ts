import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import { MayflyError } from '../../client/errors.ts'
import type { BackendDeletion } from '../../client/wire.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import {
  describeBackend,
  exampleScope,
  findKind,
  NO_LIMITS,
  RULE_OPTIONS,
  readConfigOption,
  readUsesOption,
  rulesOf,
  testing,
} from '../admin/backend-rules.ts'
import { describeHealth, healthInShort } from '../admin/describe-health.ts'
import { exactName, isAuditFull } from '../admin/exact-name.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { usage } from '../frame/failure.ts'
import { globalFlags } from '../frame/global-flags.ts'
import { LIST_OPTIONS, showList } from '../frame/list.ts'
import { flag, many, yesTo } from '../frame/options.ts'
import { ask, confirmed } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { fieldsOf, type KindField } from '../kind-form/fields.ts'
import { asFlags, readGiven } from '../kind-form/flags.ts'
import { askFields, missingError, missingFields } from '../kind-form/questions.ts'
import { openAdminClient } from '../session/admin.ts'

const backendSchema = async () => (await import('../../api/admin-backends.ts')).Backend
const BACKEND = { name: '<name>', description: 'the backend', values: 'backends' } as const

export const add = defineVerb({
  description:
    'Adds a backend. Its flags depend on the kind (`mayfly kind show KIND` lists them); on a terminal, missing ones are prompted for. Secrets come from files, standard input (-) or a prompt, never from the command line. The server tests the backend before it stores it.',
  arguments: [
    { name: '<kind>', description: 'the kind, such as postgres', values: 'kinds' },
    { name: '[name]', description: 'name of the backend; by default the kind' },
    { name: '[flags...]', description: 'flags of the kind' },
  ],
  options: RULE_OPTIONS,
  examples: {
    'mayfly backend add postgres': 'answer the prompts',
    'mayfly backend add postgres orders --host db.internal --database orders --username mayfly --password-file ./password --max-ttl 1h':
      'without prompts',
    'mayfly backend add jwt api --config - < api.json': 'from JSON',
  },
  json: backendSchema,
  ...ADMIN,
  passThrough: 'unknown',
  usage: '<kind> [name] [flags of the kind] [options]',
  run: async (context, options, type, second, more) => {
    if (type.startsWith('-'))
      throw usage('The kind must come before its flags.', 'List the kinds with `mayfly kind ls`.')
    const rest = [...(second === undefined ? [] : [second]), ...more]
    const rules = { ...rulesOf(options), ...(await readUsesOption(context, options)) }
    const client = await openAdminClient(context)
    const kind = await findKind(client, type)
    const fields = fieldsOf(kind.config)
    const given = await readGiven(context, type, fields, rest)
    const config = { ...(await readConfigOption(context, options.config)), ...given.config }
    let name = given.name
    const missing = missingFields(fields, config)
    const isAsked = missing.length > 0
    if (isAsked) {
      if (context.stdin.isTTY !== true || options.config === '-') throw missingError(type, fields, missing)
      name ??= await ask(context, `name [${type}]: `, { default: type })
      Object.assign(config, await askFields(context, fields, config))
    }
    const check = options.check === false ? false : undefined
    const body = { type, name, config, ...rules }
    const creation = client.admin.backends.create(body, { check })
    const made = await whileWaiting(context, testing(options), creation).catch((error: unknown) => {
      if (isAsked)
        context.out.note(`The same as flags: backend add ${type} ${name} ${asFlags(type, fields, config)}`)
      throw error
    })
    await context.out.show(made, () => describeBackend(made, context.now()))
    const scope = exampleScope(kind, config)
    if (!context.out.isJson && scope !== undefined)
      context.out.note(
        `Agents with a scope such as ${made.name}:${scope} get credentials: mayfly get ${made.name}`,
      )
  },
})

export const list = defineVerb({
  description: 'Lists the backends.',
  options: LIST_OPTIONS,
  examples: { 'mayfly backend ls': 'list all backends' },
  json: arrayOf(backendSchema),
  ...ADMIN,
  run: async (context, options) => {
    const { admin } = await openAdminClient(context)
    await showList(context, options, admin.backends.list, {
      things: 'backends',
      none: `No backends yet. Add one with \`mayfly backend add KIND${globalFlags(context.globals)}\`.`,
      heading: ['NAME', 'KIND', 'DEFAULT TTL', 'MAX TTL', 'HEALTH', 'SCOPES', 'DESCRIPTION'],
      cells: (row) => [
        row.name,
        row.type,
        row.default_ttl,
        row.max_ttl,
        healthInShort(row.health),
        row.allowed_scopes?.join(' ') ?? 'any',
        row.broken === true ? 'broken: see `backend show`' : (row.description ?? ''),
      ],
    })
  },
})

export const show = defineVerb({
  description: 'Shows a backend with its configuration. Secrets read [redacted].',
  arguments: [BACKEND],
  examples: { 'mayfly backend show orders': 'show its configuration' },
  json: backendSchema,
  ...ADMIN,
  run: async (context, _options, name) => {
    const backend = await (await openAdminClient(context)).admin.backends.show(name)
    await context.out.show(backend, () =>
      describeBackend(backend, context.now(), describeHealth(backend.health, context.now())),
    )
  },
})

export const update = defineVerb({
  description:
    'Changes a backend. Omitted settings, including secrets, stay unchanged. The flags are those of `backend add`. Active credentials keep their lifetimes. A backend with active credentials cannot change to another upstream, and changing the upstream requires re-entering its secrets.',
  arguments: [BACKEND, { name: '[flags...]', description: 'flags of the kind' }],
  options: {
    ...RULE_OPTIONS,
    unset: many('<field>', 'remove a field from the configuration'),
    allowAnyScope: flag('remove the limit on scopes'),
    ...NO_LIMITS,
    force: flag('the new address is still the same upstream'),
  },
  examples: {
    'mayfly backend update orders --max-ttl 30m': 'shorten the lifetime of new credentials',
    'mayfly backend update orders --password-file ./new-password': 'change the password of Mayfly’s account',
  },
  json: backendSchema,
  ...ADMIN,
  passThrough: 'unknown',
  usage: '<name> [flags of the kind] [options]',
  run: async (context, options, name, rest) => {
    if (name.startsWith('-'))
      throw usage('The name must come before the flags.', 'List the backends with `mayfly backend ls`.')
    if (options.allowAnyScope === true && options.allowScope !== undefined)
      throw usage('--allow-scope and --allow-any-scope are mutually exclusive.')
    const rules = { ...rulesOf(options), ...(await readUsesOption(context, options)) }
    const client = await openAdminClient(context)
    const before = await client.admin.backends.show(name)
    const fields = fieldsOf((await findKind(client, before.type)).config)
    const given = await readGiven(context, before.type, fields, rest)
    if (given.name !== undefined)
      throw usage('Give the name of one backend only.', 'A backend cannot be renamed.')
    const config = { ...(await readConfigOption(context, options.config)), ...given.config }
    const unset = options.unset ?? []
    checkUnset(fields, unset)
    const body = {
      ...rules,
      ...(options.allowAnyScope === true ? { allowed_scopes: null } : {}),
      ...(Object.keys(config).length + unset.length === 0
        ? {}
        : { config: without({ ...before.config, ...config }, unset) }),
    }
    if (Object.values(body).every((value) => value === undefined))
      throw usage(
        'There is nothing to change.',
        `List the flags with \`mayfly kind show ${shellWord(before.type)}\`.`,
      )
    const change = client.admin.backends.update(name, body, {
      check: options.check === false ? false : undefined,
      force: options.force === true ? true : undefined,
    })
    const made = await whileWaiting(context, testing(options), change)
    await context.out.show(made, () => describeBackend(made, context.now()))
  },
})

/** The server keeps an omitted secret, so a secret cannot be removed. */
function checkUnset(fields: readonly KindField[], unset: readonly string[]): void {
  for (const name of unset) {
    const field = fields.find((one) => one.name === name)
    if (field === undefined)
      throw usage(
        'There is no such field to remove.',
        `The fields are: ${fields.map((one) => one.name).join(', ')}.`,
      )
    if (field.secret || field.needed)
      throw usage(
        `${name} cannot be removed.`,
        field.secret ? 'Add another backend without it.' : 'It is required.',
      )
  }
}

function without(config: Record<string, unknown>, unset: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).filter(([name]) => !unset.includes(name)))
}

export const rotateRoot = defineVerb({
  description:
    'Replaces the secret that Mayfly itself logs in to an upstream with by a new one that nobody knows. Credentials stay valid, and issuing goes on. If the server stops in the middle, it completes the rotation by itself, or this command does. Anything else that logs in with the old secret stops working, and backups of the store from before hold the old one.',
  arguments: [BACKEND],
  options: { ...yesTo('do not ask') },
  examples: {
    'mayfly backend rotate-root orders': 'ask, then replace the password',
    'mayfly backend rotate-root orders --yes --json': 'regularly, from cron',
  },
  json: async () => (await import('../../api/admin-backends.ts')).RootRotation,
  ...ADMIN,
  run: async (context, { yes }, name) => {
    const client = await openAdminClient(context)
    const { name: exact } = await client.admin.backends.show(name)
    const question = `Replace the secret that Mayfly logs in with at ${exact}? The old one ends.`
    const otherwise = 'Use --yes to replace it without confirmation.'
    await confirmed(context, yes, question, { otherwise, no: 'Nothing was changed.' })
    const rotation = client.admin.backends.rotateRoot(exact)
    const made = await whileWaiting(context, `Replacing the secret of ${exact}`, rotation)
    const what = `${made.fields.join(' and ')} of ${made.name}`
    const how = made.resumed ? `Completed an interrupted rotation: replaced ${what}.` : `Replaced ${what}.`
    const left = made.old_ended ? '' : ' The old one could not be ended yet; the server goes on trying.'
    await context.out.show(made, () => how + left)
  },
})

export const remove = defineVerb({
  description:
    'Deletes a backend. Refused while it has active credentials, unless --force revokes them first. Waits until all of them have ended, and shows how many remain if there are very many.',
  arguments: [BACKEND],
  options: { force: flag('revoke its active credentials first'), ...yesTo('do not ask') },
  examples: {
    'mayfly backend rm orders': 'ask, then delete it',
    'mayfly backend rm orders --force --yes': 'revoke its credentials and delete it without asking',
  },
  json: '{"deleted": "NAME"}',
  ...ADMIN,
  run: async (context, options, name) => {
    const client = await openAdminClient(context)
    const exact = await exactName(name, client.admin.backends.show(name))
    const what = options.force === true ? `${exact} and revoke all its credentials` : exact
    const otherwise = 'Use --yes to delete without confirmation.'
    const question = `Delete the backend ${what}?`
    await confirmed(context, options.yes, question, { otherwise, no: 'Nothing was deleted.' })
    const force = options.force === true ? true : undefined
    const deletion = await client.admin.backends.delete(exact, { force })
    if (deletion !== undefined) await watchDeletion(context, client, deletion)
    await context.out.show({ deleted: exact }, () => `Deleted ${exact}.`)
  },
})

const POLL_MS = 1_000

/** Waits until the server has ended the last credential of the backend, and shows how many remain. */
async function watchDeletion(
  { out, signal }: Pick<Context, 'out' | 'signal'>,
  client: Client,
  { name, since, remaining }: BackendDeletion,
): Promise<void> {
  out.note('The server deletes the backend even if you interrupt this command.')
  for (let left: number | undefined = remaining; left !== undefined; ) {
    out.progress(`Ending its credentials: ${left} left`)
    await pause(POLL_MS, signal)
    const deletion = await client.admin.backends.show(name, { signal }).then(
      (backend) => backend.deletion,
      (error: unknown) => {
        if (error instanceof MayflyError && error.code === 'backend_not_found') return undefined
        if (!isAuditFull(error)) throw error
        // Its disk is full. It goes on, and may say so again.
        return { name, since, remaining: left ?? remaining }
      },
    )
    // Another one may have been created under this name since.
    left = deletion?.since === since ? deletion.remaining : undefined
  }
}
