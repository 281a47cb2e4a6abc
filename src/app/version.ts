import { readFileSync } from 'node:fs'

/** The version of the package; the path is right in a checkout and in an installation. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version
