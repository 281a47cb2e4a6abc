import { chmod, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Program } from '../../../src/plugins/process/program.ts'
import { createTestHost } from '../host.ts'
import { pluginKind, supportPlugin } from '../plugin.ts'

const NOBODY = { uid: 65_534, gid: 65_534 }

/** Opens a backend of the plugin `leaver` as a program of another user, and has it start what leaves it. */
export async function openLeaver(seconds: string) {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-leaver-'))
  const entry = join(folder, 'leaver')
  const main = `import(${JSON.stringify(supportPlugin('leaver-plugin.ts'))})`
  await writeFile(entry, `#!${process.execPath}\n${main}\n`, { mode: 0o755 })
  await chmod(folder, 0o755)
  const program: Program = { runtime: 'executable', entry, folder, close: async () => undefined }
  const kind = await pluginKind(program, { user: NOBODY })
  const backend = await kind.open({ seconds }, createTestHost('leaver').host)
  await backend.check(AbortSignal.timeout(60_000))
  return { backend, entry }
}

if (import.meta.main) {
  await openLeaver(process.argv[2] ?? '')
  process.stdout.write('ready\n')
  setInterval(() => undefined, 60_000)
}
