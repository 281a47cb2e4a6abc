import { shellWord } from '../../domain/shell-word.ts'
import {
  describeBackend,
  findKind,
  NO_LIMITS,
  RULE_OPTIONS,
  readConfigOption,
  rulesOf,
  testing,
} from '../admin/backend-rules.ts'
import { ADMIN } from '../admin/verbs.ts'
import { usage } from '../frame/failure.ts'
import { flag, many } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { fieldsOf, type KindField } from '../kind-form/fields.ts'
import { readGiven } from '../kind-form/flags.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb({
  description:
    'Changes a backend. Omitted settings, including secrets, stay unchanged. The flags are those of `backend add`. Active credentials keep their lifetimes. A backend with active credentials cannot change to another upstream, and changing the upstream requires re-entering its secrets.',
  arguments: [
    { name: '<name>', description: 'the backend', values: 'backends' },
    { name: '[flags...]', description: 'flags of the kind' },
  ],
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
  json: async () => (await import('../../api/admin-backends.ts')).Backend,
  ...ADMIN,
  passThrough: 'unknown',
  usage: '<name> [flags of the kind] [options]',
  run: async (context, options, name, rest) => {
    if (name.startsWith('-'))
      throw usage('The name must come before the flags.', 'List the backends with `mayfly backend ls`.')
    if (options.allowAnyScope === true && options.allowScope !== undefined)
      throw usage('--allow-scope and --allow-any-scope are mutually exclusive.')
    const rules = rulesOf(options)
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
    if (Object.keys(body).length === 0)
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
