import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..')
/** In `dist/web`: written by Vite, and completed here. */
export const LICENSES = 'LICENSES.json'

/** A package of which the files of the console have a part. */
export interface WebPackage {
  readonly name: string
  readonly version: string
  /** SPDX. */
  readonly identifier?: string
  readonly text?: string
}

/** They come in by styles, where Vite does not look. */
const STYLES = ['@fontsource-variable/inter', 'tailwindcss']

export function addPackagesOfStyles(directory: string): void {
  const all = [...packagesIn(directory), ...STYLES.map(packageNamed)]
  writeFileSync(join(directory, LICENSES), `${JSON.stringify(all, null, 2)}\n`)
}

function packageNamed(name: string): WebPackage {
  const read = (file: string) => readFileSync(join(ROOT, 'node_modules', name, file), 'utf8')
  const { version, license } = JSON.parse(read('package.json')) as { version: string; license: string }
  return { name, version, identifier: license, text: read('LICENSE').trim() }
}

function packagesIn(directory: string): WebPackage[] {
  return JSON.parse(readFileSync(join(directory, LICENSES), 'utf8'))
}

/** Those of the console that was built last. */
export const packagesOfConsole = () => packagesIn(join(ROOT, 'dist', 'web'))
