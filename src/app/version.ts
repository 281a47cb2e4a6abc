import { readFileSync } from 'node:fs'

/** Of the package that this file belongs to, from a checkout as from an installation. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version
