import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAX_ARTEFACT_BYTES } from '../../app/plugins/artefacts.ts'
import { entryOf } from '../../app/plugins/package-entry.ts'
import { BadArchive, type PackedFile, readTarball, writeTarball } from '../../app/plugins/tarball.ts'
import { CliError, EXIT, usage } from '../../cli/frame/failure.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { type Artefact, tooLarge } from './artefact.ts'
import { type Fetcher, openFetcher } from './run-npm.ts'

const PACKAGE =
  /^((?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*)@(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?)$/
/** What npm keeps for itself: it names the registry. */
const LOCK = 'node_modules/.package-lock.json'
/** Of a tar archive, beside the contents of its files. */
const ARCHIVE_OVERHEAD = 64 * 1024 * 1024

/**
 * Fetches a package and what it depends on from the registry that npm is configured for, without running anything of theirs, and
 * makes one archive of them: the same bytes whenever npm chooses the same versions. Throws `CliError`.
 */
export async function packFromNpm(context: Context, spec: string): Promise<Artefact> {
  const [, name, version] = PACKAGE.exec(spec) ?? []
  if (name === undefined || version === undefined)
    throw usage(
      'A package of npm is written with its exact version.',
      'Write it as npm:mayfly-plugin-acme@1.2.3.',
    )
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-npm-'))
  try {
    const fetcher = await openFetcher(context, folder, MAX_ARTEFACT_BYTES + ARCHIVE_OVERHEAD)
    await requireRecent(fetcher)
    context.out.progress(`Fetching ${spec} with npm`)
    await install(fetcher, folder, spec)
    const files = await fetched(fetcher, spec)
    const lock = files.find(({ path }) => path === LOCK)
    requireFromRegistry(lock, name, version)
    const packed = files.filter((file) => file !== lock)
    const entry = entryOf(packed, `node_modules/${name}/`)
    const manifest = { name: 'plugin', private: true, main: `./${entry}` }
    packed.push({ path: 'package.json', bytes: Buffer.from(`${JSON.stringify(manifest)}\n`) })
    return { bytes: writeTarball(packed), origin: `npm:${spec}`, file: name.replace(/^.*\//, '') }
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new CliError('no_plugin', `${spec} is no plugin: ${error.message}.`, {
      hint: 'Its package.json must name the module to start, in "exports" or "main".',
      cause: error,
    })
  } finally {
    // Unlike `rm`, it never follows a link that is put in its way.
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An older npm fetches a dependency from git, and starts itself there under the configuration that lies in the repository. */
async function requireRecent(fetcher: Fetcher): Promise<void> {
  const { output } = await fetcher.run('npm', ['--version'])
  const [major = 0, minor = 0] = output.toString('utf8').trim().split('.').map(Number)
  if (major > 11 || (major === 11 && minor >= 10)) return
  throw new CliError('old_npm', 'This needs npm 11.10 or later, which can refuse dependencies from git.', {
    hint: 'Run `npm install --global npm@11`, or `npm pack` elsewhere and give the file: mayfly plugin add ./acme-1.2.3.tgz.',
  })
}

const ARGV = ['install', '--omit=dev', '--bin-links=false', '--save=false']

async function install(fetcher: Fetcher, folder: string, spec: string): Promise<void> {
  const { code, said } = await fetcher.run('npm', [...ARGV, '--prefix', folder, spec])
  if (code === 0) return
  const why = said.split('\n').find((line) => /npm (?:error|ERR!) [^c]/.test(line)) ?? ''
  throw new CliError('npm_failed', `npm could not install ${spec}. ${why.trim()}`.trim(), {
    hint: `See all that it says with: npm view ${spec}`,
  })
}

/** Read with the rights of the user that npm ran as: a link leads to nothing that only we may read. */
async function fetched(fetcher: Fetcher, spec: string): Promise<PackedFile[]> {
  const { code, output } = await fetcher.run('tar', ['--create', '--file=-', 'node_modules'])
  if (code === null) throw tooLarge(spec)
  if (code !== 0) throw new CliError('npm_failed', 'What npm fetched cannot be read.', { exit: EXIT.failed })
  return readTarball(output, MAX_ARTEFACT_BYTES)
}

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** A range, a tag, or another package under this name: no address and no path. */
const isOfRegistry = (spec: string) =>
  /^(?:npm:@?[^:@/\\]+(?:\/[^:@/\\]+)?(?:@|$))?[^:/\\]*$/.test(spec) &&
  !/^\.|\.(?:tgz|tar|tar\.gz)$/i.test(spec)

/** npm compares each package with the hash that its registry states; what has none, or is from elsewhere, is not accepted. */
function requireFromRegistry(lock: PackedFile | undefined, name: string, version: string): void {
  const text = Buffer.from(lock?.bytes ?? []).toString('utf8')
  const { packages } = JSON.parse(text) as { packages: Readonly<Record<string, Locked>> }
  for (const [path, { integrity, ...needs }] of Object.entries(packages)) {
    if (integrity === undefined || !/^sha(?:256|384|512)-/.test(integrity))
      throw notFromRegistry(`The registry states no hash of ${path}.`)
    const wanted = [needs.dependencies, needs.optionalDependencies, needs.peerDependencies]
    if (!wanted.flatMap((ones) => Object.values(ones ?? {})).every(isOfRegistry))
      throw notFromRegistry(`${path} depends on something that is not in a registry.`)
  }
  if (packages[`node_modules/${name}`]?.version !== version)
    throw new CliError('npm_failed', `npm installed another version than ${version}.`)
}

const notFromRegistry = (message: string) =>
  new CliError('no_integrity', message, {
    hint: 'Fetch and check it yourself, and give the file that `npm pack` makes.',
  })
