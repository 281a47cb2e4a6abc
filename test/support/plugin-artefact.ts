import { rolldown } from 'rolldown'
import { supportPlugin } from './plugin.ts'

const bundled = new Map<string, Promise<string>>()

/** A plugin of `plugins/` as one module that needs nothing beside it, as its author would publish it. */
export function bundlePlugin(file: string): Promise<string> {
  const known = bundled.get(file) ?? bundle(supportPlugin(file))
  bundled.set(file, known)
  return known
}

async function bundle(input: string): Promise<string> {
  await using bundle = await rolldown({ input, platform: 'node', logLevel: 'silent' })
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false })
  return output[0].code
}

/** The kind `parrot`, which says which version of it issues. */
export async function parrot({ type = 'parrot', version = '1.0.0' } = {}): Promise<Buffer> {
  const code = await bundlePlugin('parrot-plugin.ts')
  return Buffer.from(code.replaceAll('PARROT-TYPE', type).replaceAll('PARROT-VERSION', version))
}
