import {
  describeBackend,
  findKind,
  inFlags,
  RULE_OPTIONS,
  type RuleOptions,
  readConfigOption,
  rulesOf,
} from '../admin/backend-rules.ts'
import { usage } from '../frame/failure.ts'
import { defineVerb } from '../frame/verb.ts'
import { fieldsOf, type KindField } from '../kind-form/fields.ts'
import { readGiven } from '../kind-form/flags.ts'
import { openAdminClient } from '../session/admin.ts'

interface Options extends RuleOptions {
  readonly unset?: readonly string[]
  readonly allowAnyScope?: boolean
  readonly force?: boolean
}

export const verb = defineVerb<Options, [name: string, rest: readonly string[] | undefined]>({
  description:
    'Changes a backend. What is left out stays as it is, secrets too. The flags of its kind are those of `backend add`. Credentials that are alive keep their lives; while there are some, its upstream cannot be another one, and another one needs its secrets given anew.',
  arguments: [
    { name: '<name>', description: 'the backend' },
    { name: '[flags...]', description: 'flags of the kind' },
  ],
  options: [
    ...RULE_OPTIONS,
    { flags: '--unset <field>', description: 'take a field of the configuration away', repeatable: true },
    { flags: '--allow-any-scope', description: 'take the limit on scopes away' },
    { flags: '--no-rate', description: 'take the rate away' },
    { flags: '--no-max-active', description: 'take the number away' },
    { flags: '--force', description: 'the upstream is the same one under another address' },
  ],
  examples: [
    { command: 'mayfly backend update orders --max-ttl 30m', about: 'shorter lives from now on' },
    {
      command: 'mayfly backend update orders --password-file ./new-password',
      about: 'another password for the account of Mayfly',
    },
  ],
  json: async () => (await import('../../api/admin.ts')).Backend,
  exits: [3, 4, 5],
  admin: true,
  passThrough: 'unknown',
  usage: '<name> [flags of the kind] [options]',
  run: async (context, options, name, rest) => {
    if (name.startsWith('-')) throw usage('The name stands before the flags.', 'See `mayfly backend ls`.')
    if (options.allowAnyScope === true && options.allowScope !== undefined)
      throw usage('--allow-scope and --allow-any-scope exclude each other.')
    const rules = rulesOf(options)
    const client = await openAdminClient(context)
    const before = await client.admin.backends.show(name)
    const fields = fieldsOf((await findKind(client, before.type)).config)
    const given = await readGiven(context, before.type, fields, rest ?? [])
    if (given.name !== undefined)
      throw usage('Only one backend can be changed at a time.', 'Its name does not change.')
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
    if (Object.keys(body).length === 0)
      throw usage(
        'Nothing to change was given.',
        `See the flags with \`mayfly backend kinds ${before.type}\`.`,
      )
    const made = await client.admin.backends
      .update(name, body, {
        check: options.check === false ? false : undefined,
        force: options.force === true ? true : undefined,
      })
      .catch((error: unknown) => {
        throw inFlags(error)
      })
    await context.out.show(made, () => describeBackend(made))
  },
})

/** A secret that is left out stays as it is at the server, so it cannot be taken away. */
function checkUnset(fields: readonly KindField[], unset: readonly string[]): void {
  for (const name of unset) {
    const field = fields.find((one) => one.name === name)
    if (field === undefined)
      throw usage(
        'There is no such field to take away.',
        `There are: ${fields.map((one) => one.name).join(', ')}.`,
      )
    if (field.secret || field.needed)
      throw usage(
        `${name} cannot be taken away.`,
        field.secret ? 'Make another backend without it.' : 'It is needed.',
      )
  }
}

function without(config: Record<string, unknown>, unset: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).filter(([name]) => !unset.includes(name)))
}
