import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { access, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isInstalled } from '../run-program.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const run = promisify(execFile)

/** Debian's Python: another one, such as pyenv's, does not have Debian's grpc. */
const PYTHON = '/usr/bin/python3'

type Language = 'go' | 'python'

/** The language and source of each, and the protocol that it speaks. */
const PLUGINS = {
  'go-redis': { language: 'go', source: 'main.go', proto: 'mayfly_plugin_v1.proto' },
  'creddy-redis': { language: 'go', source: 'main.go', proto: 'creddy_plugin_v1.proto' },
  'creddy-github': { language: 'go', source: 'main.go', proto: 'creddy_plugin_v1.proto' },
  'python-redis': { language: 'python', source: '__main__.py', proto: 'mayfly_plugin_v1.proto' },
} as const satisfies Record<string, { language: Language; source: string; proto: string }>

export type PluginName = keyof typeof PLUGINS

const NEEDS: Record<Language, () => Promise<boolean>> = {
  go: async () =>
    ['go', 'protoc', 'protoc-gen-go'].every(isInstalled) &&
    (await exists('/usr/share/gocode/src/github.com/hashicorp/go-plugin')),
  python: async () =>
    run(PYTHON, ['-c', 'import grpc, grpc_tools']).then(
      () => true,
      () => false,
    ),
}

/** CI has what it takes to build every plugin, or fails; elsewhere the tests of a plugin are skipped without it. */
export async function canBuild(name: PluginName): Promise<boolean> {
  return process.env['CI'] !== undefined || NEEDS[PLUGINS[name].language]()
}

/** The executable, in one file; built once for each content of its sources. */
export async function builtPlugin(name: PluginName): Promise<string> {
  const { language, source, proto } = PLUGINS[name]
  const sources = [here(`${name}/${source}`), here(`../../../src/plugins/proto/${proto}`), here('build.ts')]
  const hash = createHash('sha256')
  for (const file of sources) hash.update(await readFile(file))
  const built = join(here('built'), `${name}-${hash.digest('hex').slice(0, 16)}`)
  if (await exists(built)) return built
  await mkdir(here('built'), { recursive: true })
  const place = await mkdtemp(join(tmpdir(), 'mayfly-plugin-build-'))
  // Another file of tests may build the same; a name is complete from the moment when it exists.
  const partial = `${built}.${randomUUID()}`
  try {
    await BUILD[language](name, source, proto, place, partial)
    await rename(partial, built)
  } finally {
    await rm(place, { recursive: true, force: true })
    await rm(partial, { force: true })
  }
  return built
}

type Build = (name: PluginName, source: string, proto: string, place: string, to: string) => Promise<void>

const BUILD: Record<Language, Build> = {
  async go(name, source, proto, place, to) {
    const generated = join(place, 'src')
    await mkdir(generated)
    const protos = here('../../../src/plugins/proto')
    await run('protoc', [`--go_out=plugins=grpc:${generated}`, '-I', protos, proto])
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: `${place}:/usr/share/gocode`, GOFLAGS: '' }
    await run('go', ['build', '-trimpath', '-o', to, source], { cwd: here(name), env })
  },
  async python(name, source, proto, place, to) {
    const protos = here('../../../src/plugins/proto')
    const out = ['--python_out', '--grpc_python_out'].map((option) => `${option}=${place}`)
    await run(PYTHON, ['-m', 'grpc_tools.protoc', '-I', protos, ...out, proto])
    await run('cp', [join(here(name), source), place])
    await run(PYTHON, ['-m', 'zipapp', place, '-p', PYTHON, '-o', to])
  },
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

// `.ci/run` builds them beforehand, so that no test waits for a compiler.
if (import.meta.main) {
  for (const name of Object.keys(PLUGINS) as PluginName[]) {
    if (await canBuild(name)) console.log(await builtPlugin(name))
    else console.log(`${name}: what builds it is not installed`)
  }
}
