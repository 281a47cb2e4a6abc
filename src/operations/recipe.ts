import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { EXIT } from '../cli/frame/failure.ts'
import { listing } from '../cli/frame/output.ts'
import { type Context, defineVerb } from '../cli/frame/verb.ts'
import { fieldsOf } from '../cli/kind-form/fields.ts'
import { flagsOf, readGiven, shapeOf } from '../cli/kind-form/flags.ts'
import type { Fault } from '../domain/fault.ts'
import { faultsOf, noteFaults } from './config-file.ts'

export const check = defineVerb({
  description:
    'Checks a recipe, a file that describes a kind of backend, and reports every fault with its line. With flags of the kind it also reaches the upstream and checks the login, as `backend add` does, and changes nothing there. Needs no server.',
  arguments: [
    { name: '<file>', description: 'the recipe' },
    { name: '[flags...]', description: 'flags of the kind, to try a configuration' },
  ],
  examples: {
    'mayfly recipe check acme.yaml': 'the form of the recipe',
    'mayfly recipe check acme.yaml --token-file token': 'and the login at the upstream',
  },
  json: '{"file", "type", "tried", "faults": [{"source": "FILE:LINE:COLUMN", "message"}]}',
  passThrough: 'unknown',
  usage: '<file> [flags of the kind]',
  run: async (context, _options, file, rest) => {
    const { builtInTypes, readRecipe, tryKind } = await import('../app/recipes.ts')
    let loaded: Awaited<ReturnType<typeof readRecipe>>
    try {
      loaded = await readRecipe(file, (path) => readFile(resolve(context.cwd, path)), builtInTypes())
    } catch (error) {
      return end(context, file, { faults: faultsOf(error) })
    }
    const { kind, privileges } = loaded
    const fields = fieldsOf({ ...kind.config })
    const { config } = await readGiven(context, kind.type, fields, rest)
    const isTried = Object.keys(config).length > 0
    const wrong = isTried ? await tryKind(kind, config) : undefined
    const faults = wrong === undefined ? [] : [{ source: kind.type, message: wrong }]
    if (!context.out.isJson) {
      const shown = {
        kind: kind.type,
        title: kind.title,
        revocation: kind.revocation === 'exact' ? 'at once' : 'by expiry',
        flags: flagsOf(kind.type, fields).map(shapeOf).join(' '),
        scopes: kind.scopes.forms.map(({ form }) => form).join(', '),
        needs: privileges,
      }
      await context.out.result(listing(shown))
    }
    return end(context, file, { type: kind.type, isTried, faults })
  },
})

interface Checked {
  readonly type?: string
  readonly isTried?: boolean
  readonly faults: readonly Fault[]
}

async function end(context: Context, file: string, { type, isTried, faults }: Checked): Promise<number> {
  const { out } = context
  if (out.isJson) await out.json({ file, type: type ?? null, tried: isTried === true, faults })
  else noteFaults(context, faults)
  if (faults.length > 0) return EXIT.failed
  if (!out.isJson)
    out.note(`${file}: no faults.${isTried === true ? ' The upstream accepts the login.' : ''}`)
  return EXIT.done
}
