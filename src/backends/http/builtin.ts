import { readdirSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'

const DIRECTORY = new URL('recipes/', import.meta.url)

/** The recipes that Mayfly comes with. A bundle holds them as data: `scripts/bundle` replaces this module. */
export const RECIPES: readonly unknown[] = readdirSync(DIRECTORY)
  .filter((name) => name.endsWith('.yaml'))
  .sort()
  .map((name) => parse(readFileSync(new URL(name, DIRECTORY), 'utf8')))
