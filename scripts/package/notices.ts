import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { productionPackages } from '../notice.ts'
import { packagesOfConsole } from '../web/packages.ts'

const ROOT = join(import.meta.dirname, '..', '..')

const HEAD = `The executable of Mayfly contains Node.js and the packages below. Each is under its own licence, which follows.

openpgp is under the GNU Lesser General Public License, version 3.0 or later. To use a modified version of it, change it
in a checkout of Mayfly, whose source is public, and run \`npm run package\`.
`

/** The licences of everything that the executable holds besides our own code. `work` is a directory for files. */
export async function renderThirdParty(work: string): Promise<string> {
  const parts = [section(`Node.js ${process.versions.node}`, licenseOfNode(work))]
  for (const { path, name, version, license } of await productionPackages())
    parts.push(section(`${name} ${version} (${license})`, await licenseOf(join(ROOT, path))))
  for (const { name, version, identifier, text } of packagesOfConsole())
    parts.push(section(`${name} ${version} (${identifier})`, text ?? `Licence: ${identifier}.`))
  return [HEAD, ...parts].join('\n')
}

/** From the package that brought the pinned Node.js; npm keeps it in its cache. */
function licenseOfNode(work: string): string {
  const name = `node-${process.platform}-${process.arch}@${process.versions.node}`
  const argv = ['pack', name, '--prefer-offline', '--silent', '--pack-destination', work]
  const file = execFileSync('npm', argv, { encoding: 'utf8' }).trim()
  return execFileSync('tar', ['-xzOf', join(work, file), 'package/LICENSE'], { encoding: 'utf8' })
}

function section(title: string, text: string): string {
  return `${'-'.repeat(80)}\n${title}\n\n${text.trim()}\n`
}

/** Most packages have a file; the rest name their licence in package.json only. */
async function licenseOf(directory: string): Promise<string> {
  const names = (await readdir(directory)).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name)).sort()
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')))
  if (texts.length > 0) return texts.join('\n')
  const { author, license } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'))
  return `Licence: ${license}. Author: ${typeof author === 'string' ? author : (author?.name ?? 'not named')}.`
}
