import { execFileSync } from 'node:child_process'
import { chmod, copyFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readTree } from '../../src/files/read-tree.ts'
import { bundle } from '../bundle/bundle.ts'
import { buildWeb } from '../web/build-web.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const WEB = join(ROOT, 'dist', 'web')
/** As in `npm start`: docs/explanation/adr/0014-server-heap-size.md. */
const HEAP_FLAGS = ['--max-semi-space-size=8', '--heap-growing-percent=30']
/** Node.js looks for this in its own executable, to learn whether something was added to it. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** Builds the executable: the Node.js that runs this, with the bundle inside. `work` is an empty directory. */
export async function buildExecutable(version: string, work: string, file: string): Promise<void> {
  await buildWeb()
  const parts = join(work, 'bundle')
  await bundle({ form: 'executable', version, directory: parts, flags: HEAP_FLAGS })
  const names = (await readdir(parts)).filter((name) => name !== 'mayfly.cjs')
  const blob = join(work, 'blob')
  const config = {
    main: join(parts, 'mayfly.cjs'),
    output: blob,
    disableExperimentalSEAWarning: true,
    execArgv: HEAP_FLAGS,
    assets: Object.fromEntries([
      ...names.map((name) => [name, join(parts, name)]),
      ...[...readTree(WEB).keys()].map((name) => [`web/${name}`, join(WEB, name)]),
    ]),
  }
  const configFile = join(work, 'sea.json')
  await writeFile(configFile, JSON.stringify(config))
  execFileSync(process.execPath, ['--experimental-sea-config', configFile], { stdio: 'ignore' })
  await copyFile(process.execPath, file)
  await chmod(file, 0o755)
  // It warns of every section without a name; its errors come as exit codes.
  execFileSync('npx', ['postject', file, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', FUSE], {
    cwd: ROOT,
    stdio: 'ignore',
  })
}
