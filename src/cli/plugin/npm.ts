import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { entryOf } from '../../app/plugins/package-entry.ts'
import { BadArchive, type PackedFile, writeTarball } from '../../app/plugins/tarball.ts'
import { CliError, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import type { Artefact } from './artefact.ts'

const PACKAGE =
  /^((?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*)@(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?)$/
const MOST_OUTPUT = 65_536

/**
 * Fetches a package and what it depends on from the registry that npm is configured for, without running any script of theirs, and
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
    await writeFile(join(folder, 'package.json'), '{"private":true}\n')
    context.out.progress(`Fetching ${spec} with npm`)
    await install(context, folder, spec)
    await requireIntegrity(folder, name, version)
    const files = await filesOf(folder)
    const entry = entryOf(files, `node_modules/${name}/`)
    const manifest = { name: 'plugin', private: true, main: `./${entry}` }
    files.push({ path: 'package.json', bytes: Buffer.from(`${JSON.stringify(manifest)}\n`) })
    return { bytes: writeTarball(files), origin: `npm:${spec}`, file: name.replace(/^.*\//, '') }
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new CliError('no_plugin', `${spec} is no plugin: ${error.message}.`, {
      hint: 'Its package.json must name the module to start, in "exports" or "main".',
      cause: error,
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const ARGV = [
  'install',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--omit=dev',
  '--bin-links=false',
  '--save=false',
  '--loglevel=error',
]

async function install({ env, signal }: Context, folder: string, spec: string): Promise<void> {
  const { code, text } = await new Promise<{ code: number | null; text: string }>((resolve, reject) => {
    // Not in the current directory, whose .npmrc could name another registry.
    const child = spawn('npm', [...ARGV, '--prefix', folder, spec], {
      cwd: folder,
      env: env as NodeJS.ProcessEnv,
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    })
    let said = ''
    const hear = (chunk: Buffer) => {
      said = `${said}${chunk}`.slice(-MOST_OUTPUT)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', (error: Error & { code?: string }) =>
      reject(signal.aborted ? signal.reason : error.code === 'ENOENT' ? noNpm(error) : error),
    )
    child.on('close', (status) => resolve({ code: status, text: said }))
  })
  if (code === 0) return
  const why = text.split('\n').find((line) => /npm (?:error|ERR!) [^c]/.test(line)) ?? ''
  throw new CliError('npm_failed', `npm could not install ${spec}. ${why.trim()}`.trim(), {
    hint: `See all that it says with: npm view ${spec}`,
  })
}

const noNpm = (cause: unknown) =>
  new CliError('no_npm', 'There is no npm on this machine.', {
    hint: 'Install it, or run `npm pack` elsewhere and give the file: mayfly plugin add ./acme-1.2.3.tgz.',
    cause,
  })

/** npm compares each package with the hash that its registry states; one without such a hash is not accepted. */
async function requireIntegrity(folder: string, name: string, version: string): Promise<void> {
  const text = await readFile(join(folder, 'node_modules', '.package-lock.json'), 'utf8')
  const { packages } = JSON.parse(text) as {
    packages: Record<string, { version?: string; integrity?: string; link?: boolean }>
  }
  for (const [path, { integrity }] of Object.entries(packages))
    if (integrity === undefined || !/^sha(?:256|384|512)-/.test(integrity))
      throw new CliError('no_integrity', `The registry states no hash of ${path}.`, {
        hint: 'Fetch and check it yourself, and give the file that `npm pack` makes.',
      })
  if (packages[`node_modules/${name}`]?.version !== version)
    throw new CliError('npm_failed', `npm installed another version than ${version}.`)
}

/** Without what npm keeps for itself: it names the registry, and links lead outside. */
async function filesOf(folder: string): Promise<PackedFile[]> {
  const root = join(folder, 'node_modules')
  const found = await readdir(root, { recursive: true, withFileTypes: true })
  const files: PackedFile[] = []
  for (const entry of found) {
    const path = join(entry.parentPath, entry.name)
    const shown = relative(folder, path).split(sep).join('/')
    if (entry.isDirectory() || shown === 'node_modules/.package-lock.json') continue
    if (!entry.isFile()) throw new BadArchive(`${shown} is a link or a device`)
    files.push({ path: shown, bytes: await readFile(path) })
  }
  return files
}
