import { readFile } from 'node:fs/promises'

interface Locked {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
  readonly devOptional?: boolean
}

const HEAD = `Mayfly
Licensed under the Apache License, Version 2.0; see LICENSE.

npm installs the packages below beside the package of npm. Each is under its own licence; the text is in its folder under
node_modules. The executable contains these packages and Node.js, and comes with their licences.

The files of the console contain parts of further packages, and the font Inter. dist/web/LICENSES.json lists them with
their licences: MIT, 0BSD, the Unlicense, and for Inter the SIL Open Font License 1.1.

openpgp is under the GNU Lesser General Public License, version 3.0 or later. Mayfly uses it unchanged, as a library that
it loads at run time from its own package. You can replace it there with a modified version.
`

export interface ProductionPackage {
  /** Its folder, relative to the root of the repository. */
  readonly path: string
  readonly name: string
  readonly version: string
  readonly license: string
}

/** The packages of a production installation, from the lockfile. */
export async function productionPackages(): Promise<ProductionPackage[]> {
  const text = await readFile(new URL('../package-lock.json', import.meta.url), 'utf8')
  const { packages } = JSON.parse(text) as { packages: Record<string, Locked> }
  return Object.entries(packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true)
    .map(([path, { version = '', license = 'see the package' }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return { path, name, version, license }
    })
}

/** `NOTICE`: the packages of a production installation by licence. */
export async function renderNotice(): Promise<string> {
  const byLicense = new Map<string, Set<string>>()
  for (const { name, version, license } of await productionPackages())
    byLicense.set(license, (byLicense.get(license) ?? new Set()).add(`${name} ${version}`))
  const parts = [...byLicense].sort(([a], [b]) => (a < b ? -1 : 1))
  return [HEAD, ...parts.map(([license, names]) => `${license}\n${lines([...names].sort())}`)].join('\n')
}

function lines(names: readonly string[]): string {
  return names.map((name) => `  ${name}\n`).join('')
}
