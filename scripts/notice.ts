import { readFile } from 'node:fs/promises'

interface Locked {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
  readonly devOptional?: boolean
}

const HEAD = `Mayfly
Licensed under the Apache License, Version 2.0; see LICENSE.

The package of Mayfly contains no third-party code. npm installs the packages below beside it. Each is under its own
licence; the text is in its folder under node_modules.

openpgp is under the GNU Lesser General Public License, version 3.0 or later. Mayfly uses it unchanged, as a library that
it loads at run time from its own package. You can replace it there with a modified version.
`

/** `NOTICE`: the packages of a production installation by licence, from the lockfile. */
export async function renderNotice(): Promise<string> {
  const text = await readFile(new URL('../package-lock.json', import.meta.url), 'utf8')
  const { packages } = JSON.parse(text) as { packages: Record<string, Locked> }
  const byLicense = new Map<string, Set<string>>()
  for (const [path, { version, license = 'see the package', dev, devOptional }] of Object.entries(packages)) {
    if (path === '' || dev === true || devOptional === true) continue
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    byLicense.set(license, (byLicense.get(license) ?? new Set()).add(`${name} ${version}`))
  }
  const parts = [...byLicense].sort(([a], [b]) => (a < b ? -1 : 1))
  return [HEAD, ...parts.map(([license, names]) => `${license}\n${lines([...names].sort())}`)].join('\n')
}

function lines(names: readonly string[]): string {
  return names.map((name) => `  ${name}\n`).join('')
}
