import { usage } from '../cli/frame/failure.ts'
import { flag } from '../cli/frame/options.ts'
import { defineVerb } from '../cli/frame/verb.ts'
import { fieldsOf } from '../cli/kind-form/fields.ts'
import { readGiven } from '../cli/kind-form/flags.ts'
import { missingError, missingFields } from '../cli/kind-form/questions.ts'

export const verb = defineVerb({
  description:
    'Prints a script that a superuser of the database reads and runs once, so that the login of Mayfly needs no more than EXECUTE on a few functions. Takes the flags of `mayfly backend add`; talks to no server.',
  arguments: [
    { name: '<type>', description: 'the kind: postgres' },
    { name: '[flags...]', description: 'flags of the kind' },
  ],
  options: { uninstall: flag('print the script that takes everything away') },
  examples: {
    'mayfly backend setup-sql postgres --database orders --username mayfly | psql -d orders':
      'read what it prints before you run it',
  },
  globals: false,
  passThrough: 'unknown',
  usage: '<type> [flags of the kind] [--uninstall]',
  run: async (context, options, type, rest) => {
    const [{ kinds }, { applyDefaults }] = await Promise.all([
      import('../backends/index.ts'),
      import('../backends/config-fields.ts'),
    ])
    const kind = kinds.find((one) => one.type === type)
    if (kind?.setup === undefined) {
      const known = kinds.filter(({ setup }) => setup !== undefined).map((one) => one.type)
      throw usage(`There is no script for "${type}".`, `Kinds that have one: ${known.join(', ')}.`)
    }
    const fields = fieldsOf({ ...kind.config })
    const { config } = await readGiven(context, type, fields, rest)
    const needs = new Set(kind.setup.needs)
    const missing = missingFields(fields, config).filter(({ name }) => needs.has(name))
    if (missing.length > 0) throw missingError(type, fields, missing)
    const whole = applyDefaults(kind.config, config) as Record<string, unknown>
    try {
      const script = options.uninstall === true ? kind.setup.uninstall(whole) : kind.setup.install(whole)
      await context.out.result(script.trimEnd())
    } catch (error) {
      if (error instanceof RangeError) throw usage(error.message, 'Choose another name.')
      throw error
    }
  },
})
