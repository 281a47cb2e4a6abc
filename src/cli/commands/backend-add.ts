import {
  describeBackend,
  exampleScope,
  findKind,
  RULE_OPTIONS,
  readConfigOption,
  rulesOf,
  testing,
} from '../admin/backend-rules.ts'
import { ADMIN } from '../admin/verbs.ts'
import { usage } from '../frame/failure.ts'
import { ask } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { asFlags } from '../kind-form/as-flags.ts'
import { fieldsOf } from '../kind-form/fields.ts'
import { readGiven } from '../kind-form/flags.ts'
import { askFields, missingError, missingFields } from '../kind-form/questions.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb({
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
  json: async () => (await import('../../api/admin-backends.ts')).Backend,
  ...ADMIN,
  passThrough: 'unknown',
  usage: '<kind> [name] [flags of the kind] [options]',
  run: async (context, options, type, second, more) => {
    if (type.startsWith('-'))
      throw usage('The kind must come before its flags.', 'List the kinds with `mayfly kind ls`.')
    const rest = [...(second === undefined ? [] : [second]), ...more]
    const rules = rulesOf(options)
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
    const body = { type, ...(name === undefined ? {} : { name }), config, ...rules }
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
