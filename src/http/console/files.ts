import { readFileSync } from 'node:fs'

/** The pages of the console. A bundle has them as data, in place of this module. */
const read = (name: string) => readFileSync(new URL(name, import.meta.url))

export const CONSOLE_FILES = {
  page: read('console.html'),
  script: read('console.js'),
  style: read('console.css'),
} as const
