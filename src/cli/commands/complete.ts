import { complete } from '../completion/candidates.ts'
import { namesOf } from '../completion/names.ts'
import { oneLine } from '../frame/terminal-text.ts'
import { defineVerb } from '../frame/verb.ts'

export const verb = defineVerb({
  description:
    'Prints what the last word of a command line may become, for the scripts of `mayfly completion`. It asks the server only where a name may stand.',
  arguments: [{ name: '[words...]', description: 'the words after `mayfly`, behind --' }],
  examples: { 'mayfly __complete -- agent cr': 'prints: create, a tab, its description' },
  json: 'the same: one candidate a line, its word, a tab and its description; or `:files`',
  globals: false,
  passThrough: 'all',
  run: async (context, _options, argv) => {
    const found = await complete(argv.slice(argv[0] === '--' ? 1 : 0), context.verbs, (wanted) =>
      namesOf({ ...context, globals: wanted.globals }, wanted),
    )
    const lines =
      found === 'files' ? [':files'] : found.map(({ word, about }) => `${word}\t${oneLine(about)}`)
    if (lines.length > 0) await context.out.result(lines.join('\n'))
  },
})
