import { readFile } from 'node:fs/promises'

interface Locked {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
  readonly devOptional?: boolean
}

const HEAD = `Mayfly
Licensed under the Apache License, Version 2.0; see LICENSE.

Mayfly carries no code of others in its own package. When it is installed, npm installs the packages below beside it;
each stays under its own licence, whose text lies in its folder under node_modules.

openpgp is under the GNU Lesser General Public License, version 3.0 or later. It is used unchanged, as a library that
is loaded at run time from its own package, and can be replaced there by a changed version.
`

/** `NOTICE`: what a production installation brings along, by licence, from the lockfile. */
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
